"""What operands of warpgroup products have to be: swizzled rows, and registers by known names."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element, swizzle
from rise.errors import TranslationError
from rise.nat import constant
from rise.source import Origin
from rise.types import Scalar


def check_operands(body: i.Command, news: Mapping[str, i.New]) -> None:
    """Raises TranslationError R0732 for an operand in shared memory, R0738 for one in registers.

    news: the declarations of buffers
    """
    for command in i.commands(body):
        if isinstance(command, i.Wgmma):
            for operand in (command.a, command.b):
                if isinstance(operand, i.Tile) and (new := news.get(operand.buffer)) is not None:
                    along_k = operand.row_major == (operand is command.a)
                    _check_operand(operand, new, along_k, command.origin)
    _check_indices(body, frozenset())


def _check_operand(tile: i.Tile, new: i.New, along_k: bool, origin: Origin) -> None:
    """An operand in shared memory has rows, along k or across it, of exactly one swizzle width."""
    element, pattern = inner_element(new.type), swizzle(new.layout)
    size = element.bytes if isinstance(element, Scalar) else 1
    if not pattern or tile.leading != constant(pattern // size):
        raise TranslationError(
            "R0732",
            f"`{tile.buffer}` is not an operand of wgmma: its rows must be swizzled, of 128, 64 or 32 bytes",
            origin,
            "copy it with `bulkCopy(swizzled(128))`, in panels of 128 bytes a row",
        )
    if not along_k and size != 2:
        raise TranslationError(
            "R0732",
            f"`{tile.buffer}` is not an operand of wgmma: rows of `{element}` must be contiguous along k",
            origin,
            "store the matrix transposed; only 16-bit elements may be contiguous along the other dimension",
        )


def _check_indices(command: i.Command, rolled: frozenset[str]) -> None:
    """Registers have no addresses: only unrolled loops may select the fragments of a product."""
    match command:
        case i.For(index, _, _, unroll):
            rolled = rolled if unroll else rolled | {index}
        case i.Wgmma(target, a):
            for access in (target, a):
                if isinstance(access, i.Access) and (names := _names(access) & rolled):
                    raise TranslationError(
                        "R0738",
                        f"a loop that is not unrolled selects a fragment of `{access.buffer}`: each product "
                        f"would have to wait for the one before (the index is `{min(names)}`)",
                        command.origin,
                        "use `mapSeqUnroll` or `reduceSeqUnroll` for the loop over fragments",
                    )
    for part in i.inner(command):
        _check_indices(part, rolled)


def _names(access: i.Access) -> set[str]:
    return {name for n in access.indices for name in n.variables}
