"""What is remembered is found again, by whatever name; damage is named; many may write at once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rise.check.program import check_text, load
from rise.check.specialise import specialise
from rise.errors import UsageError
from rise.expr import Expr
from rise.normal import data_flow
from strategies.search import store
from strategies.search.hardware import H200
from strategies.search.identity import identity
from strategies.search.problem import Problem
from strategies.search.space import refusal
from strategies.search.store import Record, append, lookup, read, user_file

RECORD = Record(
    "0123456789abcdef", "matmul", {"m": 64, "n": 64, "k": 64}, "sm_90a", "NVIDIA H200", "tensor_core",
    {"block": "64,64,64", "stages": "4"}, 12.5, 0.01, "abc", "2026-01-01T00:00:00+00:00",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped.jsonl")


# --- which program it is ------------------------------------------------------------------------------------

MATMUL = """
def f = depFun((m: Nat, n: Nat, k: Nat) =>
  fun((A: m.k.f16, B: k.n.f16) => A |> map(fun(row => transpose(B) |> map(fun(col =>
    zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))))
"""
SIZES = {"m": 4, "n": 8, "k": 16}


def program(text: str, **sizes: int) -> Expr:
    return specialise(check_text(text)["f"], sizes or SIZES)


def test_names_and_places_do_not_matter() -> None:
    renamed = MATMUL.replace("row", "x").replace("col", "y").replace("A", "left").replace("B", "right")
    spread = MATMUL.replace("=>", "=>\n   ").replace("m: Nat, n: Nat, k: Nat", "p: Nat, n: Nat, q: Nat")
    spread = spread.replace("m.k.f16", "p.q.f16").replace("k.n.f16", "q.n.f16")
    # names that hide each other
    hiding = MATMUL.replace("row", "x").replace("col", "x2").replace("(a, b)", "(x, x2)")
    hiding = hiding.replace("f32(a) * f32(b)", "f32(x) * f32(x2)")
    known = identity(program(MATMUL))
    assert identity(data_flow(program(MATMUL))) == known
    assert identity(program(renamed)) == identity(program(hiding)) == known
    assert identity(program(spread, p=4, n=8, q=16)) == known


def test_the_order_of_inputs_does_not_matter() -> None:
    """As in kernels cut from programs; which input is used where does, also where types are the same."""
    known = identity(program(MATMUL, m=8, n=8, k=8))
    swapped = MATMUL.replace("(A: m.k.f16, B: k.n.f16)", "(B: k.n.f16, A: m.k.f16)")
    assert identity(program(swapped, m=8, n=8, k=8)) == known
    # names that hide an input must not change what is found to be used first
    hiding = swapped.replace("row", "B0").replace("col", "A0").replace("(a, b)", "(A, B)")
    hiding = hiding.replace("f32(a) * f32(b)", "f32(A) * f32(B)")
    assert identity(program(hiding, m=8, n=8, k=8)) == known
    texts = ("zip(x)(y) |> map((a, b) => a - b)", "zip(y)(x) |> map((a, b) => b - a)")
    first, second = (specialise(check_text(f"def f(x: 9.f32, y: 9.f32) = {t}")["f"], {}) for t in texts)
    assert identity(first) != identity(second)


def test_maps_of_maps_do_not_matter() -> None:
    """A function of each element of a product is one of each sum: both are the same kernel."""
    at_sums = MATMUL.replace("zip(row)(col)", "f16(zip(row)(col)").replace("reduce(+, 0)", "reduce(+, 0))")
    of_elements = MATMUL.replace("reduce(+, 0)))))", "reduce(+, 0))))) |> map(map(fun(x => f16(x))))")
    assert identity(program(at_sums)) == identity(program(of_elements)) != identity(program(MATMUL))


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("f32(a) * f32(b)", "f32(b) * f32(a)"),  # equal, but not the same program
        ("f32(a) * f32(b)", "f32(a) * f32(a)"),
        ("zip(row)(col)", "zip(col)(row)"),
        ("reduce(+, 0)", "reduce(+, 1)"),
        ("reduce(+, 0)", "reduce(max, 0)"),
        ("B: k.n.f16", "B: k.n.bf16"),
    ],
)
def test_everything_else_does(part: str, other: str) -> None:
    assert part in MATMUL
    assert identity(program(MATMUL.replace(part, other))) != identity(program(MATMUL))


def test_sizes_that_no_name_has_are_a_part_of_it() -> None:
    texts = (f"def f = fun(xs: 16.f32 => xs |> split({n}) |> transpose |> join)" for n in (2, 4))
    first, second = (identity(specialise(check_text(text)["f"], {})) for text in texts)
    assert first != second


def test_sizes_are_a_part_of_it() -> None:
    known = {identity(program(MATMUL, m=m, n=n, k=16)) for m in (4, 8) for n in (4, 8)}
    assert len(known) == 4


def test_sizes_that_a_program_binds_have_no_name_either() -> None:
    step = "depFun((l: Nat) => fun(ys: (2*l).f32 => take(l)(ys)))"
    other = step.replace("l: Nat", "w: Nat").replace("(2*l)", "(2*w)").replace("take(l)", "take(w)")
    texts = (f"def f = fun(xs: 16.f32 => xs |> iterate(2)({each}))" for each in (step, other))
    first, second = (specialise(check_text(text)["f"], {}) for text in texts)
    assert identity(first) == identity(second)


# --- files --------------------------------------------------------------------------------------------------


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tuned.jsonl"
    append(path, RECORD)
    append(path, replace(RECORD, microseconds=11.0))
    assert read(path) == [RECORD, replace(RECORD, microseconds=11.0)]
    found = lookup(RECORD.program, "sm_90a", path)
    assert found is not None and found.microseconds == 11.0
    assert lookup(RECORD.program, "sm_80", path) is None
    assert lookup("fedcba9876543210", "sm_90a", path) is None


def test_the_users_own_file_wins_over_what_ships_and_a_named_one_over_both(tmp_path: Path) -> None:
    assert lookup(RECORD.program, "sm_90a") is None
    for count, path in enumerate((store.SHIPPED, user_file(), tmp_path / "named.jsonl"), 1):
        append(path, replace(RECORD, microseconds=float(count)))
        found = lookup(RECORD.program, "sm_90a", path if count == 3 else None)
        assert found is not None and found.microseconds == count


def test_a_named_file_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="R0001|no such file"):
        lookup(RECORD.program, "sm_90a", tmp_path / "missing.jsonl")


WHOLE = json.loads(RECORD.line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (RECORD.line[:40], "Unterminated|Expecting|delimiter"),
        ("[1, 2]", "not an object"),
        (json.dumps({**WHOLE, "version": 2}), "version 2, and this compiler reads 1"),
        (json.dumps({**WHOLE, "microseconds": "fast"}), "`microseconds` is 'fast'"),
        (json.dumps({k: v for k, v in WHOLE.items() if k != "target"}), "`target` is None"),
        (json.dumps({**WHOLE, "further": 1}), "further"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "tuned.jsonl"
    path.write_text(RECORD.line + "\n" + line + "\n" + RECORD.line, encoding="utf-8")
    with pytest.raises(UsageError, match=said) as refused:
        lookup(RECORD.program, "sm_90a", path)
    assert refused.value.code == "R0033"
    assert refused.value.message.startswith(f"{path}:3: ")


def test_lines_that_processes_append_at_once_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "tuned.jsonl"
    text = (
        "import sys\nfrom pathlib import Path\nfrom strategies.search.store import *\n"
        "record = read(Path(sys.argv[1]))[0]\n"
        "for n in range(50): append(Path(sys.argv[2]), record)\n"
    )
    first = tmp_path / "first.jsonl"
    append(first, replace(RECORD, name="x" * 3000))
    writers = [subprocess.Popen([sys.executable, "-c", text, str(first), str(path)]) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(read(path)) == 100


ROOT = Path(__file__).parents[2]
SHIPPED_FROM = {"matmulHalf": "benchmarks/tables/layouts.rise", "biasRelu": "examples/products.rise"}


def test_what_ships_is_of_the_programs_that_it_names() -> None:
    """And no rule against its schedule has been made since."""
    shipped = read(Path(store.__file__).parent / "remembered.jsonl")
    files = {name: load(ROOT / file) for name, file in SHIPPED_FROM.items()}
    assert len(shipped) > 200 and all(record.target == "sm_90a" for record in shipped)
    for record in shipped[::9]:
        program = files.get(record.name, files["matmulHalf"])
        term = data_flow(specialise(program[record.name], record.sizes))
        problem, point = Problem.of(term), store.point_of(record)
        assert record.program == identity(term) and problem is not None
        assert refusal(point, problem, H200) is None, str(point)
