"""The meaning of every example in NumPy: `REFERENCES[file, definition]`, which the tests compare with."""

from __future__ import annotations

from collections.abc import Mapping

from references import arrays, attention, fused, groups, images, matrices, science
from references.reference import Reference, References

_FILES: Mapping[str, References] = {
    "attention.rise": attention.ATTENTION,
    "attention_f32.rise": science.ATTENTION,
    "batches.rise": matrices.BATCHES,
    "clustering.rise": science.CLUSTERING,
    "complex_numbers.rise": science.COMPLEX_NUMBERS,
    "convolutions.rise": images.CONVOLUTIONS,
    "copies.rise": arrays.COPIES,
    "finance.rise": science.FINANCE,
    "fourier.rise": science.FOURIER,
    "fused.rise": fused.FUSED,
    "game_of_life.rise": images.GAME_OF_LIFE,
    "gemm.rise": matrices.GEMM,
    "generators.rise": arrays.GENERATORS,
    "groups.rise": groups.GROUPS,
    "heat.rise": images.HEAT,
    "histograms.rise": science.HISTOGRAMS,
    "hopper.rise": matrices.HOPPER,
    "images.rise": images.IMAGES,
    "kernels.rise": arrays.KERNELS,
    "linear_algebra.rise": matrices.LINEAR_ALGEBRA,
    "mandelbrot.rise": science.MANDELBROT,
    "matrices.rise": matrices.MATRICES,
    "nbody.rise": science.NBODY,
    "networks.rise": science.NETWORKS,
    "padding.rise": arrays.PADDING,
    "polynomials.rise": science.POLYNOMIALS,
    "products.rise": matrices.PRODUCTS,
    "reduced_rows.rise": fused.REDUCED_ROWS,
    "reductions.rise": arrays.REDUCTIONS,
    "reordering.rise": arrays.REORDERING,
    "scans.rise": arrays.SCANS,
    "sharing.rise": arrays.SHARING,
    "solvers.rise": matrices.SOLVERS,
    "sparse.rise": matrices.SPARSE,
    "statistics.rise": science.STATISTICS,
    "stencils_1d.rise": images.STENCILS_1D,
    "stencils_2d.rise": images.STENCILS_2D,
    "stencils_3d.rise": images.STENCILS_3D,
}

REFERENCES: Mapping[tuple[str, str], Reference] = {
    (file, name): reference for file, references in _FILES.items() for name, reference in references.items()
}

__all__ = ["REFERENCES", "Reference"]
