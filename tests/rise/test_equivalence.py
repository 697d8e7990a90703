"""One call says whether two programs are equal: a proof, a test, or a counterexample that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

import rise
from rise.cli.main import main
from rise.errors import UsageError
from rise.testing import Different, Equal, arguments_of, assert_equal, check_equivalent

TEXT = """
def sums(n: Nat, m: Nat)(xs: n.m.f32) = xs |> transpose |> map(c => c |> map(x => x * 2) |> reduce(+, 0))
def fused(k: Nat, l: Nat)(xs: k.l.f32) = xs |> transpose |> map(reduceSeq((a, x) => a + x * 2, 0))
def twice(n: Nat, m: Nat)(xs: n.m.f32) = xs |> transpose |> map(c => c |> reduce(+, 0) |> (s => s + s))
def rows(n: Nat, m: Nat)(xs: n.m.f32) = xs |> join |> reduce(+, 0)
def columns(n: Nat, m: Nat)(xs: n.m.f32) = xs |> map(reduce(+, 0)) |> reduce(+, 0)
def square(n: Nat)(xs: n.n.f32) = xs |> map(map(x => x + 1))
def swapped(n: Nat)(xs: n.n.f32) = xs |> transpose |> map(map(x => x + 1))
def pairs(n: Nat)(xs: (2*n).f32) = xs |> split(2) |> map(reduce(+, 0))
def first(n: Nat)(xs: (n + 1).f32, k: i32) = (idx(0)(xs), k)
def second(n: Nat)(xs: (n + 1).f32, k: i32) = (idx(0)(xs), select(k > 3)(k + 1)(k))
"""


@pytest.fixture(scope="module")
def programs() -> Any:
    return rise.parse(TEXT)


def test_equal_programs_are_proved_equal_for_all_sizes(programs: Any) -> None:
    found = check_equivalent(programs.sums, programs.fused)
    assert isinstance(found, Equal)
    assert found.proved and not found.reordered
    assert str(found) == "`sums` and `fused` are equal: proved for all sizes and inputs"


def test_sums_in_another_order_are_equal_up_to_rounding(programs: Any) -> None:
    found = check_equivalent(programs.rows, programs.columns)
    assert isinstance(found, Equal)
    assert found.proved and found.reordered
    assert str(found).endswith("up to the rounding of sums")


def test_what_is_not_proved_is_tested_and_says_how_often(programs: Any) -> None:
    found = check_equivalent(programs.sums, programs.twice)
    assert isinstance(found, Equal)
    assert not found.proved
    assert len(found.sizes) == 8
    assert found.instances > 50
    assert f"agree on {found.instances} instances at 8 assignments of sizes; not proved:" in str(found)


@pytest.mark.parametrize("names", [("square", "swapped"), ("sums", "rows_of"), ("first", "second")])
def test_a_difference_is_small_and_its_snippet_shows_it(
    programs: Any, names: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    more = "def rows_of(n: Nat, m: Nat)(xs: n.m.f32) = xs |> transpose |> map(c => c |> reduce(+, 1))"
    other = rise.parse(more).rows_of if names[1] == "rows_of" else programs[names[1]]
    found = check_equivalent(programs[names[0]], other)
    assert isinstance(found, Different)
    assert sum(found.sizes[0].values()) <= 6
    inputs = [np.asarray(value) for value in found.inputs.values()]
    assert sum(np.count_nonzero(value) for value in inputs) <= 2
    exec(found.snippet, {})  # noqa: S102  # that it runs is what is tested
    printed = capsys.readouterr().out.strip()
    assert printed == "\n".join(str(result) for result in found.results)
    assert str(found).startswith(f"`{names[0]}` and `{other.name}` differ at n=")


def test_the_first_element_that_differs_is_named(programs: Any) -> None:
    found = check_equivalent(programs.square, programs.swapped)
    assert isinstance(found, Different)
    index = found.comparison.index
    assert index is not None and len(index) == 2 and index[0] != index[1]
    left, right = (np.asarray(result) for result in found.results)
    assert (left[index], right[index]) == (found.comparison.expected, found.comparison.found)


def test_without_a_solver_it_is_tested(programs: Any) -> None:
    with patch.dict("sys.modules", {"z3": None}):
        found = check_equivalent(programs.sums, programs.fused)
        wrong = check_equivalent(programs.square, programs.swapped)
    assert isinstance(found, Equal) and not found.proved
    assert "not installed" in found.reason
    assert isinstance(wrong, Different)


@pytest.mark.parametrize(("left", "right"), [("sums", "square"), ("sums", "rows")])
def test_what_cannot_be_compared_is_said(programs: Any, left: str, right: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_equivalent(programs[left], programs[right])
    assert caught.value.code == "R0516"


def test_sizes_that_no_definition_has_are_said(programs: Any) -> None:
    with pytest.raises(UsageError) as caught:
        check_equivalent(programs.square, programs.swapped, sizes={"n": 2, "q": 3})
    assert caught.value.code == "R0406"


# --- in tests -----------------------------------------------------------------------------------------------


def test_the_helper_fails_with_the_snippet(programs: Any) -> None:
    assert assert_equal(programs.sums, programs.fused, proved=True).proved
    with pytest.raises(AssertionError, match=r"import rise"):
        assert_equal(programs.square, programs.swapped)
    with pytest.raises(AssertionError, match=r"not proved"):
        assert_equal(programs.sums, programs.twice, proved=True)


def test_sizes_and_inputs_are_drawn_for_a_definition(programs: Any) -> None:
    seen = set()

    @settings(max_examples=40, deadline=None, database=None)
    @given(arguments_of(programs.pairs))
    def agrees(drawn: Any) -> None:
        seen.add(drawn.sizes["n"])
        (xs,) = drawn.inputs
        assert xs.shape == (2 * drawn.sizes["n"],)
        np.testing.assert_array_equal(programs.pairs.evaluate(xs, **drawn.sizes), xs.reshape(-1, 2).sum(1))

    agrees()
    assert len(seen) > 2


def test_fixed_sizes_are_kept(programs: Any) -> None:
    @settings(max_examples=5, deadline=None, database=None)
    @given(arguments_of(programs.sums, {"m": 7}))
    def seven(drawn: Any) -> None:
        assert drawn.sizes["m"] == drawn.inputs[0].shape[1] == 7

    seven()


def test_wrong_code_is_noticed_by_the_drawn_arguments(programs: Any) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(arguments_of(programs.square))
    def wrong(drawn: Any) -> None:
        (xs,) = drawn.inputs
        np.testing.assert_array_equal(programs.square.evaluate(xs, **drawn.sizes), xs.T + 1)

    with pytest.raises(AssertionError) as caught:
        wrong()
    assert "Arguments(sizes={'n': 2}" in "\n".join(caught.value.__notes__)


# --- the command line ---------------------------------------------------------------------------------------


def test_the_command_compares_definitions_of_one_or_two_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.rise", tmp_path / "two.rise"
    one.write_text(TEXT)
    two.write_text(TEXT.replace("a + x * 2", "a + x"))
    assert main(["check-eq", str(one), "sums", "fused"]) == 0
    assert "proved for all sizes" in capsys.readouterr().out
    assert main(["check-eq", str(one), "sums", f"{two}:fused", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["equal"] and "rise.parse" in found["snippet"]
    assert main(["check-eq", str(one), "sums"]) == 2
    assert "no second definition" in capsys.readouterr().err


def test_the_command_compares_a_definition_with_what_is_derived(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--size", "m=4", "n=5", "k=7"]
    assert main(["check-eq", "examples/gemm.rise", "matmul", *sizes, "--strategy", "default"]) == 0
    assert "proved for all inputs at m=4 n=5 k=7" in capsys.readouterr().out
