"""Figures that a paper computes and does not measure: curves over the sizes of matrices (paper 002)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Curves = Mapping[str, Mapping[int, float]]

PRODUCTS = 2 * 16**3  # floating-point operations of one tensor-core instruction, whatever its shape


def reduction(block: tuple[int, int], instruction: tuple[int, int]) -> float:
    """By which factor larger blocks reduce the traffic of A and B (paper 002, §IV.B)."""
    (bm, bn), (tm, tn) = block, instruction
    return bm * bn * (tm + tn) / (tm * tn * (bm + bn))


def traffic() -> Curves:
    """Figure 5: square blocks up to 128, for the two shapes of instructions."""
    return {
        f"{m} × {n}": {size: reduction((size, size), (m, n)) for size in range(m, 129, m)}
        for m, n in ((16, 16), (32, 8))
    }


def utilisation() -> Curves:
    """Figure 14: the part of an instruction that n × n products use, several at once (paper 002, §VII.C)."""
    return {"16 × 16 × 16": {n: 16 // n * 2 * n**3 / PRODUCTS for n in range(1, 17)}}


FORMULAS: Mapping[str, Callable[[], Curves]] = {"traffic": traffic, "utilisation": utilisation}
