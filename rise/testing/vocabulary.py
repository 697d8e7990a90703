"""Which primitives generated terms use, and how a call of one is made: read from its declaration.

Nothing here lists the primitives: a new declaration is generated from its scheme. Those that ask for
more than their scheme says (a divisor is not zero, a reduction has a neutral element) are in
`operands.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from rise.declaration import Declaration
from rise.nat import Nat, NatVariable, constant
from rise.primitives.declare import REGISTRY
from rise.testing.operands import SPECIAL, Special
from rise.testing.solve import has_structure, solvable
from rise.types import (
    BOOL,
    F32,
    Array,
    Function,
    Index,
    Kind,
    Pair,
    Parameter,
    Scalar,
    T,
    Type,
    Variable,
    arguments,
    is_data,
    leaves,
    map_type,
)

# these take whole numbers to others, so that sums of them depend on the order of rounding
INEXACT = frozenset("div exp log sqrt rsqrt reciprocal tanh sin cos pow".split())
# what these give is not all defined, so a rewriting may change it
UNDEFINED = frozenset(["padEmpty"])
ONE = constant(1)
MEMBERS = (1, 2, 3, 4)  # of families like `makeArray(n)`
GENERATED_KINDS = (Kind.NAT, Kind.DATA, Kind.SPACE, Kind.FRAGMENT)


@cache
def declarations() -> Mapping[str, Declaration]:
    """All primitives by name; of a family over a number the first members, as `makeArray(2)`."""
    found: dict[str, Declaration] = {}
    for declaration in REGISTRY.values():
        if not declaration.is_family:
            found[declaration.name] = declaration
        elif [p.type for p in declaration.host] == [int]:
            found.update((m.written, m) for m in map(declaration.member, MEMBERS))
    return found


@cache
def every_primitive() -> frozenset[str]:
    """All that terms can be generated of: the schemes say enough, and the value is defined."""
    return frozenset(
        name
        for name, declaration in declarations().items()
        if name not in UNDEFINED and any(plan(declaration, expected) for expected in (False, True))
    )


@cache
def high_level() -> frozenset[str]:
    """All patterns, views and operations; nothing that says where a value lives or who computes it."""
    return frozenset(n for n in every_primitive() if not _is_low_level(declarations()[n]))


@cache
def exact() -> frozenset[str]:
    """The high-level ones that take small whole numbers to whole numbers."""
    return high_level() - INEXACT


@cache
def views() -> frozenset[str]:
    """What only rearranges data."""
    return frozenset(n for n in high_level() if declarations()[n].view)


def _is_low_level(declaration: Declaration) -> bool:
    if declaration.lowers is not None or declaration.group == "memory":
        return True
    if any(p.kind is Kind.FRAGMENT for p in declaration.scheme.parameters):
        return True
    operands, result = arguments(declaration.scheme.type)
    return not all(_is_plain(t) for t in (*operands, result))


def _is_plain(type_: Type) -> bool:
    """No vector, no fragment."""
    match type_:
        case Array(_, element):
            return _is_plain(element)
        case Pair(a, b) | Function(a, b):
            return _is_plain(a) and _is_plain(b)
        case _:
            return isinstance(type_, Scalar | Index | Variable)


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plan:
    """How a call is generated.

    operands, result: their types, over the parameters of the scheme
    inferred:         of each operand, whether the checker has to find its type from itself
    """

    declaration: Declaration
    operands: tuple[Type, ...]
    result: Type
    inferred: tuple[bool, ...]

    @property
    def special(self) -> Special:
        return SPECIAL.get(self.declaration.name, _ORDINARY)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.declaration.scheme.parameters


_ORDINARY = Special()


@cache
def plan(declaration: Declaration, expected: bool) -> Plan | None:
    """How to call a primitive; None where its scheme says too little.

    expected: the context says of which type the call is
    """
    scheme, special = declaration.scheme, SPECIAL.get(declaration.name, _ORDINARY)
    operands, result = arguments(scheme.type)
    if not all(_can_be_chosen(p) or p.name in special.arguments for p in scheme.parameters):
        return None
    if not all(_is_solvable(t) for t in (*operands, result)):
        return None
    known = {p.key for p in scheme.parameters if not p.implicit or p.name in special.written}
    if expected:
        known |= _determined(result, known)
    inferred = [False] * len(operands)
    data_first = sorted(range(len(operands)), key=lambda i: (not is_data(operands[i]), -i))
    for i in (i for i in data_first if i not in special.operands):
        inner_parameters, inner = arguments(operands[i])
        if any(not _variables(p) <= known for p in inner_parameters):
            return None  # nothing says what the parameters of this function are
        if not _variables(inner) <= known:
            inferred[i] = True
            known |= _determined(inner, known)
    if not all(p.key in known for p in scheme.parameters):
        return None
    return Plan(declaration, tuple(operands), result, tuple(inferred))


def _can_be_chosen(parameter: Parameter) -> bool:
    return parameter.kind in GENERATED_KINDS or parameter.default is not None


def _is_solvable(type_: Type) -> bool:
    """Sizes are sums of products of parameters, and nothing depends on a size or a type."""
    if isinstance(type_, Function):
        return _is_solvable(type_.parameter) and _is_solvable(type_.result)
    return is_data(type_) and all(solvable(n) for n in _sizes(type_))


def _sizes(type_: Any) -> list[Nat]:
    if isinstance(type_, Nat):
        return [type_]
    names = getattr(type(type_), "__match_args__", ()) if not isinstance(type_, Variable) else ()
    return [n for name in names for n in _sizes(getattr(type_, name))]


def _variables(type_: Type) -> set[Any]:
    return set(leaves(type_))


def _determined(type_: Type, known: set[Any]) -> set[Any]:
    """What a type says of the variables in it, if it is known; of a size, of one variable at most."""
    found = {v for v in _variables(type_) if not isinstance(v, NatVariable)}
    for size in _sizes(type_):
        missing = size.atoms - known
        if len(missing) == 1:
            found |= missing
    return found


# --- calls for a type -----------------------------------------------------------------------------


def form(type_: T) -> T:
    """The type as far as it decides which primitives have such results: sizes and inner scalars alike."""
    return type_ if isinstance(type_, Scalar) else _erased(type_)


@lru_cache(maxsize=4096)
def _erased(type_: T) -> T:
    match type_:
        case Scalar():
            return F32
        case Array(_, element):
            return Array(ONE, _erased(element))
        case Pair(first, second):
            return Pair(_erased(first), _erased(second))
        case _:
            return map_type(type_, lambda _: ONE, lambda leaf: leaf)


@cache
def calls(names: frozenset[str], wanted: Type, expected: bool) -> tuple[tuple[Plan, ...], ...]:
    """The calls that may be of a type of that form, in groups.

    A group is what executes one pattern, all of arithmetic, or all comparisons. Groups with fewer
    operands come first; the more a primitive says of its result, the more often it counts.
    """
    groups: dict[str, list[Plan]] = {}
    for name in sorted(names):
        declaration = declarations()[name]
        made = plan(declaration, expected)
        if made is not None and _fits(made, wanted):
            groups.setdefault(_group(declaration, made), []).append(made)
    ordered = sorted(groups.items(), key=lambda g: (max(len(p.operands) for p in g[1]), g[0]))
    return tuple(tuple(plans) for _, plans in ordered for _ in range(_weight(plans[0])))


@cache
def consumers(names: frozenset[str], wanted: Type, expected: bool, used: Type) -> tuple[Plan, ...]:
    """Those of the calls which say of an operand that it is of the form of another type."""
    plans = dict.fromkeys(made for group in calls(names, wanted, expected) for made in group)
    return tuple(made for made in plans if any(_takes(operand, used) for operand in made.operands))


def _takes(operand: Type, used: Type) -> bool:
    return is_data(operand) and not isinstance(operand, Variable) and has_structure(operand, used)


def _group(declaration: Declaration, made: Plan) -> str:
    if declaration.elementwise:
        return "comparison" if made.result == BOOL and declaration.scheme.parameters else "arithmetic"
    return declaration.lowers or declaration.name


def _weight(made: Plan) -> int:
    """What only hands a value on says little about a program; `zip` makes nothing but pairs."""
    if made.declaration.elementwise:
        return 8
    if isinstance(made.result, Variable):
        hands_on = all(is_data(t) for t in made.operands) and len(made.operands) < 3
        return 1 if hands_on else 4
    match made.result:
        case Array(_, Variable()) | Pair(Variable(), Variable()) | Scalar():
            return 3
        case _:
            return 6


def _fits(made: Plan, wanted: Type) -> bool:
    if made.declaration.elementwise and (not isinstance(wanted, Scalar) or wanted == BOOL != made.result):
        return False
    return has_structure(made.result, wanted)
