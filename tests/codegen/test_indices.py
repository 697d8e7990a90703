"""Index arithmetic stays small: nothing is divided in loops, nothing is computed twice, and no index changes.

The passes are tested on random imperative programs, by the elements that each thread touches in turn; and
on kernels, by their text. That the kernels compute what they should, the other tests say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import CodeType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, flatten
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.ir.scalar_temporaries import INT
from codegen.ir.sizes import nat_text
from codegen.passes.order import INDICES
from codegen.pipeline import generate
from rise.nat import Nat, NatLike, constant, maximum, minimum, nat, quotient, remainder, variable
from rise.types import Array, Scalar, Space
from tests.support.indexed_kernels import TENSOR_CORE, TEXTS, of_schedule, of_text, stencil
from tests.support.kernels import agrees, lowered
from tests.support.programs import program

F32 = Scalar("f32")

# --- what a program touches -----------------------------------------------------------------------------

LAUNCH = Launch(grid=(3, 1, 1), block=(64, 2, 1))
SHAPE = Array(constant(11), Array(constant(13), F32))
Sizes = dict[str, int]


def touched(command: i.Command, sizes: Sizes) -> Iterator[tuple[str, int]]:
    """The elements that one thread touches, in order; counters count as printed loops let them."""
    match command:
        case i.Sequence(parts):
            for part in parts:
                yield from touched(part, sizes)
        case i.Assign(i.Access(name, indices)):
            yield name, number(flatten(indices, dimensions(SHAPE)), sizes)
        case i.When(value, bound, body):
            if number(value, sizes) < number(bound, sizes):
                yield from touched(body, sizes)
        case i.Define(name, value, body):
            yield from touched(body, {**sizes, name: number(value, sizes)})
        case i.For(index, count, body):
            state = {c.name: number(c.start, sizes) for c in command.counters}
            for turn in range(number(count, sizes)):
                yield from touched(body, {**sizes, **state, index: turn})
                for c in command.counters:
                    last = number(c.modulus, sizes) - 1
                    if not c.after or state[c.after] == 0:
                        state[c.name] = 0 if state[c.name] == last else state[c.name] + 1
        case i.ParallelFor(level, dimension, index, count, body):
            axis = "xyz"[dimension]
            first = sizes[f"{'blockIdx' if level is i.Level.BLOCK else 'threadIdx'}_{axis}"]
            workers = LAUNCH.workers(level, dimension)
            assert isinstance(workers, int)
            for turn in range(first, number(count, sizes), workers):
                yield from touched(body, {**sizes, index: turn})


def number(value: Nat, sizes: Sizes) -> int:
    return int(eval(compiled(value), {"min": min, "max": max}, sizes))


@cache
def compiled(value: Nat) -> CodeType:
    """The printed text of an index as Python's: of natural numbers it divides as C does."""
    return compile(nat_text(value).replace(" / ", " // ").replace("Idx.", "Idx_"), "index", "eval")


WORKERS = [(0, 0, 0), (5, 1, 1), (36, 0, 2), (63, 1, 0)]


def traces(function: i.Function) -> list[list[tuple[str, int]]]:
    """Of some threads, in some blocks."""
    found = []
    for x, y, block in WORKERS:
        sizes = {"threadIdx_x": x, "threadIdx_y": y, "blockIdx_x": block}
        found.append(list(touched(function.body, sizes)))
    return found


# --- random programs ------------------------------------------------------------------------------------

BLOCKS = (i.Level.BLOCK, 0, (3, 2))
# one each, for some, and in turn
THREADS = [(i.Level.THREAD, 0, (64, 37, 128, 192, 100)), (i.Level.THREAD, 1, (2, 1, 6))]


@st.composite
def indices(draw: st.DrawFn, names: tuple[str, ...]) -> Nat:
    """Quotients, remainders and bounds of sums of indices, some of these nested."""
    known: list[Nat] = [variable(name) for name in names]
    total: Nat = constant(draw(st.integers(0, 5)))
    for _ in range(draw(st.integers(1, 3))):
        part = (
            draw(st.sampled_from(known)) * draw(st.sampled_from([1, 1, 1, 2, 3, 5, 8]))
            if known
            else constant(1)
        )
        part = part + draw(st.integers(0, 4))
        divisor = draw(st.sampled_from([2, 3, 4, 8, 12]))
        part = draw(
            st.sampled_from(
                [
                    part,
                    quotient(part, divisor),
                    remainder(part, divisor),
                    minimum(part, divisor),
                    maximum(part - 3, 0),
                    remainder(quotient(part, 3), divisor),
                    remainder(variable(names[-1]) + draw(st.integers(0, 4)), divisor) if names else part,
                ]
            )
        )
        known.append(part)
        total = total + part * draw(st.integers(1, 20))
    return total


@st.composite
def commands(draw: st.DrawFn, names: tuple[str, ...], depth: int, path: str = "") -> i.Command:
    made: list[i.Command] = []
    for place in "ab"[: draw(st.integers(1, 2))]:
        kind = draw(st.sampled_from(["access", "for", "threads", "when"])) if depth else "access"
        inside = path + place
        fresh = f"i_{inside}"
        if kind == "access":
            address = (draw(indices(names)), draw(indices(names)))
            target = i.Access(draw(st.sampled_from(["xs", "ys"])), address, F32)
            made.append(i.Assign(target, i.Number(0.0, F32)))
        elif kind == "when":
            value, bound = draw(indices(names)), draw(st.integers(1, 40))
            made.append(i.When(value, constant(bound), draw(commands(names, depth - 1, inside))))
        elif kind == "for":
            count = constant(draw(st.sampled_from([1, 2, 4, 5, 6, 7, 11, 12])))
            body = draw(commands((*names, fresh), depth - 1, inside))
            made.append(i.For(fresh, count, body, unroll=draw(st.booleans())))
        else:
            level, dimension, counts = draw(st.sampled_from([BLOCKS, *THREADS]))
            count = constant(draw(st.sampled_from(counts)))
            body = draw(commands((*names, fresh), depth - 1, inside))
            made.append(i.ParallelFor(level, dimension, fresh, count, body))
    return i.sequence(*made)


def function_of(body: i.Command) -> i.Function:
    return i.Function("f", (i.Variable("xs", SHAPE), i.Variable("ys", SHAPE)), (), body)


def test_no_pass_changes_what_is_touched() -> None:
    fired: Counter[str] = Counter()

    @settings(max_examples=160, derandomize=True, deadline=None)
    @given(commands((), 3))
    def unchanged(body: i.Command) -> None:
        function = function_of(body)
        wanted = traces(function)
        for each in INDICES:
            new, _ = each.run(function, LAUNCH)
            fired[each.name] += new != function
            assert new == function or traces(new) == wanted, each.name
            function = new
        fired["a counter"] += bool(counters_of(function.body))

    unchanged()
    del fired["index scalars"]  # programs have these where an index is clamped: see below
    del fired["fuse fragment loops"]  # these are of fragments: test_elements.py
    del fired["hoist reads"]  # of indices that are data: test_hoist_reads.py
    del fired["floats of indices"]  # of numbers as floats: test_floats_of_indices.py
    del fired["grouped reads"], fired["prefetches"]  # of elements one by one: test_grouped_reads.py
    del fired["next indices"]  # of data that persistent blocks read: test_next_indices.py
    assert len(fired) == len(INDICES) - 6 and min(fired.values()) >= 3, fired


def counters_of(body: i.Command) -> list[i.Counter]:
    return [counter for c in i.commands(body) if isinstance(c, i.For) for counter in c.counters]


def test_rounds_of_a_ring_are_counted() -> None:
    """((k + s) / n + r) % m, and (k + s) % n beside it or not; s is a number, or known before the loop."""
    fired: Counter[str] = Counter()

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(
        *(st.integers(*ends) for ends in ((2, 7), (2, 4), (0, 9), (0, 3), (1, 25))),
        st.booleans(),
        st.booleans(),
    )
    def unchanged(n: int, m: int, s: int, r: int, count: int, beside: bool, known: bool) -> None:
        start = variable("k") + s + (7 * variable("blockIdx.x") if known else 0)
        turn = access(remainder(quotient(start, n) + r, m))
        slots = [access(remainder(start, n))] if beside else []
        function = function_of(i.For("k", constant(count), i.sequence(turn, *slots)))
        new = function
        for each in INDICES:
            new, _ = each.run(new, LAUNCH)
        assert traces(new) == traces(function)
        fired["rounds"] += any(counter.after for counter in counters_of(new.body))

    unchanged()
    assert fired["rounds"] >= 20, fired


def loop(index: str, count: NatLike, *parts: i.Command) -> i.For:
    return i.For(index, nat(count), i.sequence(*parts))


def access(index: Nat) -> i.Assign:
    return i.Assign(i.Access("xs", (constant(0), index), F32), i.Number(0.0, F32))


def after(body: i.Command) -> i.Command:
    function = function_of(body)
    for each in INDICES:
        function, _ = each.run(function, LAUNCH)
    return function.body


def test_a_ring_of_slots_is_counted() -> None:
    k = variable("k")
    match after(loop("k", 7, access(remainder(k, 3)), access(remainder(k + 2, 3)))):
        case i.For(counters=counters):
            assert [(c.start, c.modulus) for c in counters] == [
                (constant(0), constant(3)),
                (constant(2), constant(3)),
            ]
        case other:
            pytest.fail(str(other))


def test_a_bound_that_a_loop_does_not_change_is_found_before_it() -> None:
    scalar = i.Access("index_1", (), INT)
    value = i.Operator("max", (i.Natural(variable("thread") - 1, INT), i.Number(0, INT)), INT)
    inner = i.sequence(i.Assign(scalar, value), access(variable("k") + 3 * variable("index_1")))
    body = loop("k", 7, i.New(Space.LOCAL, "index_1", INT, inner))
    match after(i.ParallelFor(i.Level.THREAD, 0, "thread", constant(64), body)):
        case i.Define(thread, _, i.Define("index_1", bounded, i.For("k", _, i.Assign()))):
            assert bounded == maximum(variable(thread) - 1, 0)
        case other:
            pytest.fail(str(other))


def test_a_loop_that_is_taken_apart_is_two() -> None:
    k = variable("k")
    match after(loop("k", 12, access(quotient(k, 4) + 5 * remainder(k, 4)))):
        case i.For(outer, three, i.For(inner, four, i.Assign(i.Access(_, (_, index))))):
            assert (three, four) == (constant(3), constant(4))
            assert index == variable(outer) + 5 * variable(inner)
        case other:
            pytest.fail(str(other))


def test_a_loop_that_is_taken_apart_evenly_only() -> None:
    """13 is no multiple of 4: there is nothing that could be split."""
    assert not any(
        isinstance(c, i.For) and c.index != "k"
        for c in i.commands(after(loop("k", 13, access(quotient(variable("k"), 4)))))
    )


# --- the text of kernels --------------------------------------------------------------------------------


def divisions(source: str) -> dict[int, list[str]]:
    """The lines that divide, by the number of loops around them."""
    found: dict[int, list[str]] = {}
    loops: list[bool] = []
    for line in source.splitlines():
        code = "" if line.startswith("#include") else line.split("//")[0].strip()
        if "/" in code or "%" in code:
            found.setdefault(sum(loops), []).append(code)
        loops += [code.startswith("for (")] * code.count("{")
        del loops[len(loops) - code.count("}") :]
    return found


def kernels() -> list[Kernel]:
    return [*map(of_text, TEXTS), *map(of_schedule, TENSOR_CORE)]


@pytest.mark.parametrize("name", [*TEXTS, *TENSOR_CORE])
def test_nothing_is_divided_in_loops(name: str) -> None:
    source = (of_text if name in TEXTS else of_schedule)(name).source
    assert {depth: lines for depth, lines in divisions(source).items() if depth} == {}, source


@pytest.mark.parametrize("name", [*TEXTS, *TENSOR_CORE])
def test_no_index_is_divided_twice(name: str) -> None:
    source = (of_text if name in TEXTS else of_schedule)(name).source
    found = [d for line in divisions(source).get(0, []) for d in re.findall(r"[\w.]+ [/%] \d+", line)]
    assert len(set(found)) == len(found), source


def test_divisions_are_counted_where_they_are() -> None:
    text = (
        "a / b;\nfor (int i = n / 2; i < 3; i += 1) {  // x / y\n  if (i % 2 < 1) {\n    c;\n  }\n}\nd % e;"
    )
    assert divisions(text) == {
        0: ["a / b;", "for (int i = n / 2; i < 3; i += 1) {", "d % e;"],
        1: ["if (i % 2 < 1) {"],
    }


@pytest.mark.parametrize("name", ["flat transposition", "stencil 3D", "stencil 2D, zeros", "wrapping"])
def test_the_kernels_are_right(name: str) -> None:
    assert agrees(of_text(name), program(TEXTS[name], prelude=True))


def test_every_definition_is_used() -> None:
    for made in kernels():
        for name in re.findall(r"const int (\w+) =", made.source):
            assert len(re.findall(rf"\b{name}\b", made.source)) > 1, made.source


# --- nested pads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pad", ["padClamp{}D(1, 2)", "padCst{}D(2, 1)(0)"])
@pytest.mark.parametrize("dimensions_", [2, 3])
def test_a_pad_adds_as_much_text_as_the_one_before(pad: str, dimensions_: int) -> None:
    """Depths 1 to 5: what one more adds is the same, up to longer numbers, and less than a kernel."""
    one = pad.format(dimensions_)
    texts = [stencil(dimensions_, " |> ".join([one] * depth)) for depth in range(1, 6)]
    sizes = [len(generate(lowered(text, prelude=True), "f").source) for text in texts]
    added = np.diff(sizes)
    assert max(added) <= 1.3 * min(added), sizes
    assert max(added) < 300 * dimensions_ // 2, sizes


def test_functions_are_kept_for_those_who_ask_for_structure() -> None:
    """`Kernel.function` is what the passes before have made of a program: named indices are for readers."""
    made = of_schedule("pipelined")
    assert not any(isinstance(c, i.Define) for c in i.commands(made.function.body))
    assert [name for name, _ in made.stages][-len(INDICES) :] == [each.name for each in INDICES]
