"""Checks the alignment of the tiles that fragments are loaded from and stored to as a whole.

For WMMA fragments, CUDA requires that a tile start at a multiple of 32 bytes and that its leading dimension
be a multiple of 16 bytes. Lanes move other fragments, with accesses as wide as the alignment allows. Inputs,
results and all buffers in shared memory start at a multiple of 32 bytes.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from rise.errors import TranslationError
from rise.nat import Nat, divides
from rise.types import Fragment, Scalar

START, DISTANCE = 32, 16  # bytes


def check_tile_alignment(command: i.Command) -> None:
    """Raises TranslationError R0737 for the first tile that may be misaligned."""
    for part in i.commands(command):
        match part:
            case i.LoadFragment(fragment, _, i.Tile() as tile) | i.StoreFragment(fragment, i.Tile() as tile):
                _check(tile, fragment, part)
            case _:
                pass


def _check(tile: i.Tile, fragment: Fragment, command: i.LoadFragment | i.StoreFragment) -> None:
    size = fragment.element.bytes if isinstance(fragment.element, Scalar) else 1
    wrong = ""
    if not divides(START // size, tile.offset):
        wrong = f"it starts at element {tile.offset}, which may not be a multiple of {START} bytes"
    elif not divides(DISTANCE // size, tile.leading):
        wrong = f"its rows are {tile.leading} elements apart, which may not be a multiple of {DISTANCE} bytes"
    if wrong:
        raise TranslationError(
            "R0737",
            f"a fragment of {_shape(fragment)} of `{fragment.element}` is moved as a whole, and its tile of "
            f"`{shown(tile.buffer)}` is not aligned: {wrong}",
            command.origin,
            "use fragments that lanes move, 16×8×16, or wider ones with rows of 32 bytes",
        )


def _shape(fragment: Fragment) -> str:
    sizes: tuple[Nat, ...] = (fragment.rows, fragment.columns)
    return "×".join(map(str, sizes))
