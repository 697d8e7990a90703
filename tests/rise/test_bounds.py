"""A short text asks for no more time and memory than it is long, or is refused by name."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from rise.check.program import Loader, check_text
from rise.check.specialise import specialise
from rise.check.unify import Unifier
from rise.errors import MOST_SHOWN, Mistakes, RiseError, together
from rise.expr import Definition, size
from rise.nat import TooLarge, constant, evaluate, power, quotient, remainder, variable
from rise.nat.limits import DEGREE, EXTENT, TERMS
from rise.pretty import full_type
from rise.source import Source, place
from rise.suggest import nearest, slips
from rise.types import F32, Array, Dependent, Function, Kind, Pair, leaves
from tests.attack.mutants import mutant, outcome
from tests.attack.outcome import Verdict

# --- types are graphs -------------------------------------------------------------------------------------


def doubled(times: int, start: str = "x0: f32") -> str:
    lets = "".join(f"  let x{i + 1} = (x{i}, x{i}) in\n" for i in range(times))
    return f"def f = fun({start} =>\n{lets}  x{times})"


def piped(times: int) -> str:
    return f"def d = fun(x => (x, x))\ndef f = fun(x: f32 => x{' |> d' * times})"


def zipped(times: int) -> str:
    lets = "".join(f"  let x{i + 1} = zip(x{i}, x{i}) in\n" for i in range(times))
    return f"def f = fun(x0: 3.f32 =>\n{lets}  x{times})"


@pytest.mark.parametrize("text", [doubled(30), doubled(30, "x0"), piped(30), zipped(30)])
def test_a_type_that_doubles_with_every_step_is_checked_and_abbreviated(text: str) -> None:
    definition = check_text(text)["f"]
    assert definition.body.type.extent > 2**30  # type: ignore[union-attr]
    assert "…" in full_type(definition)
    assert len(full_type(definition)) < 500


def test_two_such_types_are_compared_in_steps_in_proportion_to_the_graph(monkeypatch: Any) -> None:
    calls = 0
    before = Unifier._unify_heads

    def counted(self: Unifier, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        before(self, *arguments)

    monkeypatch.setattr(Unifier, "_unify_heads", counted)
    two = doubled(25, "x0 => fun(y0").removesuffix("x25)")
    lets = "".join(f"  let y{i + 1} = (y{i}, y{i}) in\n" for i in range(25))
    check_text(f"{two}{lets}  select(true)(x25)(y25)))")
    assert 100 < calls < 3000


@pytest.mark.parametrize("use", ["x30 + 1", "x30(1)", "map(x30)", "(x30 : f32)", "zip(x30)(x30)"])
def test_messages_about_such_types_are_short(use: str) -> None:
    with pytest.raises(RiseError) as caught:
        check_text(doubled(30).removesuffix("x30)") + use + ")")
    assert len(caught.value.render()) < 3000


def test_equal_types_are_one_object_also_after_a_journey() -> None:
    n = variable("n")
    type_ = Function(Array(n, F32), Pair(Array(n, F32), F32))
    assert Array(n * 1, F32) is Array(element=F32, size=n)
    assert pickle.loads(pickle.dumps(type_)) is type_
    assert leaves(type_) == leaves(Array(n, F32))


def test_the_name_of_a_parameter_is_no_difference_but_is_kept() -> None:
    one, other = (Dependent(x, Kind.NAT, Function(Array(variable(x), F32), F32)) for x in "mn")
    assert Function(one, F32) == Function(other, F32)
    assert (str(one), str(other)) == ("(m: Nat) -> m.f32 -> f32", "(n: Nat) -> n.f32 -> f32")


# --- what runs --------------------------------------------------------------------------------------------

TWICE = "".join(f"def f{i + 1} = fun(x => f{i}(f{i}(x)))\n" for i in range(20))
VIEWS = "def v = fun(xs => zip(xs, xs) |> unzip |> fst)\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (doubled(20), "R0412"),
        (piped(20), "R0412"),
        (f"def f0 = fun(x: f32 => x + 1)\n{TWICE}def f = fun(x: f32 => f20(x))", "R0413"),
        (f"{VIEWS}def f = fun(xs: 4.f32 => xs{' |> v' * 25})", "R0413"),
    ],
)
def test_a_program_that_is_too_large_to_run_is_refused(text: str, code: str) -> None:
    from rise.normal import data_flow

    definition = check_text(text)["f"]
    with pytest.raises(RiseError) as caught:
        data_flow(specialise(definition, {}))
    assert caught.value.code == code


def test_sums_that_double_are_no_larger_than_their_text() -> None:
    text = f"def d = fun(x: f32 => x + x)\ndef f = fun(x: f32 => x{' |> d' * 25})"
    assert size(specialise(check_text(text)["f"], {})) < 1000


# --- sizes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size_",
    [
        "2^2^2^2^2^2", "2^(10^6)", "n^10000000", "10^100000", "(n + 1)^16^3 * (n + 1)^16^2 * 2^5000",
        "*".join(f"({x} + 1)" for x in "abcdefghijkl"), "(2*n)^100000", f"3^{DEGREE}",
    ],
)  # fmt: skip
def test_a_size_without_bound_is_refused_at_its_place(size_: str) -> None:
    names = ", ".join(f"{x}: Nat" for x in "abcdefghijkln")
    with pytest.raises(TooLarge) as caught:
        check_text(f"def f = depFun(({names}) => fun(xs: ({size_}).f32 => xs))")
    assert caught.value.code == "R0411"
    assert place(caught.value.origin) is not None


@pytest.mark.parametrize("number", ["9" * 401, "9" * 5000, f"1.{'0' * 500}", f"1e{'9' * 5000}"])
@pytest.mark.parametrize("text", ["def f: f64 = {}", "def f = fun(xs: ({}).f32 => xs)"])
def test_a_number_that_is_too_long_is_refused(text: str, number: str) -> None:
    with pytest.raises(RiseError) as caught:
        check_text(text.format(number))
    assert caught.value.code in ("R0105", "R0101")


def test_numbers_that_are_long_are_not_printed_whole() -> None:
    for text in ("def f: i64 = {}", "def f: f32 = {}", "def f: Idx[4] = {}"):
        with pytest.raises(RiseError) as caught:
            check_text(text.format("7" * 400))
        assert len(caught.value.message) < 200


def test_sizes_of_the_command_line_may_be_of_any_length() -> None:
    from rise.cli.options import sizes

    with pytest.raises(RiseError) as caught:
        sizes([f"n={'9' * 5000}"])
    assert caught.value.code == "R0407"
    definition: Definition = check_text("def f = depFun((n: Nat) => fun(xs: n.f32 => xs))")["f"]
    with pytest.raises(RiseError) as caught:
        specialise(definition, {"n": 10**5000})
    assert caught.value.code == "R0407"


def test_many_turns_of_an_iteration_are_none_too_many() -> None:
    turns = "xs |> iterate({})(depFun((l: Nat) => fun(ys: l.f32 => ys)))"
    check_text(f"def f = depFun((n: Nat) => fun(xs: n.f32 => {turns.format(100_000)}))")
    with pytest.raises(TooLarge):
        check_text(f"def f = depFun((n: Nat) => fun(xs: n.f32 => {turns.format(10_000_000)}))")


def test_powers_of_one_and_nothing_have_no_bound() -> None:
    assert power(1, 10**9) == constant(1)
    assert power(0, 10**9) == constant(0)
    assert evaluate(power(variable("n"), DEGREE), {"n": 1}) == 1
    with pytest.raises(TooLarge):
        evaluate(power(variable("n"), DEGREE), {"n": 2})
    with pytest.raises(TooLarge):
        evaluate(power(2, variable("n")), {"n": 10**9})


def test_operations_that_contain_each_other_have_a_bound() -> None:
    size_ = variable("n")
    with pytest.raises(TooLarge):
        for _ in range(EXTENT):
            size_ = remainder(size_, quotient(size_, 3) + 5)
    product = constant(1)
    with pytest.raises(TooLarge):
        for i in range(TERMS):
            product = product * (variable(f"n{i}") + 1)


# --- many definitions, many mistakes ----------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["fun(x: f32 => x + y{})", "fun(x: f32 => x + )", "fun(x: f32 => (x"])
def test_of_many_mistakes_all_are_counted_and_the_first_are_shown(wrong: str, monkeypatch: Any) -> None:
    from rise.check import scope

    looked: list[str] = []
    monkeypatch.setattr(scope, "suggestion", lambda name, _: looked.append(name))
    text = "".join(f"def f{i} = {wrong.format(i)}\n" for i in range(300))
    error = together(Loader().check(Source("many", text), Path()).mistakes)
    assert isinstance(error, Mistakes)
    assert len(error.mistakes) == 300
    assert not looked
    shown = error.render()
    assert shown.count(": error R0") == MOST_SHOWN
    assert shown.endswith("300 mistakes in 1 file; 200 of them are not shown")
    assert len(looked) == (MOST_SHOWN if "y" in wrong else 0)


def test_a_part_of_a_file_is_parsed_without_what_is_above() -> None:
    """Each mistake is told from the lines of its own definition, however long the file is."""
    text = "".join(f"def f{i} = fun(x: f32 => x + )\n" for i in range(50))
    mistakes = Loader().check(Source("many", text), Path()).mistakes
    assert [place(m.origin).line for m in mistakes] == list(range(1, 51))  # type: ignore[union-attr]
    assert all(place(m.origin).text == ")" for m in mistakes)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "meant", "number"),
    [
        ("mpa", "map", 1),
        ("mpa", "max", 2),
        ("redcue", "reduce", 1),
        ("", "zip", 3),
        ("slit", "split", 1),
        ("a", "a", 0),
    ],
)
def test_letters_that_are_swapped_are_one_slip(written: str, meant: str, number: int) -> None:
    assert slips(written, meant) == slips(meant, written) == number


def test_the_name_with_the_fewest_slips_is_suggested() -> None:
    assert nearest("mpa", ["max", "map", "pad"]) == "map"
    assert nearest("zipp", ["unzip", "zip"]) == "zip"
    assert nearest("wrong", ["round"]) is None


# --- programs that are nearly right -----------------------------------------------------------------------


def test_mutants_are_accepted_or_refused() -> None:
    """A sample; `outcome` raises where there is neither. Ten seconds are a guard, not a measurement."""
    found = [outcome(mutant(seed=1, number=number)) for number in range(150)]
    codes = {each.code for each in found}
    assert sum(each.verdict is Verdict.RIGHT for each in found) >= 15
    assert len(codes) >= 8


def test_a_mutant_follows_from_its_number_alone() -> None:
    assert mutant(3, 17) == mutant(3, 17)
    assert mutant(3, 17) != mutant(3, 18)
