"""Programs meet NumPy: the layout of a type, checked inputs, plain results, random inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from rise.errors import EvaluationError
from rise.frozen import filled_at_once
from rise.interpret import tf32
from rise.interpret.instance import number
from rise.interpret.lazily import np
from rise.interpret.value import Leaf, Tree
from rise.numbers import rounded, wrapped
from rise.types import TF32, Array, Fragment, Index, Pair, Scalar, Type, Vector, is_data

if TYPE_CHECKING:
    import numpy

Plain = Any  # an array, a scalar of NumPy, or a pair of these: what a user passes and gets


@cache
def dtype_of(scalar: Scalar) -> numpy.dtype[Any]:
    """The NumPy type of a scalar; bf16 comes from ml_dtypes, tf32 is stored as float32."""
    if scalar.name == "bf16":
        import ml_dtypes  # late: few programs need it

        bfloat16: numpy.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    if scalar.name == "bool":
        return np.dtype(np.bool_)
    kind = {"f": "float", "t": "float", "i": "int", "u": "uint"}[scalar.name[0]]
    return np.dtype(f"{kind}{scalar.bits}")


def stored_as(array: Plain, scalar: Scalar) -> numpy.ndarray[Any, Any]:
    """Numbers converted to a scalar type, rounded once; to tf32 from f32, by a second rounding."""
    numbers = np.asarray(array)
    if scalar.name == "bf16" and numbers.dtype.itemsize >= 4 and numbers.dtype != np.float32:
        numbers = _to_odd(_without_low_bits(numbers).astype(np.float64))
    converted = numbers.astype(dtype_of(scalar))
    return tf32.rounded(converted) if scalar == TF32 else converted


def _without_low_bits(numbers: Plain) -> Plain:
    """Integers with more digits than f64 has, with one bit for all that are lost; others as they are."""
    if numbers.dtype.kind not in "iu" or numbers.dtype.itemsize < 8:
        return numbers
    low = numbers & 0xFFF
    fewer = numbers - low + np.where(low != 0, 0x800, 0).astype(numbers.dtype)
    return np.where((numbers > 2**53) | (numbers < -(2**53)), fewer, numbers)


def _to_odd(numbers: Plain) -> Plain:
    """f64 as f32, with the last bit set where any are lost: rounding that again is rounding once.

    ml_dtypes goes to bf16 through f32, and would round twice.
    """
    with np.errstate(over="ignore", under="ignore"):
        nearest = numbers.astype(np.float32)
    beyond = np.absolute(nearest) > np.absolute(numbers)
    towards_zero = np.where(beyond, np.nextafter(nearest, np.float32(0)), nearest)
    bits = towards_zero.view(np.uint32)
    return np.where((nearest == numbers) | np.isnan(numbers), bits, bits | np.uint32(1)).view(np.float32)


def literal_number(value: int | float | bool, scalar: Scalar) -> Any:
    """A literal's number: an integer wraps, a float is rounded once."""
    if scalar.name == "bool":
        return np.bool_(value)
    exact = rounded(value, scalar) if scalar.is_float else wrapped(int(value), scalar)
    return dtype_of(scalar).type(exact)


# --- layout ---------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class Block:
    """One array of a layout: its shape and what it holds."""

    shape: tuple[int, ...]
    element: Scalar | Index

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Indices are i64."""
        return dtype_of(self.element if isinstance(self.element, Scalar) else Scalar("i64"))


Layout = Block | tuple["Layout", "Layout"]


def layout(type_: Type, outer: tuple[int, ...] = ()) -> Layout:
    """How data of a type is stored: an array of pairs as a pair of arrays."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return layout(element, (*outer, number(size)))
        case Fragment(rows, columns, _, element, _):
            return layout(element, (*outer, number(rows), number(columns)))
        case Pair(first, second):
            return layout(first, outer), layout(second, outer)
        case Scalar() | Index():
            return Block(outer, type_)
        case _:
            message = f"{type_} is no data with known sizes"
            raise EvaluationError("R0506", message, hint="apply the program to its sizes and types")


def shape_of(type_: Type) -> tuple[int, ...]:
    """The shape of the array that holds data of a type; of an array of pairs, the outer sizes."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return (number(size), *shape_of(element))
        case Fragment(rows, columns, _, element, _):
            return (number(rows), number(columns), *shape_of(element))
        case _:
            return ()


def elements(type_: Type) -> int:
    """How many scalars data of a type consists of."""
    return _scalars(layout(type_))


def _scalars(of: Layout) -> int:
    return prod(of.shape) if isinstance(of, Block) else _scalars(of[0]) + _scalars(of[1])


# --- inputs and results ---------------------------------------------------------------------------


def checked_input(name: str, type_: Type, value: Plain) -> Tree:
    """The input as a value, if it is what the parameter's type says."""
    if not is_data(type_):
        raise EvaluationError("R0507", f"`{name}` is a function ({type_}); an input is data")
    return _checked(name, layout(type_), value)


def _checked(name: str, expected: Layout, value: Plain) -> Tree:
    if isinstance(expected, Block):
        return Leaf(_checked_array(name, expected, value), 0)
    if not isinstance(value, tuple) or len(value) != 2:
        message = f"`{name}` is a pair; found {_describe(value)}"
        raise EvaluationError("R0507", message, hint="pass a tuple of two inputs")
    first, second = expected
    return _checked(f"{name}.0", first, value[0]), _checked(f"{name}.1", second, value[1])


def _checked_array(name: str, expected: Block, value: Plain) -> numpy.ndarray[Any, Any]:
    if isinstance(value, bool | int | float):
        value = _from_number(name, expected, value)
    if not isinstance(value, np.ndarray | np.generic):
        message = f"`{name}` is to be a NumPy array or a number; found {_describe(value)}"
        raise EvaluationError("R0507", message, hint="numpy.asarray makes an array of a sequence")
    array = np.asarray(value)
    if array.shape != expected.shape:
        message = f"`{name}` has the wrong shape: expected {expected.shape}, found {array.shape}"
        raise EvaluationError("R0501", message)
    if array.dtype != expected.dtype and not _holds_indices(expected, array):
        message = f"`{name}` has the wrong type: expected {expected.element} "
        message += f"(numpy {expected.dtype}), found {array.dtype}"
        hint = f"{name}.astype({str(expected.dtype)!r}) converts it"
        raise EvaluationError("R0502", message, hint=hint)
    if expected.element == TF32 and (refusal := tf32.refusal(name, array)):
        raise EvaluationError("R0511", refusal, hint=tf32.HINT)
    return array.astype(expected.dtype, copy=False)


def _holds_indices(expected: Block, array: numpy.ndarray[Any, Any]) -> bool:
    return isinstance(expected.element, Index) and array.dtype.kind in "iu"


def _from_number(name: str, expected: Block, value: bool | int | float) -> Plain:
    """A Python number as the scalar wanted, if it is one without loss of kind or range."""
    dtype = expected.dtype
    is_float = isinstance(expected.element, Scalar) and expected.element.is_float
    fits = isinstance(value, bool) == (dtype.kind == "b") and (is_float or not isinstance(value, float))
    try:
        return np.array(value, dtype) if fits else np.array(value)
    except OverflowError:
        message = f"`{name}` is out of the range of {expected.element}: {value}"
        raise EvaluationError("R0502", message) from None


def _describe(value: object) -> str:
    return f"a {type(value).__name__}"


def plain(tree: Tree) -> Plain:
    """A result as arrays of its own, scalars of NumPy, and tuples."""
    if isinstance(tree, Leaf):
        return np.array(tree.array, order="C")[()]
    return plain(tree[0]), plain(tree[1])


# --- random inputs --------------------------------------------------------------------------------


def random_inputs(parameters: Sequence[tuple[str, Type]], seed: int, exact: bool) -> list[Plain]:
    """NumPy inputs for named parameters, of the shapes of their types; tuples for pairs.

    `exact`: integers in -4..4, so that f32 sums have no rounding. Otherwise floats are standard normal. The
    input of a parameter depends only on the seed, its position and its type.
    """
    streams = np.random.SeedSequence(seed).spawn(len(parameters))
    return [
        random_input(type_, np.random.default_rng(stream), exact)
        for (_, type_), stream in zip(parameters, streams, strict=True)
    ]


def random_input(type_: Type, generator: numpy.random.Generator, exact: bool) -> Plain:
    """The generator's next input of a type; see `random_inputs`."""
    return _random(layout(type_), generator, exact)


def _random(wanted: Layout, generator: numpy.random.Generator, exact: bool) -> Plain:
    if not isinstance(wanted, Block):
        return _random(wanted[0], generator, exact), _random(wanted[1], generator, exact)
    if isinstance(wanted.element, Index):
        below = max(number(wanted.element.size), 1)
        return np.asarray(generator.integers(0, below, wanted.shape))
    if wanted.element.is_float and not exact:
        return stored_as(generator.standard_normal(wanted.shape), wanted.element)
    lowest = 0 if wanted.element.name.startswith(("u", "b")) and not wanted.element.is_float else -4
    highest = 1 if wanted.element.name == "bool" else 4
    return np.asarray(generator.integers(lowest, highest + 1, wanted.shape)).astype(wanted.dtype)
