"""Pages that show what the compiler does show what it does today: README.md, and pages of docs/."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.execute import available_backend
from tests.support.pages import assert_printed, blocks, calls

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
needs_backend = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")


@pytest.mark.parametrize(
    "page",
    [
        "passes.md",
        "gemm.md",
        "hopper-gemm.md",
        "tensor-cores.md",
        "codegen.md",
        "batches.md",
        "strategies.md",
    ],
)
def test_a_page_is_up_to_date(page: str) -> None:
    sys.path.insert(0, str(DOCS))
    try:
        from generate import PAGES  # type: ignore[import-not-found]  # beside the pages, in no package
    finally:
        sys.path.remove(str(DOCS))
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "python docs/generate.py writes it"


@needs_backend
@pytest.mark.parametrize("page", ["README.md", "docs/codegen.md"])
def test_commands_print_what_a_page_says(
    page: str, rise: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They run in a folder that has the examples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ran = 0
    for command, expected in calls(ROOT / page):
        if not expected.strip():
            continue
        called = rise(*shlex.split(command))
        assert called.status == 0, called.err
        assert_printed(expected, called.out)
        ran += 1
    assert ran >= 2


@needs_backend
def test_the_python_of_the_readme_runs() -> None:
    """In a new process; the line `# →` is what it prints."""
    (code,) = blocks(ROOT / "README.md", "python")
    (expected,) = re.findall(r"^# → (.*)$", code, re.MULTILINE)
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == expected, ran.stderr


def test_the_readme_quotes_what_is_there() -> None:
    """Its kernel, line by line, from docs/codegen.md; its program and its figures from their files."""
    readme = ROOT / "README.md"
    tour = {line.strip() for line in (DOCS / "codegen.md").read_text(encoding="utf-8").splitlines()}
    for block in (*blocks(readme, "text"), *blocks(readme, "cuda")):
        quoted = [line.strip() for line in block.splitlines() if line.strip() != "…"]
        assert len(quoted) > 5
        assert not [line for line in quoted if line not in tour]
    (program,) = blocks(readme, "rise")
    assert program in (ROOT / "examples" / "gemm.rise").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \|$", readme.read_text(encoding="utf-8"), re.MULTILINE)
    measured = [row for row in rows if "benchmarks/results/" in row]
    assert len(measured) == 3
    for row in measured:
        (report,) = re.findall(r"\(benchmarks/results/([\w-]+\.md)\)", row)
        means = (ROOT / "benchmarks" / "results" / report).read_text(encoding="utf-8")
        for figure in re.findall(r"\b\d\.\d{3}\b", row):
            assert figure in means, f"{figure} is not in {report}"


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 20
    assert not [(page.name, target) for page, target in links if not (page.parent / target).exists()]


def modules_named(package: str) -> Iterator[Path]:
    """In docs/architecture.md: `check/literals`, `scope` are two of one folder, and `nat/` is all of one."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    section = page.split(f"## {package}:")[1].split("\n## ")[0]
    for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE):
        folder = ROOT / package
        for name in re.findall(r"`([^`]+)`", cell):
            inside, _, stem = name.rpartition("/")
            folder = ROOT / package / inside if inside else folder
            here, above = folder / stem, ROOT / package / stem
            yield here if here.with_suffix(".py").exists() or here.is_dir() else above


@pytest.mark.parametrize("package", ["rise", "rewrites", "strategies", "codegen", "bench"])
def test_the_map_of_modules_is_that_of_the_tree(package: str) -> None:
    """Every module is named, by itself or with its folder, and whatever is named is there."""
    named = set(modules_named(package))
    missing = [path for path in named if not (path.is_dir() or path.with_suffix(".py").exists())]
    assert not missing
    unnamed = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / package).rglob("*.py")
        if not path.stem.startswith("__") and not named & {path.with_suffix(""), *path.parents}
    ]
    assert not unnamed, "docs/architecture.md"
