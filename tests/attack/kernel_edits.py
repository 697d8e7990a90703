"""Printed kernels of shipped schedules with one edit each: does anything notice?

`edits(seed)` gives them, `outcome(edit)` says how one fares under the options that everybody uses: one run in
the emulator, compared with the interpreter. Each edit says whether it does harm. One that does not has a
reason; one that does and agrees is a fault that nobody notices.

Compiling is what takes time, so a schedule is compiled once, with all of its edits: a number chooses one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from codegen.execute import checked_inputs, poisoned, result_of, run_emulated
from codegen.host.parameters import results
from codegen.host.program import HostProgram
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble
from rewrites.result import Success
from rise.check.program import check_text, load
from rise.check.specialise import specialise
from rise.errors import EmulationError
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.types import I32
from strategies.registry import find
from tests.attack.outcome import Outcome, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
CHOICE = "chosen_edit"


@dataclass(frozen=True)
class Subject:
    """A definition of an example at small sizes, or without a file a program itself, under a strategy."""

    file: str
    name: str
    sizes: dict[str, int]
    strategy: str
    settings: dict[str, str]


def _product(name: str, m: int, n: int, k: int, **settings: str) -> Subject:
    return Subject("gemm.rise", name, {"m": m, "n": n, "k": k}, "tensor_core", settings)


TRANSPOSED = "fun((xs: 32.64.f32) => xs |> transpose |> map(map(fun(x => x))))"
SUMS = "fun((xs: 5.512.f32) => xs |> map(fun(row => row |> reduce(+, 0))))"
HOPPER = {"warp": "64,64", "fragment": "64,64,16", "stages": "2", "warp_specialised": "true"}

SUBJECTS = {
    "WMMA": _product("matmul", 32, 32, 96, block="32,32,32", warp="16,16", stages="3"),
    "mma.sync": _product("matmul", 32, 32, 96, block="32,32,32", warp="16,32", fragment="16,8,16"),
    "Volta": _product("matmul", 32, 32, 64, block="32,32,32", warp="16,16", fragment="16,16,8", stages="1"),
    "roles": _product("matmul_bt_f16", 128, 64, 320, block="128,64,64", **HOPPER),
    "cluster": _product(
        "matmul_bt_f16", 128, 128, 320, block="64,64,64", persistent_blocks="2", cluster="2",
        raster_group="2", epilogue="bulk", **HOPPER,
    ),
    "split-K": _product("matmul", 32, 32, 128, block="32,32,32", warp="16,16", split_k="2"),
    "reduction": Subject("", SUMS, {}, "reduction", {"threads": "64"}),
    "transposition": Subject("", TRANSPOSED, {}, "transposition", {"tile": "32", "threads": "64"}),
    "stencil": Subject(
        "stencils_2d.rise", "fivePoint", {"m": 16, "n": 32}, "stencil", {"threads": "4,8", "rows": "2"}
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """What is edited: each match of the pattern in a kernel's body. `wrong` may use the match's groups.

    A pattern that ends with a semicolon is of whole statements, another one of an expression.
    """

    name: str
    right: str
    wrong: str


BARRIER = r"(?:__syncthreads\(\)|__syncwarp\(\)|named_barrier\([^;]*\)|cluster_sync\(\));"
WAIT = r"(?:wait_copies<\d+>\(\)|wgmma_wait<\d+>\([^;]*\)|bulk_wait_read<\d+>\(\)|barrier_wait\([^;]*\));"
RULES = [
    Rule("barrier removed", BARRIER, ";"),
    Rule("barrier doubled", BARRIER, r"\g<0> \g<0>"),
    Rule("wait removed", WAIT, ";"),
    Rule("wait doubled", WAIT, r"\g<0> \g<0>"),
    Rule("one more is left under way", r"(wait_copies|wgmma_wait|bulk_wait_read)<(\d+)>(\([^;]*\));",
         r"\1<1 + \2>\3;"),
    Rule("commit removed", r"(?:commit_copies|wgmma_commit|bulk_commit)\(\);", ";"),
    Rule("fence removed", r"(?:wgmma_fence|fence_async_shared|fence_barrier_init)\([^;]*\);", ";"),
    Rule("arrival removed", r"barrier_arrive(?:_remote)?\([^;]*\);", ";"),
    Rule("arrival doubled", r"barrier_arrive(?:_remote)?\([^;]*\);", r"{ \g<0> \g<0> }"),
    Rule("one warpgroup arrives twice", r"barrier_arrive(?:_remote)?\([^;]*\);",
         r"{ \g<0> if (threadIdx.x < 128) \g<0> }"),
    Rule("too many bytes expected", r"(barrier_expect\([^;]*), (\d+)\);", r"\1, \2 + 16);"),
    Rule("too few bytes expected", r"(barrier_expect\([^;]*), (\d+)\);", r"\1, \2 - 16);"),
    Rule("bytes of one copy expected", r"(barrier_expect\([^;]*), (\d+)\);", r"\1, 8192);"),
    Rule("bytes expected twice", r"barrier_expect\([^;]*\);", r"\g<0> \g<0>"),
    Rule("other parity", r"(barrier_wait\([^;]*), (\w+)\);", r"\1, 1 - \2);"),
    Rule("one arrival fewer", r"(barrier_init\([^;]*), (\d+)\);", r"\1, \2 > 1 ? \2 - 1 : 2);"),
    Rule("one arrival more", r"(barrier_init\([^;]*), (\d+)\);", r"\1, \2 + 1);"),
    Rule("another slot", r"(?<=int )(slot\w*) = (\d);", r"\1 = 1 - \2;"),
    Rule("one element on", r"&?\b(\w+)\[(?=\w* ?[\w(])(?![01]\])", r"\g<0>1 + "),
    Rule("other leading dimension", r"(wmma::(?:load|store)_matrix_sync\([^;]*, )(\d+)((?:, wmma::\w+)?)\);",
         r"\1\2 + 8\3);"),
    Rule("other swizzle", r"Swizzle::B128", "Swizzle::B64"),
    Rule("last step left out", r"(?<=; )(k\w*) < (\d+)(?=;)", r"\1 < \2 - 1"),
    Rule("step of nothing", r"(?<=; )(\w+) \+= 1(?=\))", r"\1 += 0"),
    Rule("always done", r"(?<=if \()(\w[\w ]* < [^;{)]*)(?=\) \{)", r"true"),
    Rule("initialisation dropped", r"(?:wmma|mma|volta)::fill_fragment\([^;]*\);", ";"),
    Rule("product left out", r"(?:wmma|mma|volta)::mma_sync\([^;]*\);|\bwgmma<[^;]*\);", ";"),
    Rule("store left out", r"(?:bulk_store|wmma::store_matrix_sync)\([^;]*\);", ";"),
    Rule("copy left out", r"(?:copy_async|copy_vector|bulk_load\w*)(?:<\d+>)?\([^;]*\);", ";"),
]  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """One place of a schedule's kernels, edited by a rule.

    kernel, place: which kernel, and where in the body of its text
    line, before:  the line of the text, and the one before
    harmless:      why nobody has to notice; "" for an edit that does harm
    """

    subject: str
    rule: str
    kernel: int
    place: tuple[int, int]
    right: str
    wrong: str
    line: str
    before: str
    harmless: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.rule} in `{self.line.strip()}`"


# --- programs and their kernels ---------------------------------------------------------------------


@cache
def program(subject: str) -> tuple[Expr, HostProgram]:
    """The program, for the interpreter, and its kernels."""
    given = SUBJECTS[subject]
    examples = load(EXAMPLES / given.file) if given.file else check_text(f"def f = {given.name}")
    definition = examples[given.name if given.file else "f"]
    term = data_flow(inline(specialise(definition, given.sizes)))
    made = find(given.strategy).make(given.settings)(term)
    if not isinstance(made, Success):
        raise LookupError(f"{subject}: {made.story()}")
    return term, assemble(made.term, "edited")


def body_start(source: str) -> int:
    """Where the body of a kernel's text begins."""
    return source.index(") {\n", source.index('extern "C"')) + 3


@cache
def table(subject: str) -> tuple[Edit, ...]:
    """Every edit of a schedule."""
    return tuple(edit for number, kernel in enumerate(program(subject)[1].kernels)
                 for edit in _edits_of(subject, number, kernel.source))  # fmt: skip


def _edits_of(subject: str, number: int, source: str) -> Iterator[Edit]:
    start = body_start(source)
    for rule in RULES:
        for match in re.finditer(rule.right, source[start:]):
            place = (start + match.start(), start + match.end())
            first = source.rindex("\n", 0, place[0]) + 1
            line, before = source[first : source.index("\n", place[1])], source[:first].splitlines()[-1]
            edit = Edit(subject, rule.name, number, place, match[0], match.expand(rule.wrong), line, before)
            yield replace(edit, harmless=harmless(edit))


def edits(seed: int, subjects: Sequence[str] = tuple(SUBJECTS)) -> Iterator[Edit]:
    """Every edit, in an order that the seed chooses."""
    found = [edit for subject in subjects for edit in table(subject)]
    random.Random(seed).shuffle(found)
    yield from found


# --- one text with all edits ------------------------------------------------------------------------


@cache
def combined(subject: str) -> HostProgram:
    """The kernels with each of their edits, of which the argument `chosen_edit` chooses one; 0 for none."""
    made = program(subject)[1]
    numbered = [*enumerate(table(subject), 1)]
    kernels = tuple(
        _with_edits(kernel, [(n, e) for n, e in numbered if e.kernel == number])
        for number, kernel in enumerate(made.kernels)
    )
    return replace(made, kernels=kernels)


def _with_edits(kernel: Kernel, numbered: list[tuple[int, Edit]]) -> Kernel:
    function = kernel.function
    arrays = len(function.outputs) + len(function.inputs)
    chosen = i.Variable(CHOICE, I32)
    source = kernel.source
    whole = sorted({edit.place for _, edit in numbered}, key=lambda place: (place[0], -place[1]))
    outermost: list[tuple[int, int]] = []
    for place in whole:
        if not outermost or place[0] >= outermost[-1][1]:
            outermost.append(place)
    for start, end in reversed(outermost):
        inside = [(n, e) for n, e in numbered if start <= e.place[0] and e.place[1] <= end]
        source = source[:start] + _choice(source[start:end], start, inside) + source[end:]
    head, parameters, rest = _apart(source)
    parameters[arrays:arrays] = [f"int {CHOICE}"]
    text = f"{head}({', '.join(parameters)}{rest}"
    return replace(
        kernel, source=text, lines=(), function=replace(function, inputs=(*function.inputs, chosen))
    )


def _apart(source: str) -> tuple[str, list[str], str]:
    """Head, parameters, and the rest of a kernel's text, from the closing parenthesis on."""
    end = source.index(") {\n", source.index('extern "C"'))
    start = source.rindex("(", 0, end)
    return source[:start], source[start + 1 : end].split(", "), source[end:]


def _choice(right: str, start: int, inside: list[tuple[int, Edit]]) -> str:
    """The text at a place, or what one of its edits makes of it."""

    def edited(edit: Edit) -> str:
        first, last = edit.place[0] - start, edit.place[1] - start
        return right[:first] + edit.wrong + right[last:]

    if right.endswith(";") and not re.match(r"slot", right):
        cases = "".join(f"if ({CHOICE} == {n}) {{ {edited(e)} }} else " for n, e in inside)
        return f"{{ {cases}{{ {right} }} }}"
    return right if not inside else _expression(right, inside)


def _expression(right: str, inside: list[tuple[int, Edit]]) -> str:
    (number, edit), *_ = inside
    for shape in (r"(?P<a>slot\w* = )(?P<x>\d)(?P<z>;)", r"(?P<a>\w+ \+= )(?P<x>\d)(?P<z>)",
                  r"(?P<a>k\w* < )(?P<x>\d+)(?P<z>)", r"(?P<a>&?\w+\[)(?P<x>)(?P<z>)"):  # fmt: skip
        if match := re.fullmatch(shape, right):
            wrong = edit.wrong[len(match["a"]) : len(edit.wrong) - len(match["z"])]
            if match["x"]:
                return f"{match['a']}({CHOICE} == {number} ? {wrong} : {match['x']}){match['z']}"
            return f"{match['a']}({CHOICE} == {number} ? 1 : 0) + "
    if right == "Swizzle::B128":
        return f"({CHOICE} == {number} ? {edit.wrong} : {right})"
    return f"(({CHOICE} == {number}) || ({right}))"


def outcome(edit: Edit | None, subject: str = "", seed: int = 0) -> Outcome:
    """What becomes of a program whose kernels are edited; without an edit, of a subject as it is."""
    subject = edit.subject if edit else subject
    term, made = program(subject)[0], combined(subject)
    number = table(subject).index(edit) + 1 if edit else 0
    inputs = random_inputs([(name, type_) for name, type_ in made.inputs], 0, exact=True)
    hosted = made.at({})
    hosted = replace(hosted, numbers={**hosted.numbers, CHOICE: number})
    given = list(checked_inputs(hosted, inputs))
    outputs = [poisoned(part) for part in results(hosted)]
    try:
        run_emulated(hosted, outputs, given, seed)
    except EmulationError as error:
        return Outcome(Verdict.NOTICED, error.code)
    same = np.array_equal(result_of(hosted, outputs), call(term, *inputs))
    if not same:
        return Outcome(Verdict.NOTICED, "differs")
    return Outcome(Verdict.RIGHT if edit is None or edit.harmless else Verdict.MISSED)


def harmless(edit: Edit) -> str:
    """Why an edit does no harm, or "" if it does."""
    for rule, subject, line, reason in HARMLESS:
        if (
            re.fullmatch(rule, edit.rule)
            and re.fullmatch(subject, edit.subject)
            and re.search(line, f"{edit.before}\n{edit.line}")
        ):
            return reason
    return ""


# rule, subject and line, as regular expressions, and why the edit does no harm
HARMLESS = [
    ("barrier doubled|wait doubled", ".*", ".*", "those who have met meet again; what has ended has ended"),
    (
        "wait removed|one more is left under way", ".*", r"wait_copies<0>",
        "after the last element of the pipeline only empty groups are committed: its copies are there",
    ),
    (
        "barrier removed", "WMMA|mma.sync", r"wait_copies<0>\(\);\n  __syncthreads",
        "before the epilogue's tile, which lies on slots that were read before the barrier of the last step",
    ),
    (
        "fence removed", "cluster", r"barrier_init\(full.*\n.*fence_barrier_init",
        "the same thread fences again, after the other barriers",
    ),
    (
        "fence removed", "roles", r"fence_barrier_init",
        "one of two fences of one thread: the other covers `full`, and `empty` needs none in a block",
    ),
    (
        "fence removed", "roles|cluster", r"wgmma_fence",
        "there is one before the loop and one in it, and the text writes no registers of the products",
    ),
    (
        "arrival removed", "roles", r"barrier_arrive\(empty\);",
        "after the last step: nobody waits for that slot any more, and neither warpgroup arrives",
    ),
    ("always done", "roles", r"thread_x < 256", "only these threads come here: the others load"),
]  # fmt: skip
