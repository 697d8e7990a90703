"""The kernels of all examples and shipped schedules, one file each, to compare two states of the compiler.

python benchmarks/kernel_texts.py OUT                 writes the texts
python benchmarks/kernel_texts.py --compare OLD NEW   names the kernels that differ; exits with 1 if any does

Texts are normalised: the programmer's identifiers are numbered in the order in which they first appear, so
that only names may differ. Comments are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "examples")]

from hopper_programs import PROGRAMS  # noqa: E402  # lies beside this file, in no package
from references import REFERENCES  # noqa: E402

from codegen.pipeline import assemble  # noqa: E402
from rewrites.result import Success  # noqa: E402
from rise.check.program import check_expression  # noqa: E402
from rise.depth import deep  # noqa: E402
from rise.normal import data_flow  # noqa: E402
from strategies.matmul.tensor_core import tensor_core  # noqa: E402
from tests.support.examples import REFUSED, SHIPPED, SIZES, example, texts  # noqa: E402

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")


def kernels() -> Iterator[tuple[str, list[str]]]:
    for file, name in sorted(REFERENCES):
        if (file, name) not in REFUSED:
            sizes = REFERENCES[file, name].sizes[-1]
            yield f"{file} {name} default", texts(example(file, name, sizes), "default", {})
    for one in SHIPPED:
        sizes = SIZES if one.strategy == "tensor_core" else {}
        yield f"{one.file} {one}", texts(example(one.file, one.name, sizes), one.strategy, one.settings)
    for number, (text, parameters) in enumerate(PROGRAMS.values()):
        result = tensor_core(**parameters)(data_flow(check_expression(text)))
        if isinstance(result, Success):
            yield f"hopper {number}", [made.source for made in assemble(result.term, "shipped").kernels]


def normalised(text: str) -> str:
    """The text with the n-th identifier, by first appearance, called `_n`."""
    numbers: dict[str, int] = {}
    return IDENTIFIER.sub(
        lambda found: f"_{numbers.setdefault(found[0], len(numbers))}", COMMENT.sub("", text)
    )


def write(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, sources in kernels():
        for number, source in enumerate(sources):
            stem = re.sub(r"\W+", "_", name)
            (out / f"{count:04}_{number}_{stem[:60]}.cu").write_text(source, encoding="utf-8")
        count += 1
    print(f"{count} programs, {len(list(out.iterdir()))} kernels")


def compare(old: Path, new: Path) -> int:
    before, after = ({path.name[:6]: path for path in folder.iterdir()} for folder in (old, new))
    differing = sorted(before.keys() ^ after.keys())
    for key in sorted(before.keys() & after.keys()):
        if normalised(before[key].read_text()) != normalised(after[key].read_text()):
            differing.append(key)
            print(f"{before[key]} differs from {after[key]}")
    print(f"{len(before)} and {len(after)} kernels, {len(differing)} differ")
    return int(bool(differing))


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(compare(Path(sys.argv[2]), Path(sys.argv[3])))
    deep(write)(Path(sys.argv[1]))
