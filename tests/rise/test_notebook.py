"""The magics of notebooks, in a shell that only has variables."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rise.cli.notebook import Derivation, Magic
from rise.errors import RiseError
from rise.notebook import code_html
from strategies.default import default


@pytest.fixture
def magic() -> Magic:
    made = Magic(SimpleNamespace(user_ns={}))
    made("", "def twice{n: Nat}(xs: n.f32) = xs |> map(x => x + x)")
    return made


def test_a_cell_defines_what_python_and_later_cells_know(magic: Magic) -> None:
    program = magic("lot", "def four{n: Nat}(xs: n.f32) = twice(twice(xs))")
    known = magic.shell.user_ns
    assert set(known) == {"twice", "four", "lot"}
    assert known["lot"] is program
    np.testing.assert_array_equal(known["four"](np.array([1, 5], np.float32)), [4, 20])


def test_a_definition_may_be_defined_again(magic: Magic) -> None:
    magic("", "def twice{n: Nat}(xs: n.f32) = xs |> map(x => x * 2 + 1)")
    assert magic.shell.user_ns["twice"](np.array([3], np.float32)) == [7]


def test_commands_return_what_is_shown(magic: Magic, capsys: pytest.CaptureFixture[str]) -> None:
    assert repr(magic("check twice")) == "twice : {n: Nat} -> n.f32 -> n.f32"
    magic.shell.user_ns["own"] = default
    derivation = magic("derive twice --size n=7 --strategy own --check")
    assert isinstance(derivation, Derivation)
    assert "mapGlobal" in repr(derivation)
    assert "all agree" in derivation._repr_html_()
    assert magic("run twice --size n=7 --backend interpret") is None
    assert "float32[7]" in capsys.readouterr().out
    compiled = magic("compile twice --size n=7 --strategy own")
    assert "twice_kernel: grid 1×1×1" in compiled._repr_html_()
    assert magic("compile twice --size n=7 --strategy own --stage low") is None
    assert "mapGlobal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("", "R0003"),
        ("rn twice", "R0003"),
        ("run twic --size n=4", "R0209"),
        ("run twice", "R0405"),
        ("run twice --size n=four", "R0407"),
        ("derive twice --size n=4 --save x.json", "R0003"),
        ("derive twice --size n=4 --strategy unheard_of", "R0010"),
    ],
)
def test_mistakes_have_their_codes(magic: Magic, line: str, code: str) -> None:
    with pytest.raises(RiseError) as caught:
        magic(line)
    assert caught.value.code == code


def test_text_that_is_no_program_is_escaped() -> None:
    assert "a &lt; b" in code_html("a < b", "text")
