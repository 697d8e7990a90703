"""Substitution in types against an oracle that has no names for what is bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from rise.nat import Nat, NatVariable, constant, quotient, remainder, variable
from rise.types import (
    F32,
    Argument,
    Array,
    Dependent,
    Function,
    Index,
    Kind,
    OnLeaf,
    Pair,
    Parameter,
    Type,
    Variable,
    leaves,
    map_type,
    substitute_type,
)

# a small pool: what is bound, what is free and what is put in have one name by chance
NAMES = st.sampled_from("abc")
KINDS = st.sampled_from((Kind.NAT, Kind.DATA))

SIZES = st.recursive(
    st.one_of(st.integers(0, 4).map(constant), NAMES.map(variable)),
    lambda sizes: st.one_of(
        st.builds(Nat.__add__, sizes, sizes),
        st.builds(Nat.__mul__, sizes, sizes),
        st.builds(quotient, sizes, st.just(3)),
        st.builds(remainder, st.just(7), sizes.map(lambda n: n + 1)),
    ),
    max_leaves=3,
)
DATA = st.recursive(
    st.one_of(st.just(F32), NAMES.map(Variable), SIZES.map(Index)),
    lambda data: st.one_of(st.builds(Array, SIZES, data), st.builds(Pair, data, data)),
    max_leaves=3,
)
TYPES: st.SearchStrategy[Type] = st.recursive(
    DATA,
    lambda types: st.one_of(
        st.builds(Function, types, types),
        st.builds(Dependent, NAMES, KINDS, types, st.booleans()),
        st.builds(Dependent, NAMES, KINDS, types, st.booleans()),
    ),
    max_leaves=6,
)
Key = NatVariable | Variable


def solutions() -> st.SearchStrategy[dict[Key, Argument]]:
    sizes = st.dictionaries(NAMES.map(NatVariable), SIZES, max_size=2)
    data = st.dictionaries(NAMES.map(Variable), DATA, max_size=2)
    return st.builds(lambda a, b: {**a, **b}, sizes, data)


def nameless(type_: Type, known: Mapping[Key, Argument], depth: int = 0) -> Type:
    """The type with each bound variable named after how deep its binder is, and what is known put in.

    `#3` is no name of a program: it captures nothing, and nothing captures it.
    """
    if isinstance(type_, Dependent):
        old, new = (Parameter(n, type_.kind, False) for n in (type_.name, f"#{depth}"))
        assert isinstance(old.key, Key)
        inner = nameless(type_.result, {**known, old.key: new.leaf}, depth + 1)
        return Dependent(f"#{depth}", type_.kind, inner, type_.implicit)
    if isinstance(type_, Function):
        return Function(*(nameless(part, known, depth) for part in (type_.parameter, type_.result)))
    return map_type(type_, lambda n: n.substitute(sizes(known)), by_name(known))


def sizes(known: Mapping[Key, Argument]) -> dict[NatVariable, Nat]:
    return {
        name: value
        for name, value in known.items()
        if isinstance(name, NatVariable) and isinstance(value, Nat)
    }


def by_name(known: Mapping[Key, Argument]) -> OnLeaf:
    """What is known of a variable in its place."""
    return lambda leaf: known.get(leaf, leaf) if isinstance(leaf, Variable) else leaf


def would_capture(type_: Type, solution: Mapping[Key, Argument]) -> bool:
    """Whether replacing names without a look at the binders gives another type."""
    plain = map_type(type_, lambda n: n.substitute(sizes(solution)), by_name(solution))
    return nameless(plain, {}) != nameless(type_, solution)


def test_a_substitution_captures_nothing() -> None:
    fired: Counter[str] = Counter()

    @settings(max_examples=3 * settings().max_examples)
    @given(TYPES, solutions())
    def check(type_: Type, solution: dict[Key, Argument]) -> None:
        found = substitute_type(type_, solution)
        assert str(nameless(found, {})) == str(nameless(type_, solution))
        fired["capture"] += would_capture(type_, solution)
        fired["change"] += found != type_

    check()
    assert fired["capture"] >= 20
    assert fired["change"] >= 60


@given(TYPES, TYPES)
def test_types_are_equal_that_differ_in_bound_names_only(left: Type, right: Type) -> None:
    equal = str(nameless(left, {})) == str(nameless(right, {}))
    assert (left == right) == equal
    assert not equal or hash(left) == hash(right)
    assert nameless(left, {}) == left


def test_a_bound_size_inside_of_a_quotient_has_any_name() -> None:
    """Function types compare their parts by hash first."""

    def thirds(name: str) -> Type:
        size = quotient(variable(name), constant(3))
        return Function(F32, Dependent(name, Kind.NAT, Array(size, F32), False))

    assert thirds("a") == thirds("b") and hash(thirds("a")) == hash(thirds("b"))


@given(TYPES, NAMES)
def test_a_bound_variable_is_not_free(type_: Type, name: str) -> None:
    assert NatVariable(name) not in set(leaves(Dependent(name, Kind.NAT, type_)))
    assert Variable(name) not in set(leaves(Dependent(name, Kind.DATA, type_)))
