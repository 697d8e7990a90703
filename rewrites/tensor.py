"""Rules that introduce tensor-core primitives (extended abstract, Listing 4), and rules about fragments."""

from __future__ import annotations

from rewrites.conditions import converts
from rewrites.match import Match
from rewrites.prologue import changes_an_operand, keeps_types
from rewrites.rule import Condition, Rule
from rewrites.rule import library_rule as rule
from rise.instructions import Family, Shape, family, instruction
from rise.nat import Nat
from rise.types import Fragment, Scalar, shape


def _shape(m: Nat, n: Nat, k: Nat) -> Shape | None:
    """As numbers; None where one of them is not known."""
    match m.value, n.value, k.value:
        case int(rows), int(columns), int(depth):
            return rows, columns, depth
        case _:
            return None


def has_instruction(match: Match) -> str | None:
    """a: m.k, b: n.k and c: m.n have shapes and types that an instruction has."""
    (m, k), operand = shape(match.terms["a"].type)
    (n, _), _ = shape(match.terms["b"].type)
    _, accumulator = shape(match.terms["c"].type)
    sizes = _shape(m, n, k)
    if not isinstance(operand, Scalar) or not isinstance(accumulator, Scalar):
        return "the elements are not numbers"
    if sizes is None or instruction(sizes, operand.name, accumulator.name) is None:
        return (
            f"there is no tensor-core instruction for {m}×{n}×{k}, operands of type `{operand}` and sums in"
            f" `{accumulator}`"
        )
    return None


def _tensorise(name: str, first: str, loaded: str, meaning: str, *conditions: Condition) -> Rule:
    """c + a·bᵀ, where w converts what is multiplied, and `first` is what is multiplied of an element of a."""
    return rule(
        name,
        "zip(c)(a) |> map(fun((cr, r) => zip(cr)(b) |> map(fun((x, col) => "
        f"x + (zip(r)(col) |> map(fun((p, q) => w({first}) * w(q))) |> reduce(+, 0))))))",
        f"tensorMatMulAdd({loaded})(b |> transpose |> asFragment)(c |> asFragment) |> asMatrix",
        meaning=meaning,
        exact=False,
        conditions=(converts("w"), *conditions, has_instruction),
    )


TENSORISE = _tensorise(
    "tensorise",
    "p",
    "a |> asFragment",
    "A product of two tiles, added to a third, as one tensor-core instruction.",
)
TENSORISE_COMPUTED = _tensorise(
    "tensorise, first operand computed",
    "g(p)",
    "a |> asFragment |> mapFragment(g)",
    "A product of two tiles, of which the first is changed when it is in registers.",
    changes_an_operand,
    keeps_types,
)
FRAGMENT_OF_MATRIX = rule(
    "asMatrix >> asFragment",
    "f |> asMatrix |> asFragment",
    "f",
    meaning="A fragment stored as a matrix and loaded again is the same fragment.",
)
STORED_FRAGMENT = rule(
    "asMatrix >> asFragment >> toMem",
    "f |> asMatrix |> asFragment |> toMem(Local)",
    "f",
    meaning="A stored fragment is not stored again.",
)
FRAGMENT_OF_CONSTANT = rule(
    "constant >> asFragment",
    "generate(fun(i => generate(fun(j => z)))) |> asFragment",
    "generateFragment(z)",
    meaning="A fragment of a constant matrix is filled with that constant.",
)


def accumulator_family(fragment: Fragment) -> Family | None:
    """The instructions that add to an accumulator of this type."""
    sizes = _shape(fragment.rows, fragment.columns, fragment.other)
    return None if sizes is None else family(sizes)
