"""Wrong rules on the example programs: `rise derive --check` has to name each as the first guilty step.

Each is well typed and looks like a rule of the library: it drops, swaps or mistakes something. It is applied
once, where it first matches, in a derivation that goes on with the strategy `default`. Sizes are small and
mostly square, as a user would choose them, so that many are well typed by chance only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rewrites.result import Success
from rewrites.rule import COMPUTED, RULES, computed, rule
from rise.check.program import Loader, Program
from rise.check.specialise import specialise
from rise.cli.checking import Trial, trials
from rise.cli.comparing import DRAWS, compared, telling_trials
from rise.expr import Expr, Identifier, Lambda, children, with_children
from rise.interpret import call
from rise.normal import data_flow
from strategies.core import Strategy, seq, top_down
from strategies.registry import find
from tests.attack.outcome import Outcome, Verdict
from tests.support.programs import succeeded

EXAMPLES = Path(__file__).parents[2] / "examples"
NAME = "wrong"


def captured(term: Expr) -> Expr | str:
    """The inner of two functions of one type takes the name of the outer one, whose variable it hides."""
    if not isinstance(term, Lambda):
        return "no function"
    inner = _renamed(term.body, term.parameter)
    return "no function inside" if inner == term.body else Lambda(term.parameter, inner)


def _renamed(term: Expr, to: Identifier) -> Expr:
    if isinstance(term, Lambda) and term.parameter.type == to.type and to.name in term.free:
        return Lambda(to, _replaced(term.body, term.parameter.name, to))
    return with_children(term, tuple(_renamed(part, to) for part in children(term)))


def _replaced(term: Expr, name: str, by: Identifier) -> Expr:
    if isinstance(term, Identifier):
        return by if term.name == name else term
    return with_children(term, tuple(_replaced(part, name, by) for part in children(term)))


@dataclass(frozen=True)
class Wrong:
    """A rule, the example program that it is applied to, and the sizes.

    rewrite: the rule as a function, where two sides do not say it
    """

    what: str
    file: str
    name: str
    left: str
    right: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    rewrite: Callable[[Expr], Expr | str] | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.file} {self.name})"


SQUARE = {"m": 4, "n": 4, "k": 4}
N, MN = {"n": 5}, {"m": 4, "n": 4}
WRONG_RULES = (
    # what is dropped
    Wrong("a factor dropped", "linear_algebra", "scal", "xs |> map(fun(x => c * x))", "xs", N),
    Wrong("a factor of a sum dropped", "linear_algebra", "sgemm", "x * y + z", "y + z", SQUARE),
    Wrong("a factor of a difference dropped", "heat", "rodStep", "x + r * (y - z + v)", "x + (y - z + v)", N),
    Wrong("a summand dropped", "linear_algebra", "axpy", "x * y + z", "x * y", N),
    Wrong("a square for a product", "linear_algebra", "dot", "x * y", "x * x", N),
    Wrong("a bound dropped", "matrices", "upper", "select(b)(x)(y)", "x", N),
    Wrong("a lower bound dropped", "networks", "dense", "max(x)(y)", "x", MN),
    Wrong("a lower bound for all", "networks", "dense", "max(x)(y)", "y", MN),
    Wrong("a sign dropped", "complex_numbers", "conjugates", "-x", "x", N),
    Wrong("an absolute value dropped", "linear_algebra", "asum", "abs(x)", "x", N),
    Wrong("a root dropped", "complex_numbers", "magnitudes", "sqrt(x)", "x", N),
    Wrong("a division dropped", "statistics", "means", "x / y", "x", {"n": 4, "d": 4}),
    Wrong("a normalisation dropped", "networks", "softmaxRows", "x / y", "x", {"b": 4, "n": 4}),
    Wrong("a condition dropped", "game_of_life", "generation", "x == 1 && b", "b", MN),
    Wrong("a guard against zero dropped", "clustering", "update", "max(x)(1)", "x", {"n": 4, "k": 4, "d": 4}),
    Wrong("a tie-break dropped", "reductions", "whereLargest", "b || c", "b", N),
    # what is swapped
    Wrong("operands swapped", "stencils_1d", "differences", "x - y", "y - x", N),
    Wrong("branches swapped", "generators", "merge", "select(b)(x)(y)", "select(b)(y)(x)", N),
    Wrong("arrays of a zip swapped", "linear_algebra", "axpy", "zip(xs)(ys)", "zip(ys)(xs)", N),
    Wrong("the wrong component", "linear_algebra", "dot", "fst(p)", "snd(p)", N),
    Wrong("components of a pair swapped", "complex_numbers", "add", "(x, y)", "(y, x)"),
    Wrong("arrays joined in the wrong order", "reordering", "rotate",
        "concat(xs)(ys)", "concat(ys)(xs)", {"k": 3, "n": 3}),
    Wrong("elements in the wrong order", "reordering", "interleave",
        "makeArray(2)(x)(y)", "makeArray(2)(y)(x)", N),
    Wrong("selections swapped", "generators", "eitherOrder", "select(b)(x)(y)", "select(b)(y)(x)", N),
    Wrong("indices swapped", "matrices", "upper",
        "generate(fun(i => generate(fun(j => h(i, j)))))",
        "generate(fun(i => generate(fun(j => h(j, i)))))", N),
    Wrong("sizes swapped", "reordering", "withStride",
        "xs |> reorder(n, f, g)", "xs |> reorder(n, g, f)", {"s": 2, "n": 3}),
    # transpositions and views on squares
    Wrong("a transposition dropped", "reordering", "transposed", "xs |> transpose", "xs", MN),
    Wrong("an operand not transposed", "linear_algebra", "mm", "xs |> transpose", "xs", SQUARE),
    Wrong("rows for columns", "statistics", "means",
        "xs |> transpose |> map(f)", "xs |> map(f)", {"n": 4, "d": 4}),
    Wrong("blocks transposed", "copies", "copySplit",
        "xs |> split(n)", "xs |> split(n) |> transpose", {"n": 4}),
    Wrong("a stride dropped", "reordering", "withStrideByTranspose",
        "xs |> split(n) |> transpose |> join", "xs", {"s": 3, "n": 3}),
    Wrong("a selection dropped", "histograms", "lookUp", "xs |> gather(is)", "xs", {"n": 4, "k": 4}),
    Wrong("a gather for a scatter", "reordering", "toPlaces", "xs |> scatter(is)", "xs |> gather(is)", N),
    Wrong("the tail for the head", "reordering", "rotate",
        "xs |> take(n)", "xs |> drop(m)", {"k": 3, "n": 3}),
    # borders
    Wrong("padding on the wrong side", "padding", "zeros",
        "xs |> padCst(l, r)(c)", "xs |> padCst(r, l)(c)", N),
    Wrong("the wrong end repeated", "padding", "clampLeft",
        "xs |> padClamp(l, r)", "xs |> padClamp(r, l)", N),
    Wrong("windows one too late", "stencils_1d", "laplace1D",
        "xs |> padClamp(1, 1)", "xs |> padClamp(0, 2)", N),
    Wrong("a border repeated for zeros", "stencils_1d", "sum3Zero",
        "xs |> padCst(1, 1)(z)", "xs |> padClamp(1, 1)", N),
    Wrong("a border repeated for a ring", "stencils_1d", "sum3Wrap",
        "concat(xs |> drop(n))(concat(xs)(xs |> take(1)))", "xs |> padClamp(1, 1)", N),
    Wrong("zeros for a value", "padding", "prepend", "xs |> padCst(1, 0)(c)", "xs |> padCst(1, 0)(0)", N),
    # what is mistaken
    Wrong("less for at most", "matrices", "upper", "x <= y", "x < y", N),
    Wrong("less for at most, of numbers", "reductions", "isSorted", "x <= y", "x < y", N),
    Wrong("at most for equal", "histograms", "weighted", "x == y", "x <= y", {"n": 4, "k": 4}),
    Wrong("greater for less", "finance", "normal", "x < y", "y < x"),
    Wrong("the minimum for the maximum", "reductions", "range", "max(x)(y)", "min(x)(y)", N),
    Wrong("zero for the first element", "stencils_1d", "dilate",
        "xs |> reduce(max, z)", "xs |> reduce(max, 0)", N),
    Wrong("a wrong start of a fold", "polynomials", "horner",
        "xs |> reduceSeq(Local)(f, 0)", "xs |> reduceSeq(Local)(f, 1)", N),
    Wrong("a wrong literal", "heat", "rodStep", "2 * x", "3 * x", N),
    Wrong("a wrong number of neighbours", "game_of_life", "generation", "x == 3", "x == 4", MN),
    Wrong("a wrong neighbour", "stencils_1d", "differences", "idx(0)(xs)", "idx(1)(xs)", N),
    Wrong("a counter that is off by one", "statistics", "meanAndVariance", "x + 1", "x + 2", N),
    Wrong("or for and", "game_of_life", "torus", "b && c", "b || c", MN),
    Wrong("zero for one", "reductions", "gcd", "x == 0", "x == 1"),
    Wrong(
        "a mask without its diagonal", "attention_f32", "causalAttention",
        "x <= y", "x < y", {"n": 4, "d": 4, "e": 4},
    ),
    Wrong("a small summand dropped", "networks", "layerNorm", "x + y", "x", {"b": 4, "n": 4}),
    # what holds for other operations only
    Wrong(
        "a rounded division taken apart", "images", "resizeNearest",
        "x * y / z", "x * (y / z)", {"h": 4, "w": 4, "p": 4, "q": 4},
    ),
    Wrong("a sum distributed wrongly", "polynomials", "horner", "x * y + z", "x * (y + z)", N),
    Wrong("a root distributed", "complex_numbers", "magnitudes", "sqrt(x + y)", "sqrt(x) + sqrt(y)", N),
    Wrong("right for idempotent operators", "linear_algebra", "asum",
        "xs |> reduce(op, z)", "concat(xs)(xs) |> reduce(op, z)", N),
    Wrong("right for commutative operators", "scans", "recurrence",
        "xs |> scan(op, z)", "xs |> scanSeq(fun((x, acc) => op(x, acc)), z)", N),
    Wrong("a division that commutes", "statistics", "linearFit", "x / y", "y / x", N),
    # roundings and names
    Wrong("a product in the narrow type", "gemm", "matmul", "f32(x) * f32(y)", "f32(x * y)", SQUARE),
    Wrong("a captured name", "matrices", "kronecker",
        "fun(x => … fun(y => …))", "fun(x => … fun(x => …))", {"m": 2, "n": 2, "p": 2, "q": 2}, captured),
)  # fmt: skip


@contextmanager
def declared(wrong: Wrong) -> Iterator[Strategy]:
    """A strategy that applies the rule once and goes on with `default`; the rule is forgotten afterwards."""
    before, before_computed = dict(RULES), dict(COMPUTED)
    try:
        if wrong.rewrite is not None:
            made = top_down(computed(NAME, f"{wrong.left} → {wrong.right}", ())(wrong.rewrite))
        else:
            made = top_down(rule(NAME, wrong.left, wrong.right))
        yield seq(made, find("default").make({}))
    finally:
        for registry, contents in ((RULES, before), (COMPUTED, before_computed)):
            registry.clear()
            registry.update(contents)  # type: ignore[arg-type]  # what was in it


@cache
def program_of(file: str) -> Program:
    return _LOADER.load(EXAMPLES / f"{file}.rise").program


_LOADER = Loader()


def checked(wrong: Wrong, seed: int = 0) -> list[Trial]:
    """What `rise derive --check` finds."""
    definition = program_of(wrong.file)[wrong.name]
    with declared(wrong) as strategy:
        success = succeeded(strategy(data_flow(specialise(definition, wrong.sizes))))

        def again(program: Expr) -> Success | None:
            result = strategy(program)
            return result if isinstance(result, Success) else None

        return trials(definition, wrong.sizes, success, again, seed)


def is_named(wrong: Wrong, seed: int = 0) -> bool:
    """Whether `rise derive --check` names the rule as the first guilty step."""
    guilty = checked(wrong, seed)[-1].guilty
    return guilty is not None and guilty.rule == NAME


@dataclass(frozen=True)
class Ran:
    """What a kernel would give."""

    result: Any
    seconds: float = 0.0


def is_noticed_in_runs(wrong: Wrong, seed: int = 0) -> bool:
    """Whether `rise run --check` notices it, where the interpreter runs the derived program."""
    start = data_flow(specialise(program_of(wrong.file)[wrong.name], wrong.sizes))
    with declared(wrong) as strategy:
        success = strategy(start)
    assert isinstance(success, Success), success.story()
    tried = telling_trials(start, success.term, None, seed, DRAWS)
    _, verdict = compared(start, tried, lambda inputs: Ran(call(success.term, *inputs)), DRAWS)
    return not verdict.comparison.agrees


def outcome(wrong: Wrong) -> Outcome:
    """What `rise derive --check` makes of it."""
    return Outcome(Verdict.NOTICED if is_named(wrong) else Verdict.MISSED)
