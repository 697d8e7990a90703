"""A rule with random sizes, types and orders put in; its functions are left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rise.expr import Expr, substitute_sizes
from rise.interpret.inputs import elements
from rise.nat import Nat, NatUnknown, NatVariable, constant
from rise.solve import solve
from rise.testing.choose import Choose
from rise.testing.data import SCALAR_TYPES, data_type
from rise.testing.operands import SPECIAL
from rise.testing.unsolved import RuleLike, Unsolved, named, standing, unsolved
from rise.types import (
    F32,
    I32,
    ROW_MAJOR,
    FragmentKind,
    Kind,
    Layout,
    Space,
    Type,
    Unknown,
    is_data,
    substitute_argument,
    substitute_type,
)

LAYOUTS = (ROW_MAJOR, Layout("padded", constant(3)), Layout("swizzled", constant(64)))

Solution = dict[Any, Any]


@dataclass(frozen=True)
class Hint:
    """How instances of a rule are to be, that it applies to them at all.

    types:      concrete types for free names of the left side
    values:     terms for free names, given the types of all
    views:      names of functions that must not compute
    """

    types: Callable[[Choose], Mapping[str, Type]] = lambda _: {}
    values: Callable[[Choose, Mapping[str, Type]], Mapping[str, Expr]] = lambda _, __: {}
    views: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sample:
    """A rule with numbers for its sizes, types for its types, and so on.

    apply: the rule as a user calls it, given the parameters that its left side does not determine
    """

    rule: Any
    apply: Callable[[Expr], Any]
    solution: Solution

    def __call__(self, term: Expr) -> Any:
        return self.apply(term)

    @cached_property
    def lhs(self) -> Expr:
        return substitute_sizes(self.rule.lhs, self.solution)

    @cached_property
    def rhs(self) -> Expr:
        return substitute_sizes(self.rule.rhs, self.solution)

    @cached_property
    def types(self) -> Mapping[str, Type]:
        """Those of the free names of the left side."""
        return {name: substitute_type(t, self.solution) for name, t in unsolved(self.rule).given.items()}

    @property
    def chosen(self) -> Mapping[str, Nat]:
        """The values of all parameters."""
        return {n: self.solution[u] for n, u in self.rule.sizes.items() if u in self.solution}


def sample(rule: RuleLike, choose: Choose, hint: Hint) -> Sample:
    """Raises ValueError where no numbers make all sizes of the rule what they have to be."""
    open_ = unsolved(rule)
    solution = _types(rule, open_, choose, hint.types(choose))
    solution |= _sizes(rule, open_, choose, solution)
    solution |= _orders(open_, choose, solution)
    given = {name: solution[rule.sizes[name]] for name in open_.needed if rule.sizes[name] in solution}
    return Sample(rule, rule.with_sizes(**given) if given else rule, solution)  # type: ignore[arg-type]  # a rule is called


def _types(rule: RuleLike, open_: Unsolved, choose: Choose, wanted: Mapping[str, Type]) -> Solution:
    """Those that a hint asks for, and others at random: small, numbers where only numbers will do."""
    solution: Solution = {}
    for name, type_ in wanted.items():
        _equate(open_.given[name], type_, solution)
    allowed = SCALAR_TYPES if rule.exact else (I32, F32)
    for unknown, kind in open_.kinds.items():
        if unknown in solution:
            continue
        match kind:
            case Kind.FUNCTION:
                pass
            case Kind.SPACE:
                solution[unknown] = choose.pick(tuple(Space))
            case Kind.LAYOUT:
                solution[unknown] = choose.pick(LAYOUTS)
            case Kind.FRAGMENT:
                solution[unknown] = choose.pick(tuple(FragmentKind))
            case _:
                solution[unknown] = data_type(choose, 0 if unknown in open_.scalars else 2, allowed)
    return solution


def _equate(pattern: Any, actual: Any, solution: Solution) -> None:
    """What the unknowns of a pattern have to be, that it is the actual type."""
    if isinstance(pattern, Unknown):
        solution[pattern] = actual
    elif isinstance(pattern, Nat):
        known = substitute_argument(pattern, solution)
        solved = solve(known, actual) if isinstance(known, Nat) else None
        solution |= {solved[0]: solved[1]} if solved else {}
    elif type(pattern) is type(actual) and hasattr(pattern, "__match_args__"):
        for name in pattern.__match_args__:
            _equate(getattr(pattern, name), getattr(actual, name), solution)


def _sizes(rule: RuleLike, open_: Unsolved, choose: Choose, solution: Solution) -> Solution:
    fixed = {u: v.value or 0 for u, v in solution.items() if isinstance(u, NatUnknown) and isinstance(v, Nat)}
    extents = {
        standing(u): elements(t)
        for u, t in solution.items()
        if isinstance(u, Unknown) and open_.kinds[u] is Kind.DATA and is_data(t)
    }
    found = open_.sizes.found(choose, fixed, extents)
    if found is None:
        raise ValueError(f"no sizes were found for an instance of `{rule.name}`")
    return dict(found)


def _orders(open_: Unsolved, choose: Choose, solution: Solution) -> Solution:
    """Permutations, with their inverses, for the orders that are left open."""
    found: Solution = {}
    for part in open_.orders:
        names = SPECIAL[part.name].arguments
        unknown = {n: a for n, a in zip(names, named(part, names), strict=True) if isinstance(a, Unknown)}
        if all(a in found for a in unknown.values()):
            continue
        (size,) = named(part, ("n",))
        drawn = SPECIAL[part.name].choose(choose, {NatVariable("n"): substitute_argument(size, solution)})
        found |= {a: drawn[n] for n, a in unknown.items()}
    return found
