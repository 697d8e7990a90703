"""Imports point one way: rise ◀ rewrites ◀ strategies ◀ bench, rise ◀ codegen ◀ bench ◀ rise/cli.

The parts of codegen and of strategies are layers: each imports only from those below it. The core of rise
stands alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.nightly import LONG

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


def imported(path: Path) -> Iterator[str]:
    """The packages that a module imports, at its top and inside its functions; the command line is one."""
    for name in imported_modules(path):
        yield "rise/cli" if f"{name}.".startswith("rise.cli.") else name.split(".")[0]


def test_imports_point_one_way() -> None:
    wrong = []
    for path in modules():
        name = path.relative_to(ROOT).as_posix()
        allowed = ALLOWED[part_of(path)]
        found = set(imported(path)) & set(ALLOWED)
        wrong += [f"{name} imports {other}" for other in sorted(found - allowed)]
    assert not wrong


# from below; parts in one line do not import each other
LAYERS = {
    "codegen": (
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
        ("codegen.export",),
        ("codegen.compiled",),
        ("codegen.torch",),
        ("codegen",),
    ),
    "strategies": (
        ("strategies",),
        ("strategies.loops",),
        ("strategies.guided",),
        ("strategies.memory_bound",),
        ("strategies.matmul",),
        ("strategies.batches",),
        ("strategies.user_defined",),
        ("strategies.registry",),
        ("strategies.search",),
        ("strategies.cuts",),
        ("strategies.auto",),
        ("strategies.tuned",),
    ),
}


def layer_of(module: str) -> tuple[int, str] | None:
    """The height of a module in its package, and the part that it belongs to."""
    found = [
        (height, part)
        for height, parts in enumerate(LAYERS.get(module.split(".", maxsplit=1)[0], ()))
        for part in parts
        if module == part or module.startswith(part + ".")
    ]
    return max(found, key=lambda each: len(each[1]), default=None)


@cache
def imported_modules(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


@pytest.mark.parametrize(("package", "arrows"), [("codegen", 200), ("strategies", 40)])
def test_the_layers_of_a_package_import_downward(package: str, arrows: int) -> None:
    wrong, seen = [], 0
    for path in sorted((ROOT / package).rglob("*.py")):
        name = module_name(path)
        here = layer_of(name)
        assert here is not None, f"{name} is in no layer"
        for other in imported_modules(path):
            there = layer_of(other)
            if there is None or there[1] == here[1]:
                continue
            seen += 1
            wrong += [f"{name} imports {other}"] if there[0] >= here[0] else []
    assert not wrong
    assert seen > arrows


# of rise: what a reader, or an import, needs nothing else for
CORE = {
    "rise.bounds",
    "rise.canonical",
    "rise.constraint",
    "rise.data",
    "rise.declaration",
    "rise.depth",
    "rise.document",
    "rise.errors",
    "rise.expr",
    "rise.frozen",
    "rise.generator",
    "rise.instructions",
    "rise.nat",
    "rise.nat.division",
    "rise.nat.evaluation",
    "rise.nat.facts",
    "rise.nat.limits",
    "rise.nat.normal_form",
    "rise.nat.operations",
    "rise.normal",
    "rise.notation",
    "rise.numbers",
    "rise.sharing",
    "rise.solve",
    "rise.source",
    "rise.type_classes",
    "rise.types",
    "rise.verify",
}
# modules that import each other, late or for types: a traced value calls Python functions, which are traced
LARGEST_CYCLE = 3


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def import_graph() -> dict[str, set[str]]:
    """What each module of rise imports, late and for types too, with the packages that this runs."""
    paths = {module_name(path): path for path in modules() if path.is_relative_to(ROOT / "rise")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        named = set(imported_modules(path))
        found = {other if other in paths else other.rpartition(".")[0] for other in named}
        around = {other[:i] for other in found for i, letter in enumerate(other) if letter == "."}
        outside = {package for package in around if not f"{name}.".startswith(f"{package}.")}
        graph[name] = (found | outside) & paths.keys() - {name}
    return graph


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_modules_of_rise_hardly_import_each_other() -> None:
    graph = import_graph()
    assert sum(map(len, graph.values())) > 600
    reached = {name: reachable(graph, name) for name in graph}
    cycles = {frozenset(o for o in reached[n] if n in reached[o]) for n in graph if n in reached[n]}
    assert [sorted(cycle) for cycle in cycles if len(cycle) > LARGEST_CYCLE] == []


def test_the_core_of_rise_stands_alone() -> None:
    """Its modules import only each other, and only at the top: not in functions, not for types alone."""
    graph = import_graph()
    assert graph.keys() >= CORE
    upward = [f"{name} imports {other}" for name in sorted(CORE) for other in sorted(graph[name] - CORE)]
    assert not upward
    late = []
    for path in modules():
        if (name := module_name(path)) in CORE:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            inner = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
            late += [f"{name}:{n.lineno} {ast.unparse(n)}" for n in inner if n not in tree.body]
    assert not late


def test_the_parser_library_stays_in_the_parser() -> None:
    users = {
        path.relative_to(ROOT).as_posix().rsplit("/", 1)[0]
        for path in modules()
        if "lark" in set(imported(path))
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


def test_no_test_module_imports_another() -> None:
    """What tests share is in tests/support, or in a module beside them that has no tests."""
    wrong = []
    for folder in ("tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = imported_modules(path)
            wrong += [f"{path.relative_to(ROOT)} imports {n}" for n in names if ".test_" in n]
    assert not wrong


def test_long_tests_are_there() -> None:
    """CI leaves out cases of tests by their names."""
    for file, names in LONG.items():
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert {*names.split()} <= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}, file
