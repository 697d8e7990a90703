"""The strategy `tuned` takes what is remembered, else the model's choice, and says which."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

import codegen
import strategies.search.choice
from codegen.pipeline import assemble
from rewrites.result import Success
from rise.check.program import check_expression, check_text
from rise.check.specialise import inputs_of, specialise
from rise.cli.main import main
from rise.errors import CompilationError, RiseError, TranslationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import Auto
from strategies.core import FunctionStrategy
from strategies.search import store
from strategies.search.choice import Choice
from strategies.search.hardware import for_target
from strategies.search.identity import identity
from strategies.search.problem import Problem
from strategies.search.schedules import needed
from strategies.search.space import candidates
from strategies.search.store import Record, append, user_file
from strategies.tuned import tuned
from tests.support.programs import loaded, succeeded

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"m": 64, "n": 64, "k": 64}


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped.jsonl")


def program(name: str = "matmul", **sizes: int) -> Expr:
    return data_flow(specialise(loaded(EXAMPLES / "gemm.rise")[name], sizes or SIZES))


def choice_of(strategy: Auto, term: Expr) -> Choice:
    """What was chosen for a program of one kernel."""
    (choice,) = strategy.choice(term).kernels
    return choice


def record(of: Expr, **parameters: str) -> Record:
    return Record(
        identity(of), "matmul", SIZES, "sm_80", "NVIDIA A100", "tensor_core", parameters, 3.25, 0.01, "abc",
        "2026-01-02T00:00:00+00:00",
    )  # fmt: skip


FOUND = {"block": "32,32,32", "warp": "16,16", "stages": "2"}


def test_what_is_remembered_is_taken() -> None:
    term = program()
    append(user_file(), record(term, **FOUND))
    strategy = tuned(target="sm_80")
    choice = choice_of(strategy, term)
    assert choice is not None and choice.point.settings == FOUND
    assert "remembered" in str(choice) and "3.2 µs on NVIDIA A100, 2026-01-02" in str(choice)
    assert isinstance(strategy(term), Success)


def test_it_is_of_one_program_and_one_target() -> None:
    term = program()
    append(user_file(), record(term, **FOUND))
    for other, target in ((program("gemm"), "sm_80"), (term, "sm_90a")):
        choice = choice_of(tuned(target=target), other)
        assert choice is not None and "nothing is remembered; first by the cost model" in choice.reason


def test_the_choice_of_the_model_computes_the_program() -> None:
    definition = loaded(EXAMPLES / "gemm.rise")["gemm"]
    compiled = codegen.compile(definition, tuned(target="sm_80"), sizes=SIZES, backend="emulate")
    inputs = random_inputs(inputs_of(specialise(definition, SIZES)), 0, True)
    assert (compiled(*inputs) == call(specialise(definition, SIZES), *inputs)).all()


def test_rows_of_bytes_need_only_be_multiples_of_what_threads_copy() -> None:
    """Of 8 bytes, the vector of the schedule, not of the 16 that a thread could copy."""
    text = "def f(A: 24.40.i8, B: 72.40.i8) = A |> map(row => B |> map(col => zip(row)(col) |> map((x, y) =>"
    definition = check_text(f"{text} i32(x) * i32(y)) |> reduce(+, 0)))")["f"]
    term = specialise(definition, {})
    choice = choice_of(tuned(target="sm_80"), data_flow(term))
    assert choice is not None and choice.point.schedule.fragment == (16, 8, 32)
    compiled = codegen.compile(definition, tuned(target="sm_80"), backend="emulate")
    inputs = random_inputs(inputs_of(term), 0, True)
    assert (compiled(*inputs) == call(term, *inputs)).all()


def test_what_is_remembered_and_does_not_fit_any_more_is_passed_over() -> None:
    term = program()
    for parameters in ({"block": "100,32,32"}, {"no_such": "1"}, {**FOUND, "stages": "99"}):
        append(user_file(), record(term, **parameters))
        strategy = tuned(target="sm_80")
        assert isinstance(strategy(term), Success)
        choice = choice_of(strategy, term)
        assert choice.reason.startswith("the remembered parameters no longer make a kernel, tensor_core ")
        assert "; first by the cost model" in choice.reason


def test_what_is_remembered_and_does_not_build_any_more_is_passed_over() -> None:
    term = program()
    append(user_file(), record(term, **FOUND))
    builds = Building(times=1, error=TranslationError("R0716", "too much"))
    choice = choice_of(tuned(target="sm_80").first_that(builds), term)
    assert "no longer make a kernel" in choice.reason and "R0716 too much" in choice.reason
    assert choice.point.settings["block"] != FOUND["block"]


# --- candidates that are no kernels -----------------------------------------------------------------------


@dataclass
class Building:
    """Stands for the passes and the compiler, which refuse the first programs that they are given."""

    times: int = 0
    error: RiseError = field(default_factory=lambda: CompilationError("R0832", "`f` spills 4 bytes"))
    shared: Callable[[int], int] = lambda _: 0
    seen: list[Expr] = field(default_factory=list)

    def __call__(self, term: Expr, target: str) -> int:
        self.seen.append(term)
        if len(self.seen) <= self.times:
            raise self.error
        return self.shared(len(self.seen))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules derive without a step: what is tried is what counts."""
    plain = SimpleNamespace(make=lambda _: FunctionStrategy("plain", Success))
    monkeypatch.setattr(strategies.search.choice, "find", lambda _: plain)
    monkeypatch.setattr("strategies.auto.refusal", lambda _: None)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("code", ["R0716", "R0731", "R0832", "R0851", "R0702"])
def test_the_next_candidate_is_taken_where_one_is_no_kernel(code: str) -> None:
    term = program(m=512, n=512, k=512)
    builds = Building(times=2, error=CompilationError(code, "not this one"))
    strategy = tuned(target="sm_80").first_that(builds)
    choice = choice_of(strategy, term)
    assert choice.point != choice_of(tuned(target="sm_80"), term).point
    assert choice.point.strategy == "tensor_core"
    assert f"passed over 2: 2 × {code} not this one" in choice.reason
    assert isinstance(strategy(term), Success) and len(builds.seen) == 3, "what was found is remembered"


@pytest.mark.usefixtures("at_once")
def test_after_what_has_no_room_comes_what_needs_much_less() -> None:
    term = program(m=4096, n=4096, k=4096)
    problem = Problem.of(term)
    assert problem is not None

    def bytes_of(strategy: Auto) -> int:
        return needed(choice_of(strategy, term).point.schedule, problem).shared_bytes

    builds = Building(times=3, error=CompilationError("R0716", "no room"))
    assert 0 < bytes_of(tuned().first_that(builds)) <= 0.75**3 * bytes_of(tuned())
    assert len(builds.seen) == 4


@pytest.mark.usefixtures("at_once")
def test_more_shared_memory_than_the_target_has_is_no_kernel() -> None:
    """The passes know what the largest GPU has; sm_80 has less."""
    builds = Building(shared=lambda number: 164 * 1024 if number < 3 else 163 * 1024)
    choice = choice_of(tuned(target="sm_80").first_that(builds), program(m=512, n=512, k=512))
    assert "passed over 2: 2 × R0716 167936 bytes" in choice.reason and len(builds.seen) == 3


@pytest.mark.usefixtures("at_once")
def test_default_is_the_last_candidate() -> None:
    builds = Building(times=10**6, error=TranslationError("R0702", "never"))
    strategy = tuned(target="sm_80").first_that(builds)
    term = program()
    assert isinstance(strategy(term), Success)
    choice = choice_of(strategy, term)
    assert choice.point.strategy == "default" and "passed over" in choice.reason
    assert len(builds.seen) <= 10, "what fails for one reason so often lies in the program"


def test_a_program_without_products_is_lowered_by_its_structure() -> None:
    term = data_flow(check_text("def f = fun(xs: 64.f32 => xs |> map(fun(x => x + 1)))")["f"].body)
    choice = choice_of(tuned(), term)
    assert choice.point.strategy == "elementwise" and "by itself" in choice.reason
    assert isinstance(tuned()(term), Success)


def test_elements_that_nothing_is_tried_for_are_named() -> None:
    term = data_flow(specialise(loaded(EXAMPLES / "gemm.rise")["matmul_tf32"], {"m": 64, "n": 64, "k": 64}))
    choice = choice_of(tuned(target="sm_75"), term)
    assert choice.point.strategy == "default"
    assert "nothing is tried of `tensor_core` for products of `tf32` on sm_75" in choice.reason


DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
PROGRAMS = {
    "odd sizes": (
        f"fun((A: 13.7.f16, B: 7.11.f16) => A |> map(fun(row => B |> transpose |> map(fun(col => {DOT})))))",
        "vector=1 cp_async=false",
    ),
    "a bias and a residual": (
        "fun((A: 64.64.f16, B: 64.64.f16, b: 64.f32, R: 64.64.f16) =>"
        " zip(A)(R) |> map(fun((row, r) => zip(B |> transpose)(zip(b)(r)) |> map(fun((col, c) =>"
        f" f16(({DOT}) + fst(c) + f32(snd(c))))))))",
        "epilogue=direct",
    ),
    "a norm before": (
        "fun((A: 64.64.f16, B: 64.64.f16) => let N = A |> map(fun(r => let s = r |> map(fun(x =>"
        " f32(x) * f32(x))) |> reduce(+, 1) in r |> map(fun(x => f16(f32(x) / s)))))"
        f" |> toMem(Global) in N |> map(fun(row => B |> transpose |> map(fun(col => {DOT})))))",
        "tensor_core",
    ),
}


def test_tiles_and_sums_of_several_products_fit_together() -> None:
    """Each has its own: of two products no candidate has more than half of what there is for each."""
    text = (
        "fun((A: 512.512.f16, B: 512.512.f16, C: 512.512.f16) => A |> map(fun(row =>"
        " zip(B |> transpose)(C |> transpose) |> map(fun((col, other) => f16("
        f"({DOT}) * ({DOT.replace('col', 'other')})))))))"
    )
    problem = Problem.of(data_flow(check_expression(text)))
    assert problem is not None and problem.products == 2
    found = list(itertools.islice(candidates("tensor_core", problem, for_target("sm_90a"), 16), 100))
    blocks = [needed(one.point.schedule, problem) for one in found]
    assert len(found) == 100 and all(block.shared_bytes <= 227 * 1024 for block in blocks)
    assert all(one.point.schedule.stages > 1 for one in found)
    assert max(block.shared_bytes for block in blocks) > 113 * 1024


SIZES_OF = (1, 2, 7, 8, 13, 33, 64, 127, 128, 300, 777, 1000, 4096)
BEFORE = ("{}", "{} |> map(fun(r => r |> map(fun(x => max(x)(0)))))")
AFTER = ("({dot})", "f16({dot})", "max({dot})(b)", "f16(({dot}) * b + ({dot}))")


@pytest.mark.usefixtures("at_once")
def test_random_programs_have_a_candidate_of_any_size() -> None:
    """Whatever the sizes, and however many candidates are no kernels: schedules derive at once here."""
    kinds: Counter[str] = Counter()
    for seed in range(12):
        random = Random(seed)
        m, n, k = (random.choice(SIZES_OF) for _ in "mnk")
        columns = random.choice((f"B: {k}.{n}.f16", f"B: {n}.{k}.f16"))
        across = "B |> transpose" if columns.startswith(f"B: {k}.{n}.") and k != n else "B"
        rows, after = random.choice(BEFORE).format("A"), random.choice(AFTER).format(dot=DOT)
        each = f"zip({across})(c) |> map(fun((col, b) => {after}))"
        text = f"fun((A: {m}.{k}.f16, {columns}, c: {n}.f32) => {rows} |> map(fun(row => {each})))"
        builds = Building(times=random.choice((0, 1, 5, 10**6)), error=CompilationError("R0702", f"{seed}"))
        strategy = tuned(random.choice(("sm_75", "sm_80", "sm_90a"))).first_that(builds)
        term = data_flow(check_expression(text))
        assert isinstance(strategy(term), Success), (seed, text)
        chosen = strategy.choice(term).kernels
        kinds.update({choice.point.strategy for choice in chosen})
        assert len(builds.seen) <= 10 * (len(chosen) + 1), (seed, chosen)
    assert kinds["tensor_core"] >= 4 and kinds["default"] >= 2, kinds


@pytest.mark.parametrize("case", PROGRAMS)
def test_what_the_first_candidates_do_not_take_is_a_kernel_by_another(case: str) -> None:
    """With the passes, without a compiler; for one target and another in turn."""
    text, part = PROGRAMS[case]
    target = ("sm_80", "sm_90a")[list(PROGRAMS).index(case) % 2]
    term = data_flow(check_expression(text))
    tried: list[Expr] = []

    def builds(low: Expr, _: str) -> int:
        tried.append(low)
        return assemble(low, "f").shared_bytes

    strategy = tuned(target).first_that(builds)
    result = succeeded(strategy(term))
    assert part in str(strategy.choice(term))
    assert assemble(result.term, "f").kernels and len(tried) < 10


def test_the_command_line_says_what_was_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    named = tmp_path / "named.jsonl"
    append(named, replace(record(program(), **FOUND), target="sm_90a"))
    command = ["compile", str(EXAMPLES / "gemm.rise"), "matmul", "--strategy", "tuned", "--stage", "low"]
    command += ["--size", "m=64", "n=64", "k=64"]
    assert main([*command, "--target", "sm_80"]) == 0
    assert "on A100" in capsys.readouterr().err
    assert main([*command, "--set", f"store={named}"]) == 0
    assert "remembered, tensor_core block=32,32,32" in capsys.readouterr().err
    assert main([*command, "--set", "target=sm_60"]) == 2
    assert "R0031" in capsys.readouterr().err
