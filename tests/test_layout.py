"""Dependencies point one way: rise ◀ rewrites ◀ strategies, rise ◀ codegen; rise/cli may use them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("rise", "rewrites", "strategies", "codegen")
ALLOWED = {
    "rise": {"rise"},
    "rise/cli": set(PACKAGES),
    "rewrites": {"rise", "rewrites"},
    "strategies": {"rise", "rewrites", "strategies"},
    "codegen": {"rise", "codegen"},
}


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def part_of(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return "rise/cli" if name.startswith("rise/cli/") else name.split("/")[0]


def imported(tree: ast.AST) -> Iterator[str]:
    """The packages that a module imports, at its top and inside its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield (node.module or "").split(".")[0]


def test_imports_point_one_way() -> None:
    wrong = []
    for path in modules():
        name = path.relative_to(ROOT).as_posix()
        allowed = ALLOWED[part_of(path)]
        found = set(imported(ast.parse(path.read_text(encoding="utf-8")))) & set(PACKAGES)
        wrong += [f"{name} imports {other}" for other in sorted(found - allowed)]
    assert not wrong


def test_the_parser_library_stays_in_the_parser() -> None:
    users = {
        path.relative_to(ROOT).as_posix().rsplit("/", 1)[0]
        for path in modules()
        if "lark" in set(imported(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert users == {"rise/syntax"}


# where files are written: by the one module that does it whole or not at all, and into new places of a cache
WRITERS = {"rise/files.py", "codegen/cache.py", "codegen/runtime/compiling.py", "codegen/bench/build.py"}


def writes(call: ast.Call) -> bool:
    """Whether a call changes a file in its place."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    modes = [a.value for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Constant)]
    opens = name in ("open", "fdopen") and any(isinstance(m, str) and set(m) & set("wax+") for m in modes)
    return opens or name in ("write_text", "write_bytes", "savefig", "savez", "tofile")


def test_files_are_written_in_one_place() -> None:
    found = set()
    for path in (*modules(), ROOT / "docs" / "generate.py"):
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {
            id(call)
            for block in ast.walk(tree)
            if isinstance(block, ast.With) and "replacing" in ast.dump(block.items[0])
            for call in ast.walk(block)
        }
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node) not in inside)
        found |= {name for call in calls if writes(call)}
    assert found - WRITERS == set()
    assert found >= WRITERS
