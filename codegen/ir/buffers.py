"""Data in buffers: an array of pairs is a pair of arrays, an array's elements lie row by row."""

from __future__ import annotations

from codegen.ir.identifiers import derived
from codegen.ir.launch import number
from rise.errors import TranslationError
from rise.nat import Nat, constant
from rise.source import Origin
from rise.types import Array, Data, Index, Layout, Pair, Scalar, Vector, shape

# of a buffer that is a ring of mbarriers
BARRIERS = Layout("barriers")
# bytes of a row of the patterns there are
SWIZZLES = (32, 64, 128)


def members(name: str, type_: Data) -> list[tuple[str, Data]]:
    """The buffers that a value is stored in: one, or those of the members of a pair."""
    sizes: list[Nat] = []
    inner = type_
    while isinstance(inner, Array):
        sizes.append(inner.size)
        inner = inner.element
    if not isinstance(inner, Pair):
        return [(name, type_)]
    parts: list[tuple[str, Data]] = []
    for member, part in (("fst", inner.first), ("snd", inner.second)):
        for size in reversed(sizes):
            part = Array(size, part)
        parts += members(derived(name, member), part)
    return parts


def dimensions(type_: Data) -> tuple[Nat, ...]:
    sizes: list[Nat] = []
    while isinstance(type_, Array | Vector):
        sizes.append(type_.size)
        type_ = type_.element
    return tuple(sizes)


def laid_out(type_: Data, layout: Layout, origin: Origin) -> Data:
    """The type of the memory in which values of a type lie as a layout says: padded rows are longer."""
    match layout:
        case Layout("rowMajor" | "barriers"):
            return type_
        case Layout("padded", Nat() as amount):
            return _longer(type_, amount)
        case Layout("swizzled", Nat(value=int() as size)):
            _check_swizzled(type_, size, origin)
            return type_
        case _:
            raise TranslationError("R0704", f"the layout `{layout}` has no translation yet", origin)


def _check_swizzled(type_: Data, size: int, origin: Origin) -> None:
    """Rows of a swizzled array are whole rows of the pattern: chunks of 16 bytes change places in each."""
    sizes, element = shape(type_)
    row = sizes[-1].value if sizes else None
    if size not in SWIZZLES or not isinstance(element, Scalar) or row is None:
        known = f"arrays of numbers are swizzled by {', '.join(map(str, SWIZZLES))} bytes"
        raise TranslationError("R0730", f"there is no swizzling of `{type_}` by {size} bytes", origin, known)
    if row * element.bytes % size:
        message = f"rows of {row * element.bytes} bytes cannot be swizzled by {size} bytes"
        raise TranslationError("R0730", message, origin, "rows are to be multiples of that")


def swizzle(layout: Layout | None) -> int:
    """By how many bytes a layout swizzles rows; 0 where it does not."""
    match layout:
        case Layout("swizzled", Nat(value=int() as size)):
            return size
        case _:
            return 0


def _longer(type_: Data, amount: Nat) -> Data:
    match type_:
        case Array(size, Array() as rows):
            return Array(size, _longer(rows, amount))
        case Array(size, element):
            return Array(size + amount, element)
        case _:
            return type_


def inner_element(type_: Data) -> Data:
    """What the dimensions are of."""
    while isinstance(type_, Array | Vector):
        type_ = type_.element
    return type_


def flatten(indices: tuple[Nat, ...], sizes: tuple[Nat, ...]) -> Nat:
    total = constant(0)
    for index, size in zip(indices, sizes, strict=False):
        total = total * size + index
    for size in sizes[len(indices) :]:
        total = total * size
    return total


def bytes_of(type_: Data, origin: Origin = None) -> int:
    """The size of a value in memory."""
    total = 1
    while isinstance(type_, Array):
        total *= number(type_.size, "the size of a buffer", origin)
        type_ = type_.element
    if isinstance(type_, Scalar):
        return total * type_.bytes
    if isinstance(type_, Index):
        return total * 4
    raise TranslationError("R0715", f"`{type_}` cannot be stored in memory")
