"""Operands of which a primitive asks more than its scheme says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rise.expr import Expr, Identifier, Lambda, Literal, Primitive, apply
from rise.nat import Nat, NatVariable, nat, remainder, variable
from rise.primitives.declare import primitive
from rise.testing.choose import Choose
from rise.types import BOOL, F32, F64, I32, TF32, Argument, Data, Index, NatFunction, Scalar, Variable

Operands = Mapping[int, Expr]
Solution = Mapping[Any, Any]  # by Atom or Variable: an argument of its kind
ELEMENT = Variable("t")


def literal(value: int | float | bool, type_: Scalar) -> Literal:
    return Literal(float(value) if type_.is_float else value, type_)


def number_of(value: int | float | bool, type_: Scalar) -> Expr:
    """A literal; of tf32, which has none, the conversion of one."""
    if type_ == TF32:
        return apply(Primitive(primitive("cast"), (F32, TF32)), literal(value, F32))
    return literal(value, type_)


def range_of(type_: Scalar) -> tuple[int | float, int | float]:
    """The smallest and the largest number of a scalar type."""
    if type_.is_float:
        return float("-inf"), float("inf")
    if type_.name.startswith("u"):
        return 0, 2**type_.bits - 1
    return -(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1


def _monoid(choose: Choose, solution: Solution) -> Operands | None:
    """An associative, commutative operator with its neutral element. Products of floats would round."""
    type_ = solution[ELEMENT]
    if not isinstance(type_, Scalar) or type_ == TF32 or solution.get(Variable("s"), type_) != type_:
        return None
    if type_ == BOOL:
        name, neutral = choose.pick((("and", True), ("or", False)))
        return {0: Primitive(primitive(name), ()), 1: Literal(neutral, BOOL)}
    lowest, highest = range_of(type_)
    monoids: list[tuple[str, int | float]] = [("add", 0), ("max", lowest), ("min", highest)]
    if not type_.is_float:
        monoids.append(("mul", 1))
    name, unit = choose.pick(monoids)
    return {0: _operator(choose, name, type_), 1: literal(unit, type_)}


def _operator(choose: Choose, name: str, type_: Data) -> Expr:
    """The primitive itself, or the same as a function of two parameters."""
    operator = Primitive(primitive(name), (type_,))
    if not choose.one_in(3):
        return operator
    first, second = Identifier("acc", type_), Identifier("y", type_)
    return Lambda(first, Lambda(second, apply(operator, first, second)))


def _divisor(choose: Choose, solution: Solution) -> Operands | None:
    type_ = solution[ELEMENT]
    return {1: literal(choose.pick((1, 2, 3, 7)), type_)} if isinstance(type_, Scalar) else None


def _exponent(choose: Choose, solution: Solution) -> Operands | None:
    type_ = solution[ELEMENT]
    return {1: literal(choose.below(4), type_)} if isinstance(type_, Scalar) else None


def _below(choose: Choose, solution: Solution) -> Operands | None:
    size = solution[NatVariable("n")]
    return {0: literal(choose.below(size.value or 1), I32)} if isinstance(size, Nat) else None


def _permutation(choose: Choose, solution: Solution) -> Operands | None:
    """All indices, in some order."""
    order = _some_order(choose, solution)
    return {0: _indices(order, len(order))} if order else None


def _some_order(choose: Choose, solution: Solution) -> list[int]:
    """Empty where there are too many to write."""
    size = solution[NatVariable("n")]
    left = list(range(size.value or 0)) if isinstance(size, Nat) else []
    return [left.pop(choose.below(len(left))) for _ in range(len(left))] if len(left) <= 8 else []


def _indices(indices: list[int], size: int) -> Expr:
    below = Index(nat(size))
    array = Primitive(primitive("makeArray").member(len(indices)), (below,))
    return apply(array, *(Literal(index, below) for index in indices))


def _inverse_permutations(choose: Choose, solution: Solution) -> Operands | None:
    """All indices, in some order, and where each of them is."""
    owners = _some_order(choose, solution)
    places = [owners.index(element) for element in range(len(owners))]
    return {0: _indices(owners, len(owners)), 1: _indices(places, len(owners))} if owners else None


def _all(_: Choose, solution: Solution) -> Operands | None:
    size = solution[NatVariable("n")]
    return {0: Literal(size.value or 0, Index(size + 1))} if isinstance(size, Nat) else None


def _all_of_each(_: Choose, solution: Solution) -> Operands | None:
    match solution[NatVariable("n")], solution[NatVariable("m")]:
        case Nat(value=int(rows)), Nat(value=int(size)) if 0 < rows <= 8:
            return {0: _indices([size] * rows, size + 1)}
    return None


def _as_many(_: Choose, solution: Solution) -> Mapping[str, Argument]:
    """Each place gets an element."""
    return {"n": solution[NatVariable("m")]}


def _numbers(choose: Choose, solution: Solution) -> Operands | None:
    """Nothing but that both types are of numbers."""
    types = [solution[Variable(n)] for n in "st"]
    return {} if all(isinstance(t, Scalar) and t != BOOL for t in types) else None


def _narrow(choose: Choose, solution: Solution) -> Operands | None:
    """The interpreter rounds `fma` of f64 within a hair, not once."""
    return None if solution[ELEMENT] == F64 else {}


def _windows(choose: Choose, solution: Solution) -> Operands | None:
    """Each is some elements after the one before."""
    return {} if solution[NatVariable("sp")] != nat(0) else None


def _inverses(choose: Choose, solution: Solution) -> Mapping[str, Argument]:
    """A permutation of the indices and its inverse: backwards, or all moved on by some."""
    size: Nat = solution[NatVariable("n")]
    i = variable("i")
    if choose.one_in(2):
        backwards = NatFunction("i", size - 1 - i)
        return {"f": backwards, "finv": backwards}
    step = choose.below(size.value or 1)
    there, back = (remainder(i + by, size) for by in (step, (size.value or 1) - step))
    return {"f": NatFunction("i", there), "finv": NatFunction("i", back)}


@dataclass(frozen=True)
class Special:
    """The operands, by position, and the dependent arguments, by name, that are made here.

    make, choose: how; `make` gives None where the primitive cannot be used with these types
    written:      type arguments that the notation shows, `f32(x)`
    """

    operands: tuple[int, ...] = ()
    make: Callable[[Choose, Solution], Operands | None] = lambda _, __: {}
    arguments: tuple[str, ...] = ()
    choose: Callable[[Choose, Solution], Mapping[str, Argument]] = lambda _, __: {}
    written: tuple[str, ...] = ()


SPECIAL: Mapping[str, Special] = {
    "reduce": Special((0, 1), _monoid),
    "scan": Special((0, 1), _monoid),
    "div": Special((1,), _divisor),
    "mod": Special((1,), _divisor),
    "pow": Special((1,), _exponent),
    "fma": Special((), _narrow),
    "cast": Special(written=("t",)),
    "slide": Special((), _windows),
    "scatter": Special((0,), _permutation, ("n",), _as_many),
    "scatterBy": Special((0, 1), _inverse_permutations, ("n",), _as_many),
    "prefix": Special((0,), _all),
    "prefixes": Special((0,), _all_of_each),
    "natAsIndex": Special((0,), _below),
    "reorder": Special(arguments=("f", "finv"), choose=_inverses),
    "tensorMatMulAdd": Special((), _numbers),
}
