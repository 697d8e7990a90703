"""`rise bench`: measurements on a GPU, against libraries."""

from __future__ import annotations

import argparse
from pathlib import Path


def run(arguments: argparse.Namespace) -> int:
    """Hands over to the benchmark of that name."""
    from codegen import bench

    output = Path(arguments.output) if arguments.output else None
    status: int = bench.main(arguments.sizes, output)
    return status
