"""Bytes that a kernel moves at each level of memory, and operations, counted from its loops.

Each access counts as often as the loops around it run; a condition counts as true. So the figures are upper
bounds where tiles stand over the end of an array. Nothing is known of what caches keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, inner_element
from codegen.ir.fragments import known_shape
from codegen.ir.kernel import Kernel
from rise.types import Array, Data, Fragment, FragmentKind, Index, Scalar, Space, Vector

LEVELS = ("memory, read", "memory, written", "shared, read", "shared, written")


@dataclass(frozen=True)
class Traffic:
    """bytes:      moved, by level, for the whole grid, through all caches
    compulsory: bytes of the inputs and the outputs, once each
    products:   operations of tensor cores; scalar: of all others
    """

    bytes: dict[str, int]
    compulsory: int
    products: int
    scalar: int

    @property
    def operations(self) -> int:
        return self.products + self.scalar

    @property
    def intensity(self) -> float:
        """Operations for each byte of memory, where every byte moves once."""
        return self.operations / max(self.compulsory, 1)


NAMES = {Space.GLOBAL: "memory", Space.SHARED: "shared", Space.DISTRIBUTED: "shared"}


def traffic(kernel: Kernel) -> Traffic | None:
    """What a kernel moves; None where the number of its iterations is known at launch only."""
    function = dict(kernel.stages)["kernel"]
    spaces = {v.name: Space.GLOBAL for v in (*function.outputs, *function.inputs)}
    spaces |= {c.name: c.space for c in i.commands(function.body) if isinstance(c, i.New)}
    found: Counter[str] = Counter()
    try:
        for command, times in _executed(function.body, 1):
            for what, amount in _moved(command, spaces):
                found[what] += amount * times
        compulsory = sum(_bytes(v.type) for v in (*function.outputs, *function.inputs))
    except ValueError:
        return None
    moved = {level: found[level] for level in LEVELS if found[level]}
    return Traffic(moved, compulsory, found["products"], found["scalar"])


def _executed(command: i.Command, times: int) -> Iterator[tuple[i.Command, int]]:
    """Each command without others inside, and how often it is executed. ValueError where that is open."""
    if isinstance(command, i.For | i.ParallelFor):
        if command.count.value is None:
            raise ValueError("the number of iterations is open")
        times *= command.count.value
    if isinstance(command, i.ForFragment):
        times *= prod(_extents(command.fragment))
    inner = i.inner(command)
    for part in inner:
        yield from _executed(part, times)
    if not inner:
        yield command, times


def _moved(command: i.Command, spaces: dict[str, Space]) -> Iterator[tuple[str, int]]:
    """What one execution moves and computes."""
    target = i.target_of(command)
    for access in i.accesses(command):
        space, way = spaces.get(access.buffer), "written" if access is target else "read"
        name = NAMES.get(space) if space else None
        if name is not None:
            yield f"{name}, {way}", _bytes(access.type)
    match command:
        case i.MmaFragment(i.Access(_, _, Fragment() as fragment)):
            yield "products", 2 * prod(known_shape(fragment))
        case i.Wgmma(i.Access(_, _, Fragment() as fragment)):
            yield "products", 2 * prod(known_shape(fragment))
        case i.Assign():
            yield "scalar", sum(1 for _ in i.own(command, i.Operator))


def _extents(fragment: Fragment) -> tuple[int, int]:
    """Rows and columns."""
    m, n, k = known_shape(fragment)
    match fragment.kind:
        case FragmentKind.A:
            return m, k
        case FragmentKind.B:
            return k, n
        case FragmentKind.COLUMN:
            return m, 1
        case _:
            return m, n


def _bytes(type_: Data) -> int:
    """Of a value. ValueError where its size is open."""
    sizes = [size.value for size in dimensions(type_)] if isinstance(type_, Array) else []
    element = inner_element(type_)
    if isinstance(type_, Vector):
        sizes.append(type_.size.value)
    if any(size is None for size in sizes):
        raise ValueError("the size of an array is open")
    count = prod(size for size in sizes if size is not None)
    match element:
        case Scalar():
            return count * element.bytes
        case Fragment():
            rows, columns = _extents(element)
            return (
                count * rows * columns * (element.element.bytes if isinstance(element.element, Scalar) else 4)
            )
        case Index():
            return count * 4
        case _:
            return 0
