"""`rise bench`: measurements on a GPU, against libraries."""

from __future__ import annotations

import argparse
from pathlib import Path

RESULTS = Path("benchmarks/results/gemm.csv")


def run(arguments: argparse.Namespace) -> int:
    """D = αAB + βC at square sizes against cuBLAS; appends to the results and prints a table."""
    from codegen.bench import gemm
    from codegen.pipeline import generate
    from rise.check.program import check_text
    from rise.check.specialise import specialise
    from rise.cli.stages import derived
    from strategies.tensor_core import tensor_core

    definition = check_text(gemm.PROGRAM, "gemm.rise")["gemm"]
    rows = []
    for size in arguments.sizes:
        program = specialise(definition, {"m": size, "n": size, "k": size})
        kernel = generate(derived(program, tensor_core()).term, "gemm")
        rows.append(gemm.measure(kernel, size, size, size, "tensor_core()"))
    gemm.append(rows, Path(arguments.output) if arguments.output else RESULTS)
    print(gemm.table(rows))
    return 0
