"""The strategy `default` lowers any program: here those in which nothing, or only an index, is computed."""

from __future__ import annotations

import pytest

from codegen.execute import available_backend, execute
from codegen.pipeline import generate
from rise.check.compare import Tolerance, compare
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import StrategyError
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.default import default
from tests.support.programs import succeeded

N = 5
ARRAY = f"(xs: {N}.f32)"
INDICES = f"generate(fun((i: Idx[{N}]) => i))"

PROGRAMS = {
    "indices": INDICES,
    "indices, by the identity": f"fun({ARRAY} => zip(generate(id))(xs) |> map(fst))",
    "an input as it is": f"fun({ARRAY} => xs)",
    "a copy by the identity": f"fun({ARRAY} => xs |> map(id) |> map(fun(x => x)))",
    "a constant": f"fun({ARRAY} => generate(fun((i: Idx[{N}]) => 1.5)))",
    "a pair of indices": f"({INDICES}, {INDICES})",
    "indices beside an array": f"fun({ARRAY} => ({INDICES}, xs))",
    "indices zipped": f"fun({ARRAY} => zip({INDICES})(xs))",
    "indices unzipped": f"fun({ARRAY} => unzip(zip({INDICES})(xs)))",
    "indices twice": f"concat({INDICES})({INDICES})",
    "indices for each": f"fun({ARRAY} => xs |> map(fun(x => {INDICES})))",
    "indices in three dimensions": f"generate(fun((i: Idx[3]) => generate(fun((j: Idx[2]) => {INDICES}))))",
    "indices chosen": f"fun((c: bool) => select(c)({INDICES})({INDICES}))",
    "indices behind a name": f"let is = {INDICES} in is",
    "indices scattered": f"{INDICES} |> scatter({INDICES} |> gather({INDICES}))",
    "elements by their index": f"fun({ARRAY} => generate(fun(i => xs |> idx(i))))",
    "the array for each": f"fun({ARRAY} => generate(fun((i: Idx[3]) => xs)))",
}


def lowered(program: Expr) -> Expr:
    return succeeded(default()(data_flow(program))).term


@pytest.mark.parametrize("shown", PROGRAMS)
def test_what_computes_nothing_is_lowered_and_means_the_same(shown: str) -> None:
    program = check_expression(PROGRAMS[shown])
    inputs = random_inputs(inputs_of(program), 0, exact=True)
    low = lowered(program)
    assert low.type == program.type
    verdict = compare(call(low, *inputs), call(program, *inputs), Tolerance())
    assert verdict.agrees, str(verdict)


@pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("shown", ["indices", "indices beside an array", "indices twice", "indices unzipped"])
def test_it_runs_as_a_kernel(shown: str) -> None:
    program = check_expression(PROGRAMS[shown])
    inputs = random_inputs(inputs_of(program), 0, exact=True)
    found = execute(generate(lowered(program), "shown"), inputs, "emulate")
    verdict = compare(found, call(program, *inputs), Tolerance())
    assert verdict.agrees, str(verdict)


# --- several levels ---------------------------------------------------------------------------------------

DOT = "zip(row)(col) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"
# by program: how many maps may be over threads
NESTS = {
    f"fun((A: 7.5.i32, B: 11.5.i32) => A |> map(fun(row => B |> map(fun(col => {DOT})))))": 2,
    f"fun((A: 3.7.5.i32, B: 1.5.i32) => A |> map(map(fun(row => B |> map(fun(col => {DOT}))))))": 3,
    "fun((A: 2.3.4.5.i32) => A |> map(map(map(map(fun(x => x + 1))))))": 3,
    "fun((A: 6.35.i32) => A |> map(fun(row => row |> split(5) |> map(reduce(+, 0)))) |> transpose)": 2,
    "fun((A: 6.35.i32) => A |> map(fun(row => row |> split(5) |> map(reduce(+, 0)))) |> join)": 2,
    "generate(fun((i: Idx[5]) => generate(fun((j: Idx[3]) => indexToInt(i) * indexToInt(j)))))": 2,
    # each thread of a row would add it up
    "fun((A: 6.5.i32) => A |> map(fun(row => let s = row |> reduce(+, 0) in row |> map(fun(x => s)))))": 1,
    "fun((A: 6.5.i32) => A |> map(scan(+, 0)))": 1,
    # the grid has no room for more rows
    "fun((A: 65536.2.i32) => A |> map(map(fun(x => x + 1))))": 1,
}


@pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(("text", "most"), NESTS.items())
def test_maps_directly_inside_each_other_are_over_threads(text: str, most: int) -> None:
    program = data_flow(check_expression(text))
    inputs = random_inputs(inputs_of(program), 0, exact=True)
    expected = call(program, *inputs)
    for levels in (1, 2, 3):
        low = succeeded(default(levels)(program)).term
        kernel = generate(low, "f")
        maps = [part for part in subterms(low) if isinstance(part, Primitive) and part.name == "mapGlobal"]
        assert len(maps) == min(levels, most)
        if levels == most > 1:
            verdict = compare(execute(kernel, inputs, "emulate"), expected, Tolerance())
            assert verdict.agrees, f"{levels}: {verdict}"


@pytest.mark.parametrize("levels", [0, 4, -1])
def test_a_grid_has_one_to_three_dimensions(levels: int) -> None:
    with pytest.raises(StrategyError, match="R0609"):
        default(levels)
