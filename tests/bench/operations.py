"""Programs of the operations that are timed."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

GEMM, PRODUCTS = ROOT / "examples" / "gemm.rise", ROOT / "examples" / "products.rise"

LAYOUTS = ROOT / "benchmarks" / "tables" / "layouts.rise"

FUSED = ROOT / "benchmarks" / "tables" / "fused.rise"

PAPERS = ROOT / "benchmarks" / "tables" / "papers" / "programs.rise"

MEMORY = ROOT / "benchmarks" / "tables" / "memory.rise"

NESTED = ROOT / "benchmarks" / "tables" / "nested.rise"

COLUMNS = ROOT / "benchmarks" / "tables" / "columns.rise"
PAIRS = ROOT / "benchmarks" / "tables" / "pairs.rise"

PROGRAMS = {
    "gemm": (GEMM, "gemm", {"m": 7, "n": 5, "k": 13}),
    "matmul": (GEMM, "matmul", {"m": 1, "n": 5, "k": 13}),
    "gemmBt": (LAYOUTS, "gemmBt", {"m": 7, "n": 5, "k": 13}),
    "matmulBt": (LAYOUTS, "matmulHalfBt", {"m": 7, "n": 5, "k": 13}),
    "matmulAt": (LAYOUTS, "matmulHalfAt", {"m": 7, "n": 1, "k": 13}),
    "matmulAtBt": (LAYOUTS, "matmulHalfAtBt", {"m": 7, "n": 5, "k": 13}),
    "biasRelu": (PRODUCTS, "biasRelu", {"m": 7, "n": 5, "k": 3}),
    "reluProduct": (PRODUCTS, "reluProduct", {"m": 7, "n": 5, "k": 3}),
    "sumOfProducts": (PRODUCTS, "sumOfProducts", {"m": 7, "n": 5, "k": 3, "l": 11}),
    "batchedProducts": (PRODUCTS, "batchedProducts", {"b": 3, "m": 7, "n": 5, "k": 2}),
    "batchedHalf": (PAPERS, "batch", {"b": 3, "m": 7, "n": 5, "k": 2}),
    "copy": (MEMORY, "copy", {"n": 17}),
    "axpy": (MEMORY, "axpyOf", {"n": 13}),
    "transposition": (MEMORY, "transposition", {"m": 7, "n": 5}),
    "sum": (MEMORY, "total", {"n": 101}),
    "fivePoint": (MEMORY, "fivePoint", {"m": 7, "n": 5}),
    "softmax": (MEMORY, "softmaxRows", {"b": 7, "n": 5}),
    **{
        operation + layout: (PAPERS, definition + layout, {"m": 7, "n": 5, "k": 13})
        for operation, definition in (
            ("reluHalf", "reluProduct"),
            ("biasMatrixRelu", "biasRelu"),
            ("twoProducts", "twoProducts"),
        )
        for layout in ("", "Bt", "At", "AtBt")
    },
    "accumulated": (PAPERS, "accumulated", {"m": 7, "n": 5, "k": 13}),
    "accumulatedHalf": (PAPERS, "accumulatedHalf", {"m": 7, "n": 5, "k": 13}),
    "matmulHalf": (LAYOUTS, "matmulHalf", {"m": 7, "n": 5, "k": 13}),
    **{
        name: (FUSED, name, {"m": 7, "n": 5, "k": 13})
        for name in (
            "biasReluHalf",
            "geluResidual",
            "gated",
            "reluFirst",
            "reluSecond",
            "scaledBytes",
            "rmsProduct",
            "outerScales",
            "masked",
            "softmaxProduct",
            "rowSums",
            "transposedProduct",
            "weightBytes",
            "columnMaxima",
            "differenceRelu",
            "transposedResidual",
            "normalisedProduct",
            "clamped",
        )
    },
    "convolutionBias": (FUSED, "convolutionBias", {"h": 4, "w": 3, "c": 5, "o": 7}),
    "chain": (FUSED, "chain", {"m": 7, "n": 5, "k": 13, "l": 9}),
    "perceptron": (FUSED, "perceptron", {"m": 7, "n": 5, "k": 13, "l": 9}),
    "columnSums": (COLUMNS, "columnSums", {"m": 17, "n": 5}),
    "biasGradient": (COLUMNS, "biasGradient", {"b": 3, "m": 7, "n": 5}),
    "timesTransposed": (COLUMNS, "timesTransposed", {"m": 17, "n": 5}),
    "channelMeans": (COLUMNS, "channelMeans", {"b": 3, "m": 7, "n": 5}),
    "columnVariances": (COLUMNS, "columnVariances", {"m": 17, "n": 5}),
    "softmaxOfColumns": (COLUMNS, "softmaxOfColumns", {"m": 7, "n": 5}),
    "floatProduct": (PAIRS, "floatProduct", {"m": 7, "n": 5, "k": 13}),
    "floatProductBt": (PAIRS, "floatProductBt", {"m": 7, "n": 5, "k": 13}),
    "floatBatch": (PAIRS, "floatBatch", {"b": 3, "m": 7, "n": 5, "k": 13}),
    "manhattan": (PAIRS, "manhattan", {"m": 7, "n": 5, "k": 13}),
    "chebyshev": (PAIRS, "chebyshev", {"m": 7, "n": 5, "k": 13}),
    "shortestPaths": (PAIRS, "shortestPaths", {"m": 7, "n": 5, "k": 13}),
    "headScores": (NESTED, "headScores", {"b": 2, "h": 3, "m": 7, "n": 5, "k": 13}),
    "groupScores": (NESTED, "groupScores", {"b": 2, "h": 3, "m": 7, "n": 5, "k": 13}),
    "softmaxOfHeads": (NESTED, "softmaxOfHeads", {"b": 2, "h": 3, "m": 5, "n": 7}),
    "sumsOfRows": (NESTED, "sumsOfRows", {"b": 3, "m": 5, "n": 7}),
    "timesVectors": (NESTED, "timesVectors", {"b": 3, "m": 5, "n": 7}),
    "layer": (NESTED, "layer", {"b": 2, "m": 5, "n": 7, "k": 13}),
    "transposedEach": (NESTED, "transposedEach", {"b": 3, "m": 5, "n": 7}),
    "headsOfRows": (NESTED, "headsOfRows", {"b": 2, "h": 3, "m": 5, "d": 4, "k": 13}),
    "rowsOfHeads": (NESTED, "rowsOfHeads", {"b": 2, "h": 3, "m": 5, "n": 7, "d": 4}),
    "distances": (NESTED, "distances", {"b": 3, "m": 5, "n": 7, "k": 13}),
}
