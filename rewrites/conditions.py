"""Side conditions of rules: each takes a match and returns why the rule must not apply, or None.

A condition has a name that reads as a statement about the match, and a reason why the rule needs it;
`rise rules NAME` prints both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewrites.match import Match, describe
from rise.expr import Expr, Identifier, Lambda, Literal, Primitive, call, children
from rise.nat import Nat
from rise.normal import is_view
from rise.types import Array, Function, Index, Pair, Scalar, Type, shape


@dataclass(frozen=True)
class SideCondition:
    """A statement about a match.

    name:    what has to hold, `f computes`
    meaning: why the rule needs it
    check:   None where it holds, else the reason for a failure
    """

    name: str
    meaning: str
    check: Callable[[Match], str | None]

    def __call__(self, match: Match) -> str | None:
        return self.check(match)


def described(condition: Callable[[Match], str | None]) -> tuple[str, str]:
    """Name and meaning of a condition; of a plain function, its name and the first line of its docstring."""
    if isinstance(condition, SideCondition):
        return condition.name, condition.meaning
    name = getattr(condition, "__name__", "condition").strip("_").replace("_", " ")
    return name, (condition.__doc__ or "").strip().split("\n")[0]


def result(function: Expr) -> Expr:
    """What a curried function gives, over its parameters."""
    while isinstance(function, Lambda):
        function = function.body
    return function


# --- what a function does -----------------------------------------------------------------------------

RESHAPING = frozenset({"asMatrix", "asColumn", "asFragment"})


def reshapes(term: Expr) -> bool:
    """Whether a term only changes the form of data: a view, or a tile as a fragment and back."""
    if isinstance(term, Primitive):
        return term.name in RESHAPING or is_view(term)
    return isinstance(term, (Identifier, Literal)) or all(map(reshapes, children(term)))


def only_reshapes(match: Match, name: str) -> bool:
    function = match.terms[name]
    return isinstance(function, Lambda) and reshapes(function.body)


def reshaping(*names: str) -> SideCondition:
    """One of the functions only changes the form of data."""
    text = " or ".join(names)
    refusal = "the function computes" if len(names) == 1 else "both functions compute"

    def check(match: Match) -> str | None:
        return None if any(only_reshapes(match, name) for name in names) else refusal

    return SideCondition(
        f"{text} only changes the form of data", "Otherwise work would be moved, or done twice.", check
    )


def computing(name: str) -> SideCondition:
    """The function does more than change the form of data."""

    def check(match: Match) -> str | None:
        return "the function only changes the form of data" if only_reshapes(match, name) else None

    return SideCondition(
        f"{name} computes",
        "What only changes the form of data is a view, which needs no level.",
        check,
    )


@dataclass(frozen=True)
class Converts(SideCondition):
    """The function called `function` converts numbers to another type, or leaves them as they are."""

    function: str = ""


def converts(name: str) -> Converts:
    def check(match: Match) -> str | None:
        function = match.terms[name]
        body = function.body if isinstance(function, Lambda) else function
        applied = call(body)
        operand = applied[2][0] if applied is not None and applied[0] == "cast" else body
        return None if isinstance(operand, Identifier) else f"`{name}` does more than convert a number"

    meaning = "Instructions convert what they multiply to the type in which they add, and nothing else."
    return Converts(f"{name} is a conversion", meaning, check, name)


def changes(name: str, reason: str) -> SideCondition:
    """The function is not the identity."""

    def check(match: Match) -> str | None:
        return reason if isinstance(result(match.terms[name]), Identifier) else None

    return SideCondition(
        f"{name} is not the identity", "Otherwise the rule would apply to its own result for ever.", check
    )


def _only_pairs(term: Expr) -> bool:
    applied = call(term)
    if applied is None:
        return isinstance(term, Identifier)
    return applied[0] in ("pair", "fst", "snd") and all(_only_pairs(x) for x in applied[2])


def _does_more_than_pair(match: Match) -> str | None:
    return "the function only pairs its arguments" if _only_pairs(result(match.terms["f"])) else None


MORE_THAN_PAIRS = SideCondition(
    "f does more than pair its arguments", "Otherwise there is nothing to separate.", _does_more_than_pair
)

# --- what undefined elements may do -------------------------------------------------------------------

PARTIAL = frozenset({"natAsIndex", "foreignFunction"})
PARTIAL_ON_INTEGERS = frozenset({"div", "mod"})


def is_partial(term: Expr) -> bool:
    """Whether a term is an operation that is not defined for every value of its parameters' types."""
    if not isinstance(term, Primitive):
        return False
    integers = any(isinstance(a, Scalar) and not a.is_float for a in term.arguments)
    return term.name in PARTIAL or (integers and term.name in PARTIAL_ON_INTEGERS)


def partial_parts(term: Expr) -> Iterator[Expr]:
    """The operations in a term that are not defined for every value; a number in range is an index."""
    match call(term):
        case "natAsIndex", head, [Literal(int(number))] if _is_below(number, head.arguments[0]):
            return
    if is_partial(term):
        yield term
    for child in children(term):
        yield from partial_parts(child)


def _is_below(number: int, size: object) -> bool:
    return isinstance(size, Nat) and size.value is not None and 0 <= number < size.value


def holds_indices(type_: Type) -> bool:
    """Whether there are indices in data of a type."""
    match type_:
        case Index():
            return True
        case Array(_, element):
            return holds_indices(element)
        case Pair(first, second):
            return holds_indices(first) or holds_indices(second)
        case _:
            return False


def total(name: str) -> SideCondition:
    """The function gives something for every value of its parameter's type, also for undefined ones."""

    def check(match: Match) -> str | None:
        function = match.terms[name]
        if isinstance(function.type, Function) and holds_indices(function.type.parameter):
            return "an undefined index may be out of range"
        partial = next(partial_parts(function), None)
        return f"{describe(partial)} is not defined for every value" if partial else None

    return SideCondition(
        f"{name} is total", "It is applied to elements that nothing defines; they are dropped later.", check
    )


# --- types --------------------------------------------------------------------------------------------


def elements_are_numbers(name: str) -> SideCondition:
    """The innermost elements of an array of arrays are numbers."""

    def check(match: Match) -> str | None:
        element = shape(match.terms[name].type)[1]
        return None if isinstance(element, Scalar) else f"`{element}` is not a number"

    return SideCondition(f"elements of {name}: numbers", "Only numbers can be in a vector.", check)


def numbers(*names: str) -> SideCondition:
    """The elements of the arrays, or what the functions give, are numbers."""

    def check(match: Match) -> str | None:
        for name in names:
            type_ = result(match.terms[name]).type
            element = type_.element if isinstance(type_, Array) else type_
            if not isinstance(element, Scalar):
                return f"`{element}` is not a number"
        return None

    return SideCondition(f"{' and '.join(names)}: numbers", "Only numbers can be in a vector.", check)
