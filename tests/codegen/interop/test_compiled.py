"""A compiled program says what it takes and gives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import codegen
from codegen.emulation.compiling import compiler
from codegen.host.text import cuda_text, edited
from rise.check.program import check_text
from rise.errors import LaunchError, RiseError, StrategyError, UsageError
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core

needs_emulator = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")

PROGRAM = check_text("""
def axpy: {n: Nat} -> n.f32 -> n.f32 -> f32 -> n.f32 =
  fun((xs, ys, a) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))
def lambda: {n: Nat} -> n.f32 -> n.f32 = fun(pass => pass |> map(fun(x => x + 1)))
def foreign = fun(xs: 4.f32 => xs |> 
  mapGlobal(fun(x => foreignFunction("twice", 1, "return x1 + x1;")(fun(y => y + y))(x))))
""")


def test_the_signature_says_shapes_and_types() -> None:
    f = codegen.compile(PROGRAM["axpy"], default(), sizes={"n": 100}, backend="emulate")
    signature = "(xs: 100.f32, ys: 100.f32, a: f32, *, out=None, stream=None) -> 100.f32"
    assert str(inspect.signature(f)) == signature
    assert f.__name__ == "axpy"
    assert repr(f) == f"<axpy{signature} for emulate>"
    assert f.__doc__ is not None
    for line in ("xs : 100.f32", "a : f32", "returns : 100.f32", "grid 1×1×1, block 100×1×1"):
        assert line in f.__doc__


def test_run_time_sizes_are_in_the_signature() -> None:
    f = codegen.compile(PROGRAM["axpy"], default(), runtime={"n": 32}, backend="emulate")
    assert str(inspect.signature(f)).endswith("stream=None, n: int = from the inputs) -> n.f32")
    assert "needs 32 | n" in (f.__doc__ or "")


@needs_emulator
def test_inputs_have_names() -> None:
    f = codegen.compile(PROGRAM["axpy"], default(), runtime=["n"], backend="emulate")
    xs, ys = np.arange(7, dtype=np.float32), np.ones(7, np.float32)
    assert np.array_equal(f(xs, a=3, ys=ys), 3 * xs + ys)
    assert np.array_equal(f(xs, ys, 3, n=7), 3 * xs + ys)
    with pytest.raises(RiseError):
        f(xs, ys, 3, n=8)


def test_a_name_that_python_reserves_is_given_by_position() -> None:
    f = codegen.compile(PROGRAM["lambda"], default(), sizes={"n": 3}, backend="emulate")
    assert str(inspect.signature(f)).startswith("(argument_1: 3.f32")


def test_what_cannot_be_compiled_says_why() -> None:
    with pytest.raises(StrategyError):
        codegen.compile(PROGRAM["axpy"], tensor_core(), sizes={"n": 9}, backend="emulate")
    with pytest.raises(UsageError, match="R0405"):
        codegen.compile(PROGRAM["axpy"], default(), backend="emulate")
    with pytest.raises(UsageError, match="R0013"):
        codegen.compile(PROGRAM["axpy"], default(), sizes={"n": 9}, backend="interpret")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((3,), "not 3"),
        ((PROGRAM,), "a definition is compiled"),
        ((PROGRAM["axpy"], "default"), "'default' is not a strategy"),
        ((PROGRAM["axpy"], default), "`default` makes strategies"),
    ],
)
def test_what_is_no_argument_is_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(UsageError, match=f"R0022: .*{said}"):
        codegen.compile(*given)


@pytest.mark.parametrize(("name", "value"), [("sizes", [9]), ("spills", "no")])
def test_what_is_no_size_and_no_choice_is_refused(name: str, value: Any) -> None:
    given: dict[str, Any] = {"sizes": {"n": 9}, "backend": "emulate", name: value}
    with pytest.raises(UsageError, match=f"R0022: {name}"):
        codegen.compile(PROGRAM["axpy"], default(), **given)


@pytest.mark.parametrize("given", [{"block": 3}, {"block": (64, 64)}, {"stages": True}, {"epilogue": None}])
def test_a_parameter_of_another_type_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"R0012: tensor_core: {next(iter(given))}="):
        tensor_core(**given)


def test_an_edited_program_is_the_same_but_for_its_text() -> None:
    made = codegen.compile(PROGRAM["foreign"], backend="emulate").program
    text = cuda_text(made)
    assert text == made.kernels[0].source
    assert edited(made, text).kernels[0].launch == made.kernels[0].launch
    with pytest.raises(LaunchError, match="R0839"):
        edited(made, text.replace("const float> xs", "const double> xs"))
