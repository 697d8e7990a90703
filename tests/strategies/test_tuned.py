"""The strategy `tuned` takes what is remembered, else the model's choice, and says which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import codegen
from rewrites.result import Failure, Success
from rise.check.program import check_text, load
from rise.check.specialise import inputs_of, specialise
from rise.cli.main import main
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.search import store
from strategies.search.identity import identity
from strategies.search.store import Record, append, user_file
from strategies.tuned import tuned

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"m": 64, "n": 64, "k": 64}


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped.jsonl")


def program(name: str = "matmul") -> Expr:
    return data_flow(specialise(load(EXAMPLES / "gemm.rise")[name], SIZES))


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
    choice = strategy.choice(term)
    assert choice is not None and choice.point.settings == FOUND
    assert "remembered" in str(choice) and "3.2 µs on NVIDIA A100, 2026-01-02" in str(choice)
    assert isinstance(strategy(term), Success)


def test_it_is_of_one_program_and_one_target() -> None:
    term = program()
    append(user_file(), record(term, **FOUND))
    for other, target in ((program("gemm"), "sm_80"), (term, "sm_90a")):
        choice = tuned(target=target).choice(other)
        assert choice is not None and "nothing is remembered; first by the cost model" in choice.reason


def test_the_choice_of_the_model_computes_the_program() -> None:
    definition = load(EXAMPLES / "gemm.rise")["gemm"]
    compiled = codegen.compile(definition, tuned(target="sm_80"), sizes=SIZES, backend="emulate")
    inputs = random_inputs(inputs_of(specialise(definition, SIZES)), 0, True)
    assert (compiled(*inputs) == call(specialise(definition, SIZES), *inputs)).all()


def test_what_does_not_fit_any_more_is_an_error_and_nothing_else_is_taken() -> None:
    term = program()
    for parameters in ({"block": "100,32,32"}, {"no_such": "1"}, {**FOUND, "stages": "99"}):
        append(user_file(), record(term, **parameters))
        with pytest.raises(StrategyError) as refused:
            tuned(target="sm_80")(term)
        assert refused.value.code == "R0622"
        assert "rise tune" in (refused.value.hint or "")


def test_a_program_without_products_is_refused() -> None:
    term = data_flow(check_text("def f = fun(xs: 64.f32 => xs |> map(fun(x => x + 1)))")["f"].body)
    found = tuned()(term)
    assert isinstance(found, Failure) and "no product of matrices" in found.reason
    assert tuned().choice(term) is None


def test_rows_that_nothing_tried_can_copy_are_named() -> None:
    """Tiles may be larger than a matrix of any size; but what is tried copies 16 bytes at once."""
    odd = data_flow(specialise(load(EXAMPLES / "gemm.rise")["matmul"], {"m": 7, "n": 5, "k": 3}))
    found = tuned()(odd)
    assert isinstance(found, Failure) and "rows of 3 elements, 6 bytes" in found.reason
    assert "`vector=1 asynchronous=false`" in (found.hint or "")
    even = data_flow(specialise(load(EXAMPLES / "gemm.rise")["matmul"], {"m": 7, "n": 24, "k": 40}))
    assert isinstance(tuned()(even), Success)


def test_elements_that_nothing_is_tried_for_are_named() -> None:
    term = data_flow(specialise(load(EXAMPLES / "gemm.rise")["matmul_tf32"], {"m": 64, "n": 64, "k": 64}))
    found = tuned(target="sm_75")(term)
    assert isinstance(found, Failure)
    assert found.reason == "nothing is tried of `tensor_core` for products of `f32` on sm_75"


def test_the_command_line_says_what_was_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    named = tmp_path / "named.jsonl"
    append(named, replace(record(program(), **FOUND), target="sm_90a"))
    command = ["compile", str(EXAMPLES / "gemm.rise"), "matmul", "--strategy", "tuned", "--stage", "low"]
    command += ["--size", "m=64", "n=64", "k=64"]
    assert main([*command, "--target", "sm_80"]) == 0
    assert "on A100" in capsys.readouterr().err
    assert main([*command, "--set", f"store={named}"]) == 0
    assert "remembered, tensor_core block=32,32,32" in capsys.readouterr().err
    assert main([*command, "--target", "sm_70"]) == 2
    assert "R0031" in capsys.readouterr().err
