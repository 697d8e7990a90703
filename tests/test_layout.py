"""Imports point one way: rise ◀ rewrites ◀ strategies ◀ bench, rise ◀ codegen ◀ bench ◀ rise/cli.

The parts of codegen are layers: each imports only from those below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("rise", "rewrites", "strategies", "codegen", "bench")
ALLOWED = {
    "rise": {"rise"},
    "rise/cli": {*PACKAGES, "rise/cli"},
    "rewrites": {"rise", "rewrites"},
    "strategies": {"rise", "rewrites", "strategies"},
    "codegen": {"rise", "codegen"},
    "bench": set(PACKAGES),
}


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def part_of(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return "rise/cli" if name.startswith(("rise/cli/", "rise/__main__")) else name.split("/")[0]


def imported(tree: ast.AST) -> Iterator[str]:
    """The packages that a module imports, at its top and inside its functions; the command line is one."""
    for name in imported_modules(tree):
        yield "rise/cli" if f"{name}.".startswith("rise.cli.") else name.split(".")[0]


def test_imports_point_one_way() -> None:
    wrong = []
    for path in modules():
        name = path.relative_to(ROOT).as_posix()
        allowed = ALLOWED[part_of(path)]
        found = set(imported(ast.parse(path.read_text(encoding="utf-8")))) & set(ALLOWED)
        wrong += [f"{name} imports {other}" for other in sorted(found - allowed)]
    assert not wrong


# of codegen, from below; parts in one line do not import each other
LAYERS = (
    ("codegen.cache",),
    ("codegen.ir",),
    ("codegen.lower",),
    ("codegen.passes.analysis",),
    ("codegen.passes",),
    ("codegen.cuda",),
    ("codegen.host",),
    ("codegen.emulation", "codegen.runtime"),
    ("codegen.pipeline",),
    ("codegen.execute",),
    ("codegen.compiled",),
    ("codegen",),
)


def layer_of(module: str) -> tuple[int, str] | None:
    """The height of a module of codegen, and its part."""
    found = [
        (height, part)
        for height, parts in enumerate(LAYERS)
        for part in parts
        if module == part or module.startswith(part + ".")
    ]
    return max(found, key=lambda each: len(each[1]), default=None)


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_layers_of_codegen_import_downward() -> None:
    wrong, seen = [], 0
    for path in sorted((ROOT / "codegen").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        here = layer_of(name)
        assert here is not None, f"{name} is in no layer"
        for other in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
            there = layer_of(other)
            if there is None or there[1] == here[1]:
                continue
            seen += 1
            wrong += [f"{name} imports {other}"] if there[0] >= here[0] else []
    assert not wrong
    assert seen > 200


def test_the_parser_library_stays_in_the_parser() -> None:
    users = {
        path.relative_to(ROOT).as_posix().rsplit("/", 1)[0]
        for path in modules()
        if "lark" in set(imported(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert users == {"rise/syntax"}


# where files are written: by the one module that does it whole or not at all, and into new places of a cache
WRITERS = {"rise/files.py", "codegen/cache.py", "codegen/runtime/compiling.py", "bench/build.py"}


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
