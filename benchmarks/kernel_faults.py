"""Seeds every fault of the code generator, and says how it is noticed.

python benchmarks/kernel_faults.py            prints the table
python benchmarks/kernel_faults.py --write    puts it into docs/testing.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rise import files  # noqa: E402
from tests.codegen.kernel_faults import outcomes, table  # noqa: E402  # of the tests

BEGIN, END = "<!-- kernels: begin -->", "<!-- kernels: end -->"
DOCUMENT = ROOT / "docs" / "testing.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/testing.md")
    arguments = parser.parse_args()
    with pytest.MonkeyPatch.context() as patch:
        rows = outcomes(patch)
    text = "\n".join(table(rows))
    print(text)
    if arguments.write:
        before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
        files.write(DOCUMENT, f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
