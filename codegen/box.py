"""Bulk copies: the proof, from the index path, that a tile is a box of an array in global memory.

A box has extents in some of the array's dimensions, and one element in the others; its rows lie along the
innermost one. The copying unit gets the array and the box as a tensor map.
"""

from __future__ import annotations

from codegen import imperative as i
from codegen.buffers import dimensions
from codegen.launch import number
from codegen.paths import Resolver
from codegen.tensor_maps import map_of
from rise.errors import LaunchError, TranslationError
from rise.nat import Atom, Facts, Nat, NatVariable, constant, simplify, variable
from rise.source import Origin
from rise.types import Layout, Scalar, shape


def copied(r: Resolver, command: i.BulkCopy, facts: Facts) -> i.BulkCopy:
    """The copy, its map and the corner of its box."""
    type_ = command.value.type  # type: ignore[union-attr]  # arrays have types
    sizes, element = shape(type_)
    names = [f"box_{d}" for d in range(len(sizes))]
    inside = facts
    for name, size in zip(names, sizes, strict=True):
        inside = inside.with_range(name, 0, size)
    path = tuple(variable(name) for name in names)
    source = r.read(command.value, path, inside)
    target = r.write(command.target, path, inside)
    if not isinstance(source, i.Access) or source.buffer in r.shared or r.named.pending:
        raise _refused("it is computed, or not in global memory", command.origin)
    zero: dict[Atom, Nat] = {NatVariable(name): constant(0) for name in names}
    corner = tuple(simplify(n.substitute(zero), facts) for n in source.indices)
    box = _extents(source, corner, dict(zip(names, sizes, strict=True)), names, inside, command.origin)
    name = _map(r, source.buffer, box, _swizzle(r, target.buffer), element, command.origin)
    extents = tuple(zip(names, sizes, strict=True))
    tile = i.Tile(
        target.buffer, r.linear(target).substitute(zero), constant(0), True, target.indices, extents
    )
    barrier = r.write(command.barrier, (), facts)
    return i.BulkCopy(
        tile, i.Access(source.buffer, corner, source.type), barrier, name, corner[::-1], command.origin
    )


def _extents(
    source: i.Access,
    corner: tuple[Nat, ...],
    sizes: dict[str, Nat],
    names: list[str],
    facts: Facts,
    origin: Origin,
) -> tuple[int, ...]:
    """How many elements the box has in each dimension of the array: the tile's, in their order."""
    found: list[int] = []
    left = list(names)
    for index, start in zip(source.indices, corner, strict=True):
        rest = simplify(index - start, facts)
        if rest == constant(0):
            found.append(1)
        elif left and rest == variable(left[0]):
            found.append(number(sizes[left.pop(0)], "the size of a tile", origin))
        else:
            raise _refused(f"along a dimension of `{source.buffer}` its index is {index}", origin)
    if left:
        raise _refused("its elements are not in the order of the array", origin)
    return tuple(found)


def _map(
    r: Resolver, buffer: str, box: tuple[int, ...], swizzle: int, element: object, origin: Origin
) -> str:
    key = (buffer, box, swizzle)
    if key not in r.maps:
        extents = tuple(
            number(size, "the size of an array", origin) for size in dimensions(r.buffers[buffer])
        )
        if not isinstance(element, Scalar):
            raise _refused(f"its elements are of type `{element}`", origin)
        try:
            made = map_of(extents, NUMPY.get(element.name, element.name), box, swizzle)
        except LaunchError as error:
            raise TranslationError(
                "R0731", f"there is no bulk copy of this tile: {error.message}", origin
            ) from None
        r.maps[key] = i.MapParameter(r.named.fresh(f"{buffer}_map"), buffer, made)
    return r.maps[key].name


NUMPY = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i32": "int32",
}


def _swizzle(r: Resolver, buffer: str) -> int:
    match r.shared.get(buffer):
        case Layout("swizzled", Nat(value=int() as size)):
            return size
        case _:
            return 0


def _refused(why: str, origin: Origin) -> TranslationError:
    return TranslationError(
        "R0731",
        f"this tile is no box of an array in global memory: {why}",
        origin,
        "copy it with `copyAsync`",
    )
