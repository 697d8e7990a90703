"""The loops of a program as a picture: which loops are in which, how often they run, and who runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rise.expr import Apply, Expr, Primitive, call, children
from rise.nat import Nat
from rise.types import Space

# what stands in a picture besides loops: where values are stored, and what moves or multiplies
EFFECTS = frozenset(
    {
        "toMem", "copyAsync", "copyBulk", "asFragment", "asMatrix", "bulkStore",
        "tensorMatMulAdd", "tensorMatMul", "iterate",
    }
)  # fmt: skip
# the levels of hardware that the names of loops end in, in the order in which they are tried
LEVELS = ("Cluster", "Block", "WarpgroupThreads", "Warpgroup", "Warp", "Lane", "Threads", "Global")
LOOPS = ("map", "reduce", "scan", "generate")


@dataclass(frozen=True)
class Box:
    """A loop, or an effect, at a depth. `extent` is how often it runs, as text."""

    depth: int
    kind: str
    name: str
    extent: str


def nest(program: Expr) -> list[Box]:
    """The loops from the outside in, in the order in which a reader of the data flow meets them."""
    return list(_boxes(program, 0))


def _boxes(term: Expr, depth: int) -> Iterator[Box]:
    found = call(term) if isinstance(term, Apply) else None
    if found is None:
        for child in children(term):
            yield from _boxes(child, depth)
        return
    name, primitive, given = found
    box = _box(name, primitive, depth)
    functions, data = given[:1], given[1:]
    for argument in data:
        yield from _boxes(argument, depth)
    if box is not None:
        yield box
    for function in functions:
        yield from _boxes(function, depth + (box is not None and box.kind != "effect"))


def _box(name: str, primitive: Primitive, depth: int) -> Box | None:
    if name.startswith(LOOPS) and "Fragment" not in name:
        return Box(depth, _kind(name), name, _extent(primitive))
    return Box(depth, "effect", _called(name, primitive), "") if name in EFFECTS else None


def _kind(name: str) -> str:
    """Who runs the iterations; `open` where that is not decided."""
    level = next((level for level in LEVELS if level in name), None)
    if level is not None:
        return level.lower()
    return "sequential" if any(word in name for word in ("Seq", "Pipelined", "Role", "Unroll")) else "open"


def _extent(primitive: Primitive) -> str:
    """The number of iterations: the argument called n."""
    for parameter, argument in zip(primitive.declaration.scheme.parameters, primitive.arguments, strict=True):
        if parameter.name == "n" and isinstance(argument, Nat):
            return str(argument)
    return ""


def _called(name: str, primitive: Primitive) -> str:
    """`toMem(Shared)`: with the memory, which is what a reader wants to know."""
    spaces = [str(argument) for argument in primitive.arguments if isinstance(argument, Space)]
    return f"{name}({spaces[0]})" if spaces else name
