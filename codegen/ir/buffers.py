"""The layout of data in buffers: structures of arrays for pairs, row-major order for arrays."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.identifiers import derived
from codegen.ir.launch import number
from rise.errors import TranslationError
from rise.nat import Nat, constant
from rise.source import Origin
from rise.types import Array, Data, Index, Layout, Pair, Scalar, Space, Vector, shape

# the layout of a buffer that holds the mbarriers of a ring
BARRIERS = Layout("barriers")
MBARRIER = Scalar("u64")  # an mbarrier has this size in memory
# the swizzle widths that exist, in bytes
SWIZZLES = (32, 64, 128)


def members(name: str, type_: Data) -> list[tuple[str, Data]]:
    """The buffers that store a value: one, or those of the members of a pair."""
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
    """The type of memory in which a layout stores values of a type: padded rows are longer."""
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
    """Rows of a swizzled array are multiples of the swizzle width, within which chunks are permuted."""
    sizes, element = shape(type_)
    row = sizes[-1].value if sizes else None
    if size not in SWIZZLES or not isinstance(element, Scalar) or row is None:
        known = f"swizzling is for arrays of numbers, by {', '.join(map(str, SWIZZLES))} bytes"
        raise TranslationError("R0730", f"`{type_}` cannot be swizzled by {size} bytes", origin, known)
    if row * element.bytes % size:
        message = f"rows of {row * element.bytes} bytes cannot be swizzled by {size} bytes"
        raise TranslationError("R0730", message, origin, "make the rows a multiple of that long")


def swizzle(layout: Layout | None) -> int:
    """The swizzle width of a layout in bytes; 0 if it does not swizzle."""
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
    """The type inside all array dimensions."""
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


def in_block(new: i.New) -> Data:
    """The type of what a block has of a buffer: of a distributed one, an element."""
    whole = new.type
    return whole.element if new.space is Space.DISTRIBUTED and isinstance(whole, Array) else whole


def distributed(command: i.Command) -> frozenset[str]:
    """The arrays whose elements are in the shared memory of the blocks of a cluster."""
    news = (c for c in i.commands(command) if isinstance(c, i.New))
    return frozenset(new.name for new in news if new.space is Space.DISTRIBUTED)


def shared(command: i.Command) -> list[i.New]:
    """The buffers in shared memory that are allocated inside a command."""
    return [c for c in i.commands(command) if isinstance(c, i.New) and c.space is Space.SHARED]


def written(command: i.Command) -> frozenset[str]:
    """The buffers that a command writes."""
    targets = map(i.target_of, i.commands(command))
    return frozenset(target.buffer for target in targets if isinstance(target, i.Access | i.Tile))


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
