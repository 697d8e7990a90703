"""Guided search: what sketches mean, that what is found is right, and what is said where nothing is."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.pipeline import assemble
from rewrites.derivation import described, programs, read, replay
from rewrites.lowering import MAP_SEQ
from rewrites.memory import NOT_STORED
from rewrites.result import Failure, Success
from rise.canonical import canonical
from rise.check.program import check_expression, check_text
from rise.check.symbolic import opened
from rise.errors import StrategyError
from rise.expr import Expr, Identifier, Lambda, alpha_equal, map_children, substitute
from rise.nat import variable
from rise.normal import data_flow
from rise.testing import assert_equivalent, assert_preserves
from strategies.core import Strategy, seq
from strategies.guided.engine import Beam, Found
from strategies.guided.moves import at, at_view, packed, views_of_inputs
from strategies.guided.python import module_of
from strategies.guided.rules import NAMES, Rules, rule_set
from strategies.guided.search import Guide, Search, guided
from strategies.guided.sketch import (
    Contains,
    Node,
    Sketch,
    Term,
    anything,
    containsMap,
    containsReduce,
    containsTerm,
    holds,
    nest,
)
from strategies.guided.text import sketch
from strategies.places import in_inputs
from tests.strategies.guided_goals import FOUND
from tests.strategies.schedule_programs import TVM, matmul
from tests.strategies.schedule_programs import nest as loops_of
from tests.support.pages import blocks, calls
from tests.support.programs import program, succeeded

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guided-search.md"


@cache
def example() -> ModuleType:
    """examples/guided_gemm.py."""
    spec = spec_from_file_location("guided_gemm_example", ROOT / "examples" / "guided_gemm.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def goals() -> dict[str, Any]:
    return {**example().GOALS, **example().OTHERS}


GOALS = ["baseline", "blocking", "vectorization", "loop_perm", "array_packing", "cache_blocks", "par"]
# those that tests search for; of the others they repeat what was found
SEARCHED = [
    "baseline", "loop_perm", "array_packing", "tiles in 1 dimension", "tiles in 2 dimensions",
    "a stencil in overlapping tiles", "a tensor-core product of tiles",
]  # fmt: skip


def start_of(name: str) -> Expr:
    """The body of a goal's program."""
    body: Expr = example().body(data_flow(goals()[name].definition))
    return body


@cache
def repeated(name: str) -> Success:
    """The steps to a goal, without the search."""
    return succeeded(FOUND[name](start_of(name)))


def sketches_of(name: str) -> list[Sketch]:
    """The sketches of a goal, at its sizes."""
    goal = goals()[name]
    return [Guide.of(text, rules, goal.sizes).sketch for text, rules in goal.guides]


# --- what a sketch means ------------------------------------------------------------------------------------

NEST = (
    "fun((a: 4.6.f32, b: 6.f32) =>"
    " a |> mapSeq(fun(r => zip(r)(b) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))"
)


@pytest.mark.parametrize(
    "text",
    [
        "_", "map", "map 4", "map 6", "mapSeq 4", "reduce 6", "loop 4 > loop 6", "map 4 > map 6",
        "map 10 - 6 > map 12/2", "map 2 + 2*(4 - 3)", "map 4 > reduce", "map 2*_ > map 3*_", "map _ + 1",
        "map 4 > reduce & map 4 > map", "map 5 | map 4", "map 4 > (reduce 5 | map 6)", "zip > mapSeq | zip 6",
        "mapSeq > mul", "`fun(p: (f32, f32) => fst(p) * snd(p))`", "map 4 > _",
    ],
)  # fmt: skip
def test_a_program_satisfies_a_sketch(text: str) -> None:
    wanted, term = sketch(text), program(NEST)
    assert wanted.satisfied(term) and wanted.distance(term) == 0


@pytest.mark.parametrize(
    "text",
    [
        "map 5", "mapSeq 6", "map 6 > map 4", "reduce > map", "map 4 > map 4", "reduceSeq", "map 6 > reduce",
        "map 5*_", "map _ + 7", "map 4 & map 5", "map 5 | map 7", "vector", "toMem(Global)",
        "`fun(x: f32 => x * 2.0)`",
    ],
)  # fmt: skip
def test_a_program_does_not_satisfy_a_sketch(text: str) -> None:
    wanted, term = sketch(text), program(NEST)
    assert not wanted.satisfied(term) and wanted.distance(term) > 0


def test_what_a_loop_reads_is_not_inside_of_it() -> None:
    """The map before a reduction is beside it, and a map that only changes the form of data is no loop."""
    before = program("fun(xs: 4.6.i32 => xs |> map(fun(x => x |> reduce(+, 0))) |> reduce(+, 0))")
    assert not sketch("reduce 4 > map 4").satisfied(before)
    assert sketch("map 4 > reduce 6").satisfied(before)
    assert not sketch("map").satisfied(program("fun(xs: 4.6.i32 => xs |> map(fun(x => x |> split(2))))"))


def test_parentheses_are_for_the_parameters_that_a_program_writes() -> None:
    stored = program("fun(xs: 4.i32 => xs |> mapGlobal(1)(fun(x => x + 1)) |> toMem(Global))")
    for text, holds_ in (
        ("toMem(Global) > map 4", True), ("toMem(Shared)", False), ("mapGlobal(1)", True),
        ("mapGlobal(0) 4", False), ("toMem", True), ("mapGlobal(4)", False),
    ):  # fmt: skip
        assert sketch(text).satisfied(stored) == holds_, text


def test_the_constructors_make_what_the_text_says() -> None:
    size = variable("m")
    wanted = containsMap(size, containsReduce(4, holds("toMem", None, anything, "Global")) | containsMap())
    assert wanted == sketch("map m > (reduce 4 > toMem(Global) | map)")
    assert nest(containsMap(2), containsReduce(3), anything) == sketch("map 2 > reduce 3 > _")
    term = data_flow(check_expression("fun(x: f32 => x * 2.0)"))
    assert containsTerm(term) == Term(term) == sketch("`fun(y: f32 => y * 2.0)`") or alpha_equal(
        term,
        sketch("`fun(y: f32 => y * 2.0)`").term,  # type: ignore[attr-defined]
    )
    with pytest.raises(StrategyError, match="cannot contain") as refused:
        nest(containsMap(2) & containsMap(3), anything)
    assert refused.value.code == "R0640"


# --- texts --------------------------------------------------------------------------------------------------

names = st.sampled_from(["map", "reduce", "loop", "vector", "mapGlobal", "toMem"])
sizes = st.sampled_from(["", " 7", " m/3", " 2*m - 1", " _", " 3*_ + n"])
nodes = st.builds(lambda name, size: sketch(name + size), names, sizes)


def larger(inner: st.SearchStrategy[Sketch]) -> st.SearchStrategy[Sketch]:
    return st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a, b: Contains(a.node, b), nodes, inner),
    )


sketches = st.recursive(st.one_of(nodes, st.just(anything)), larger, max_leaves=6)


@given(sketches)
def test_a_sketch_is_read_from_what_it_prints(wanted: Sketch) -> None:
    again = sketch(str(wanted))
    assert str(again) == str(wanted)
    assert [str(node) for node in again.nodes()] == [str(node) for node in wanted.nodes()]


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("", 1, "the sketch ends where a loop, a primitive or `_` has to follow", "is a map over"),
        ("map 3 >", 8, "the sketch ends where a loop, a primitive or `_` has to follow", "is a map over"),
        ("map 3\n  > maq 4", 5, "there is no loop and no primitive `maq`", "did you mean"),
        ("map m/ > reduce", 8, "`>` is no size", "numbers, names and `_`"),
        ("map 3 4", 7, "`4` does not continue a sketch", "is a map over"),
        ("(map 3", 1, "`(` is not closed by `)`", ""),
        ("map 3)", 6, "`)` does not continue a sketch", "is a map over"),
        ("(map 3 & map 4) > map", 1, "`map 3 & map 4` is not one loop", "is a map over"),
        ("map _*_", 5, "a size has one hole `_` at most", "is found"),
        ("map m/0", 6, "`m` cannot be divided by `0`", ""),
        ("map 1 -", 8, "a size is missing", "`_` is any size"),
        ("toMem(Global", 6, "`(` is not closed by `)`", ""),
        ("toMem()", 6, "a word is missing in the parentheses", "as in `toMem(Global)`"),
        ("map & `x + 1`", 7, "the term of a sketch is none: unknown name `x`", ""),
        ("map ? 3", 5, "`?` is no size", "numbers"),
        ("? 3", 1, "`?` is no loop, no primitive and not `_`", "is a map over"),
    ],
)
def test_a_malformed_sketch_is_refused_at_its_place(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(StrategyError) as refused:
        sketch(text)
    error = refused.value
    assert error.code == "R0640" and error.message.startswith(message)
    assert f"sketch:{1 + text.count(chr(10))}:{column}: error" in error.render()
    assert hint in (error.hint or "")


def test_sizes_have_to_be_whole_and_known() -> None:
    with pytest.raises(StrategyError, match="the size `k/5` of the sketch is not whole for k = 8"):
        Guide.of("map m > reduce k/5", "tile", {"m": 3, "k": 8})
    with pytest.raises(StrategyError, match="the program has no size `q`"):
        guided(Guide.of("map q", "tile"))(program(NEST))


# --- distances, and names -----------------------------------------------------------------------------------


@cache
def visited() -> tuple[Expr, ...]:
    """Programs on the way to all goals: one of thirty."""
    every: list[Expr] = []
    for name in FOUND:
        every += [start_of(name), *programs(start_of(name), repeated(name))]
    return tuple(every[::30])


def wanted() -> Iterator[Sketch]:
    """The sketches of all goals, and their parts."""
    for name in FOUND:
        rest = sketches_of(name)
        while rest:
            yield (one := rest.pop())
            rest += one.parts()


def renamed(term: Expr, count: int = 0) -> Expr:
    """The same term, each bound variable with a name of its own."""
    if isinstance(term, Lambda):
        old = term.parameter
        new = Identifier(f"other{count}", old.type)
        return Lambda(new, renamed(substitute(term.body, {old.name: new}), count + 1))
    return map_children(term, lambda child: renamed(child, count))


def test_the_distance_is_zero_for_programs_that_satisfy_a_sketch_and_for_no_others() -> None:
    every = {str(one): one for one in wanted()}
    outcomes = set()
    for one in every.values():
        for term in visited():
            outcomes.add(one.satisfied(term))
            assert (one.distance(term) == 0) == one.satisfied(term), one
    assert outcomes == {True, False} and len(every) > 20


def test_names_of_bound_variables_do_not_matter() -> None:
    every = list({str(one): one for one in wanted()}.values())[::3]
    keys = set()
    for term in visited():
        other = renamed(term)
        assert alpha_equal(term, other) and canonical(term) == canonical(other)
        keys.add(canonical(term))
        for one in every:
            assert one.distance(term) == one.distance(other), one
    assert len(keys) > 10


def test_programs_that_differ_have_different_keys() -> None:
    texts = (
        "fun((a: 4.i32, b: 4.i32) => zip(a)(b) |> map(fun((x, y) => x - y)))",
        "fun((a: 4.i32, b: 4.i32) => zip(b)(a) |> map(fun((x, y) => x - y)))",
        "fun((a: 4.i32, b: 4.i32) => zip(a)(b) |> map(fun((x, y) => y - x)))",
        "fun((a: 4.i32, b: 4.i32) => zip(a)(b) |> mapSeq(fun((x, y) => x - y)))",
        "fun((a: 4.i32, b: 4.i32) => a |> map(fun(x => x - 1)))",
        "fun((a: 4.i32, b: 4.i32) => a |> map(fun(x => x - 2)))",
        "fun((a: 5.i32, b: 4.i32) => a |> map(fun(x => x - 2)))",
    )
    assert len({canonical(program(text)) for text in texts}) == len(texts)


# --- goals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_finds_what_the_page_says(name: str) -> None:
    reached = example().found(goals()[name])
    assert all(each.satisfied for each in reached) and len(reached) <= 3
    assert repr(seq(*reached[-1].program.moves)) == repr(FOUND[name])
    figures = " | ".join(map(str, example().figures(reached)))
    assert f"| {name} | {figures} | " in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FOUND)
def test_the_steps_to_a_goal_preserve_the_program(name: str) -> None:
    start, result = start_of(name), repeated(name)
    assert sketches_of(name)[-1].satisfied(result.term) and not sketches_of(name)[-1].satisfied(start)
    row = re.search(rf"\| {name} \| (\d) \| \d+ \| \d+ \| (\d+) \|", PAGE.read_text(encoding="utf-8"))
    assert row is not None
    assert (int(row[1]), int(row[2])) == (len(goals()[name].guides), len(result.steps))
    definition = data_flow(goals()[name].definition)
    assert_equivalent(definition, succeeded(in_inputs(FOUND[name])(definition)).term, seeds=(0,))


@pytest.mark.parametrize("name", GOALS)
def test_kernels_are_made_of_a_goal(name: str) -> None:
    """Its loops are those of the schedule that is written by hand; packing copies numbers, not vectors."""
    goal = goals()[name]
    result = succeeded(example().compiled(in_inputs(FOUND[name]))(data_flow(goal.definition)))
    assert re.findall(r"\w+(?=\()", loops_of(result.term)) == re.findall(r"\w+(?=\()", TVM[name])
    text = "".join(kernel.source for kernel in assemble(result.term, "guided").kernels)
    assert text.count("__global__") == (2 if "toMem" in str(goal.guides) else 1)


def test_tiles_have_as_many_dimensions_as_a_sketch_says() -> None:
    for number in (1, 2, 3):
        result = repeated(f"tiles in {number} dimension{'s' if number > 1 else ''}")
        assert loops_of(result.term).count("map(") == 2 * number


def test_a_goal_is_reached_from_any_program_and_size() -> None:
    """Rows of B, awkward sizes, whole numbers: every step is evaluated."""
    text = (
        "fun((A: 6.4.i32, B: 15.4.i32) => A |> map(fun(r => B |> map(fun(c =>"
        " zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))"
    )
    search = guided(Guide.of("map 2 > map 3 > reduce 2 > map 3 > reduce 2 > map 5", "tile=5,3,2 reorder"))
    assert_preserves(search, text)


def test_a_search_takes_a_sketch_of_a_rule_that_it_is_given() -> None:
    term = program("fun(xs: 12.i32 => xs |> map(fun(x => x + 1)))")
    result = succeeded(guided(Guide.of("map 4 > map 3", "FOLD_OF_FOLD[0] SPLIT_JOIN(n=3)"))(term))
    assert [step.rule for step in result.steps] == ["splitJoin"]


def test_sizes_may_stay_open() -> None:
    text = 'import "prelude.rise"\ndef times(m: Nat, n: Nat, k: Nat)(A: m.k.f32, B: k.n.f32) = matmul(A)(B)'
    term = data_flow(opened(check_text(text)["times"], {"k": 8}, {"m": 32, "n": 1}).program)
    guide = Guide.of("map m/32 > map n > map 32", "tile reorder", {"m": 32 * variable("m_32")})
    assert loops_of(succeeded(guided(guide)(term)).term) == "map(m_32) map(n) map(32) reduceSeq(8)"


def test_a_derivation_is_saved_and_replayed() -> None:
    start = start_of("par")
    again = replay(start, read(json.dumps(described(start, repeated("par")))))
    assert alpha_equal(again.success.term, repeated("par").term) and not again.changed


def test_what_is_found_prints_as_the_python_that_repeats_it() -> None:
    """Rules, also of tables, and functions are imported from where they are."""
    start = data_flow(goals()["array_packing"].definition)
    moves = example().found(goals()["array_packing"])[-1].program.moves
    meaning = 'A """ text" \\'
    text = module_of((*moves, at((), NOT_STORED)), meaning)
    assert ast.get_docstring(ast.parse(text)) == meaning
    assert "from rewrites.memory import NOT_STORED\n" in text
    namespace: dict[str, Any] = {}
    exec(module_of(moves, meaning, lower=True), namespace)
    again = succeeded(namespace["found"](start))
    assert alpha_equal(again.term, succeeded(example().compiled(in_inputs(seq(*moves)))(start)).term)


# --- the search ---------------------------------------------------------------------------------------------


def test_a_search_that_is_repeated_finds_the_same() -> None:
    term = program(matmul(6, 10, 4))
    guides = (Guide.of("map 2 > map 2 > map 3 > map 5", "tile reorder"),)
    first, second = (Search().reached(term, guides)[-1] for _ in range(2))
    assert repr(first.program.moves) == repr(second.program.moves)
    assert (first.visited, first.rounds) == (second.visited, second.rounds)


def test_a_program_that_satisfies_its_sketch_takes_no_step() -> None:
    term = program(NEST)
    result = succeeded(guided(Guide.of("map 4 > map 6", "vectorise=2"))(term))
    assert (result.term, result.steps) == (term, ())


def test_another_engine_may_search() -> None:
    """An engine that grows nothing reaches what satisfies the sketch already, and nothing else."""

    class Nothing(Beam):
        def grow(self) -> bool:
            return False

    search = Search(engine=Nothing)
    term = program(NEST)
    assert search.reached(term, [Guide.of("map 4", "tile")])[-1].satisfied
    assert not search.reached(term, [Guide.of("map 2 > map 2", "tile")])[-1].satisfied


def test_a_beam_keeps_the_nearest_and_knows_each_program_once() -> None:
    """Two strategies that make the same program are one; of those made, `width` are kept."""
    term = program("fun(xs: 12.i32 => xs |> map(fun(x => x + 1)))").body  # type: ignore[union-attr]
    moves: list[Strategy] = [*rule_set("tile=2,3,6", sketch("_")).moves(term)] * 2
    rules = Rules("twice", lambda _: moves)
    for width, kept in ((2, 2), (9, 3)):
        beam = Beam(Found(term), rules, sketch("map 2 > map 9"), width)
        assert beam.grow() and beam.visited == 4 and len(beam.front) == kept
    assert loops_of(beam.extract(beam.sketch).term) in ("map(2) map(6)", "map(6) map(2)")
    assert not beam.satisfies(beam.sketch)


def failure(search: Strategy, text: str) -> Failure:
    result = search(program(text))
    assert isinstance(result, Failure)
    return result


def test_a_failure_names_the_nearest_program_and_what_it_lacks() -> None:
    guide = Guide.of("map m/3 > map n/5 > map 3 > map 5", "tile", {"m": 6, "n": 10})
    wrong = failure(guided(guide), matmul(6, 10, 4))
    assert wrong.reason == (
        "`map m/3 > map n/5 > map 3 > map 5` is not reached in 2 rounds: of the nearest of 5 programs,"
        " `map 2` is inside of `map 3`"
    )
    assert "its loops are map(2), map(3), map(2), map(5), reduceSeq(4)" in (wrong.hint or "")
    error = wrong.error("guided")
    assert error.code == "R0606" and "after 8 steps" in error.render()
    second = failure(
        guided(
            Guide.of("map 2 > map 3", "tile"), Guide.of("map 7 & vector 4 | reduce 9", "vectorise"), steps=2
        ),
        matmul(6, 10, 4),
    )
    assert "(sketch 2)" in second.reason and "`reduce 9` is missing" in second.reason
    apart = failure(guided(Guide.of("map 10 > (map 6 | map 9)", "tile=7")), matmul(6, 10, 4))
    assert "`map 6 | map 9` is not inside of `map 10`" in apart.reason
    term = failure(guided(Guide.of("`fun(x: f32 => x * 2.0)` & map 7", "reorder"), steps=1), matmul(6, 10, 4))
    assert "`x => x * 2.0` is missing; `map 7` is missing" in term.reason


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "no set of rules is given", "there are `tile`"),
        ("tiel", "there is no set of rules `tiel`", "did you mean `tile`?"),
        ("foo", "there is no set of rules `foo`", "and rules such as `MAP_FUSION`"),
        ("tile=", "`tile=` is no set of rules", "as in `tile=32,4`"),
        ("tile=0", "`tile=0` is no set of rules", "as in `tile=32,4`"),
        ("reorder=3", "`reorder=3` is no set of rules", "as in `tile=32,4`"),
        ("MAP_FUSSION", "there is no rule `MAP_FUSSION`", "did you mean `MAP_FUSION`?"),
    ],
)
def test_sets_of_rules_that_do_not_exist_are_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(StrategyError) as refused:
        rule_set(text, anything)
    assert (refused.value.code, refused.value.message) == ("R0641", message)
    assert hint in (refused.value.hint or "")


def test_numbers_that_a_search_cannot_have_are_refused() -> None:
    with pytest.raises(StrategyError, match=r"guided: beam = 0 must be at least 1"):
        guided(Guide.of("map 4", "tile"), beam=0)
    with pytest.raises(StrategyError, match="no sketch is given"):
        guided()


def test_numbers_of_a_sketch_are_the_numbers_of_its_rules() -> None:
    assert rule_set("tile", sketch("map m/32 > map 32 > reduce 4 > map 1")).name == "tile=32,4"
    assert {rule_set(name, sketch("map 2")).name.partition("=")[0] for name in NAMES} == set(NAMES)


# --- moves --------------------------------------------------------------------------------------------------


def test_places_that_are_not_there_are_refused() -> None:
    term = program("fun(xs: 4.6.i32 => xs |> transpose |> map(map(abs)))")
    missing = in_inputs(at_view(2, MAP_SEQ))(term)
    assert isinstance(missing, Failure) and missing.reason == "there is no view 2: inputs are read in 1 views"
    assert isinstance(at((0, 7), MAP_SEQ)(term), Failure)


def test_views_of_what_a_loop_binds_are_not_views_of_inputs() -> None:
    term = program(
        "fun((xs: 4.6.8.i32, y: i32) => xs |> map(fun(x => x |> transpose |> map(map(fun(z => z + y))))))"
    )
    assert views_of_inputs(example().body(term)) == ()
    stored = program("fun(xs: 4.6.i32 => xs |> transpose |> toMem(Global) |> map(map(abs)))")
    assert views_of_inputs(example().body(stored)) == ()


def test_what_is_packed_is_read_as_before() -> None:
    """Also where the input is read twice, and by a program of integers in three dimensions."""
    text = (
        "fun((xs: 2.3.5.i32, ys: 3.i32) => ys |> map(fun(y =>"
        " xs |> map(transpose) |> map(map(map(fun(x => x * y)))))))"
    )
    assert_preserves(in_inputs(packed(1, 3, MAP_SEQ)), text)


# --- the command line, and the page -------------------------------------------------------------------------


def test_the_page_says_what_the_commands_print(
    rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("product.rise").write_text(blocks(PAGE, "rise")[0])
    ran = 0
    for command, expected in calls(PAGE):
        called = rise(*shlex.split(command))
        assert called.status == ("error R06" in expected), called.err
        parts = (re.escape(part).replace("…", ".*") for part in expected.split("…\n"))
        assert re.fullmatch("(?:.*\n)*?".join(parts), called.out + called.err), called.out + called.err
        ran += 1
    assert ran == 4


def test_the_page_has_the_sketches_of_a_goal() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for written, rules in goals()["par"].guides:
        assert f"| `{written}` | `{rules}` |" in text


def test_a_search_is_saved_replayed_and_compiled(
    rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scaled.rise").write_text("def scaled(n: Nat)(xs: n.f32) = xs |> map(x => 2.0 * x)")
    call = (
        "search",
        "scaled.rise",
        "scaled",
        "--size",
        "n=15",
        "--sketch",
        "map n/5 > map 5",
        "--rules",
        "tile",
    )
    saved = rise(*call, "--save", "d.json")
    assert saved.status == 0, saved.err
    replayed = rise("derive", "scaled.rise", "scaled", "--size", "n=15", "--replay", "d.json")
    assert replayed.out in saved.out
    Path("found.py").write_text(rise(*call, "--python", "--lower").out)
    compiled = rise("compile", "scaled.rise", "scaled", "--size", "n=15", "--strategy", "found.py:found")
    assert compiled.status == 0 and compiled.out.count("// mapSeq") == 2
    described_ = json.loads(rise(*call, "--json", "--lower").out)
    assert described_["sketches"][0]["sketch"] == "map n/5 > map 5" and described_["agrees"]
    mistaken = rise(*call, "--rules", "tile", "--rules", "tile")
    assert (mistaken.status, "R0003" in mistaken.err) == (2, True)
    assert "Node" in repr(Node("map"))
