"""`auto` takes any program: it cuts it into kernels, chooses a schedule for each, and says which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

import codegen
from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.derivation import verify_steps
from rewrites.result import Failure, Success
from rewrites.storing import is_global
from rise.check.agreement import reference
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression, check_text, load
from rise.check.specialise import inputs_of, specialise
from rise.errors import CompilationError, TranslationError
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import Auto, _Kernels, auto
from strategies.search.choice import Search
from strategies.search.hardware import for_target
from tests.support.nightly import every_other
from tests.support.programs import succeeded

ROOT = Path(__file__).parents[2]
FUSED = ROOT / "benchmarks" / "tables" / "fused.rise"
DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
SIZES = (1, 7, 8, 33, 64, 72, 101)


loaded = cache(load)  # programs do not change


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(loaded(FUSED)[name], sizes))


AUTO = auto()  # what is derived for one test is there for the others


def chosen(strategy: Auto, term: Expr) -> list[str]:
    """The strategy of each kernel."""
    return [kernel.point.strategy for kernel in strategy.choice(term).kernels]


def agrees(term: Expr, low: Expr, rounded: bool = False) -> bool:
    """Whether what `auto` makes of a program computes the same, on whole numbers: exactly, where sums are.

    rounded: within the bound of roundings, which `auto` leaves out
    """
    inputs = random_inputs(inputs_of(term), 5, exact=True)
    wanted, found = call(term, *inputs), execute(assemble(low, "f"), inputs, "emulate")
    parts = zip(leaves(wanted), leaves(found), strict=True)
    if rounded:
        return compare(found, wanted, tolerance(term)).agrees
    return all(np.allclose(a, b, rtol=2e-3, atol=1e-3, equal_nan=True) for a, b in parts)


def leaves(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield np.asarray(value, np.float64)


# --- which kernels ------------------------------------------------------------------------------------------

PARTS = {
    "biasReluHalf": ["tensor_core"],
    "geluResidual": ["tensor_core"],
    "gated": ["tensor_core"],
    "outerScales": ["tensor_core"],
    "masked": ["tensor_core"],
    "transposedProduct": ["tensor_core"],
    "reluFirst": ["elementwise", "tensor_core"],
    "reluSecond": ["elementwise", "tensor_core"],
    "scaledBytes": ["elementwise", "tensor_core"],
    "rmsProduct": ["rows", "tensor_core"],
    "softmaxProduct": ["tensor_core", "rows"],
    "rowSums": ["tensor_core"],
    "chain": ["tensor_core", "tensor_core"],
    "perceptron": ["tensor_core", "tensor_core"],
}


@pytest.mark.parametrize("name", every_other(PARTS, step=3))
def test_a_program_is_cut_where_a_value_must_be_complete(name: str) -> None:
    """At a size where it pays to compute operands before the product: by warpgroups, which copy in bulk."""
    sizes = {"m": 2048, "n": 4096, "k": 1024, "l": 1024}
    names = "mnkl" if name in ("chain", "perceptron") else "mnk"
    term = program(name, **{size: sizes[size] for size in names})
    strategy = auto()
    result = succeeded(strategy(term))
    assert chosen(strategy, term) == PARTS[name], str(strategy.choice(term))
    used = {part.name for part in subterms(result.term) if isinstance(part, Primitive)}
    assert {"tensorMatMulAdd", "bulkCopy"} <= used
    stored = sum(isinstance(part, Primitive) and part.name == "toMem" for part in subterms(result.term))
    assert stored >= len(PARTS[name]) - 1


@pytest.mark.parametrize("name", every_other(PARTS, 1, 3))
def test_every_program_is_right_at_every_size(name: str) -> None:
    """Ones, primes, tile and ragged; the derivation replays step by step on the whole program."""
    random = Random(name)
    sizes = {size: random.choice(SIZES) for size in ("mnkl" if name in ("chain", "perceptron") else "mnk")}
    term = program(name, **sizes)
    result = succeeded(AUTO(term))
    verify_steps(term, result)
    assert agrees(term, result.term, rounded=name == "rmsProduct"), sizes  # whose scale moves out of them


def test_a_product_stands_behind_a_kernel_beside_which_it_does_not_build() -> None:
    """Beside another one a kernel has fewer registers, which only the whole program says."""

    def builds(term: Expr, target: str) -> int:
        if any(map(is_global, subterms(term))):
            raise CompilationError("R0832", f"it spills for {target}")
        return 0

    term = program("rmsProduct", m=2048, n=4096, k=1024)
    few = [s.choice(term).kernels[0].point.settings for s in (AUTO, AUTO.first_that(builds))]
    assert few == [{"few_blocks": "132"}, {}]


def test_products_that_share_an_operand_load_it_once() -> None:
    """silu(XW)·(XV): one loop over triples of tiles, two sums."""
    low = succeeded(AUTO(program("gated", m=2048, n=4096, k=1024))).term
    names = Counter(part.name for part in subterms(low) if isinstance(part, Primitive))
    assert names["reduceRoleSplit"] == 1 and names["bulkCopy"] == 3 and names["tensorMatMulAdd"] == 2


DOTS = {"i8": DOT.replace("f32", "i32"), "tf32": DOT}


@pytest.mark.parametrize(
    ("type_", "layout"), every_other([("i8", "tn"), ("tf32", "nn"), ("i8", "nt"), ("tf32", "tt")])
)
def test_warpgroups_take_operands_of_every_type_and_layout(type_: str, layout: str) -> None:
    """Numbers of 16 bits are read as they lie; others along k, so kernels before turn what lies across."""

    def product(m: int, n: int, k: int) -> Expr:
        a, rows = (f"{m}.{k}", "A") if layout[0] == "n" else (f"{k}.{m}", "transpose(A)")
        b, columns = (f"{k}.{n}", "transpose(B)") if layout[1] == "n" else (f"{n}.{k}", "B")
        each = f"{rows} |> map(fun(row => {columns} |> map(fun(col => {DOTS[type_]}))))"
        return data_flow(check_expression(f"fun((A: {a}.{type_}, B: {b}.{type_}) => {each})"))

    across = (layout[0] == "t") + (layout[1] == "n")
    term = product(2048, 1536, 1024)
    strategy = auto()
    low = succeeded(strategy(term)).term
    assert Counter(chosen(strategy, term)) == Counter(transposition=across, tensor_core=1)
    assert "bulkCopy" in {part.name for part in subterms(low) if isinstance(part, Primitive)}
    random = Random(type_ + layout)
    ragged = product(*(random.choice(SIZES) for _ in "mnk"))
    assert "default" not in chosen(strategy, ragged)
    assert agrees(ragged, succeeded(strategy(ragged)).term)


def test_sums_of_products_with_odd_rows_are_one_product() -> None:
    """The copies that bulk copies need put the operands behind each other."""
    mm = f"fun((P: 70.67.f16, Q: 67.129.f16) => P |> map(fun(row => transpose(Q) |> map(fun(col => {DOT})))))"
    inputs = ", ".join(f"{a}: 70.67.f16, {b}: 67.129.f16" for a, b in ("AB", "CD", "EF"))
    sums = f"zip({mm}(A, B))(zip({mm}(C, D))({mm}(E, F)))"
    each = "zip(p)(zip(fst(q))(snd(q))) |> map(fun((x, y) => f16(x + fst(y) + snd(y))))"
    term = data_flow(check_expression(f"fun(({inputs}) => {sums} |> map(fun((p, q) => {each})))"))
    low = succeeded(AUTO(term)).term
    names = Counter(part.name for part in subterms(low) if isinstance(part, Primitive))
    assert names["tensorMatMulAdd"] == 1 and len(assemble(low, "f").kernels) == 3
    assert agrees(term, low)


def test_windows_of_rows_are_stored_for_bulk_copies() -> None:
    """A convolution: its windows overlap, so tiles of them are no boxes of an array."""

    def convolution(rows: int, columns: int, k: int) -> Expr:
        inputs = f"X: {rows + 2}.{k}.f16, W: {columns}.{3 * k}.f16, b: {columns}.f32"
        each = f"zip(W)(b) |> map(fun((col, c) => f16(max(({DOT}) + c, 0))))"
        windows = "X |> slide(3)(1) |> map(fun(w => w |> join))"
        return data_flow(check_expression(f"fun(({inputs}) => {windows} |> map(fun(row => {each})))"))

    strategy = auto()
    large = convolution(2048, 1536, 512)
    assert chosen(strategy, large) == ["stencil", "tensor_core"]
    for sizes in ((130, 72, 64), (33, 65, 7)):
        term = convolution(*sizes)
        assert agrees(term, succeeded(strategy(term)).term)


def test_concatenated_products_are_right() -> None:
    """Rows of two results below each other, and beside each other."""
    mm = f"fun((P: 33.20.f16, Q: 20.17.f16) => P |> map(fun(row => transpose(Q) |> map(fun(col => {DOT})))))"
    below = f"concat({mm}(A, B))({mm}(C, B))"
    beside = f"zip({mm}(A, B))({mm}(A, D)) |> map(fun((x, y) => concat(x)(y)))"
    for result in (below, beside):
        text = f"fun((A: 33.20.f16, B: 20.17.f16, C: 33.20.f16, D: 20.17.f16) => {result})"
        term = data_flow(check_expression(text))
        strategy = auto()
        assert agrees(term, succeeded(strategy(term)).term)
        assert "default" not in chosen(strategy, term)


# of two results, by element: the loops over tiles, the tiles that these bring, and the products
PAIRS = {
    "XW and XV": ("mm(X, W)", "mm(X, V)", (1, 3, 2)),
    "difference and sum": ("mm(X, W) - mm(X, V)", "mm(X, W) + mm(X, V)", (1, 3, 2)),
    "complex numbers": ("mm(X, W) - mm(Y, V)", "mm(X, V) + mm(Y, W)", (1, 3, 2)),
}


@pytest.mark.parametrize("name", every_other(PAIRS))
def test_two_results_of_products_are_one_kernel(name: str) -> None:
    """Products that share an operand load it once, in one loop, also where two pairs of them do crosswise."""
    first, second, counts = PAIRS[name]

    def pair(m: int, n: int, k: int) -> Expr:
        inputs = f"X: {m}.{k}.f16, Y: {m}.{k}.f16, W: {n}.{k}.f16, V: {n}.{k}.f16"
        return data_flow(check_expression(f"fun(({inputs}) => ({matrix(first)}, {matrix(second)}))"))

    def matrix(text: str) -> str:
        """The matrix of an expression in products: zipped element by element."""
        one, *rest = re.findall(r"mm\((\w), (\w)\)", text)
        product = f"({{}} |> map(fun(row => {{}} |> map(fun(col => {DOT})))))"
        if not rest:
            return product.format(*one)
        each = f"zip(p)(q) |> map(fun((x, y) => x {text.split(') ')[1][0]} y))"
        return f"zip({product.format(*one)})({product.format(*rest[0])}) |> map(fun((p, q) => {each}))"

    strategy = auto()
    low = succeeded(strategy(pair(2048, 1536, 1024))).term
    names = Counter(part.name for part in subterms(low) if isinstance(part, Primitive))
    assert (names["reduceRoleSplit"], names["bulkCopy"], names["tensorMatMulAdd"]) == counts
    random = Random(name)
    ragged = pair(*(random.choice(SIZES) for _ in "mnk"))
    assert agrees(ragged, succeeded(strategy(ragged)).term)


def test_bytes_of_patches_beside_a_reduction_of_columns() -> None:
    """An operand of three dimensions: windows of an image whose rows are joined where they are stored."""
    dot = "zip(row)(col) |> map(fun((x, y) => i32(x) * i32(y))) |> reduce(+, 0)"
    patches = "image |> slide(3, 1) |> map(fun(rows => rows |> join))"
    product = f"{patches} |> map(fun(row => M |> transpose |> map(fun(col => f32({dot})))))"
    text = (
        f"fun((image: 9.32.i8, M: 96.5.i8) => {product} |> fun(D => (D |> map(map(fun(x => bf16(x)))),"
        " D |> transpose |> map(fun(column => column |> reduce(max, -3.4e38))))))"
    )
    assert isinstance(AUTO(data_flow(check_expression(text))), Success)


@pytest.mark.parametrize("second", ["", "3."])
def test_arrays_of_matrices_with_odd_rows_are_copied_as_a_whole(second: str) -> None:
    """Bulk copies take longer rows: those of all matrices, by one kernel, before the products.

    Rows are too long for a block to take a matrix as a whole.
    """
    columns = f"transpose(B) |> map(fun(col => {DOT}))"
    each = f"A |> map(fun(row => {columns}))"
    product = f"zip(A)(B) |> map(fun((A, B) => {each}))" if second else f"A |> map(fun(A => {each}))"
    term = data_flow(check_expression(f"fun((A: 3.70.1031.f16, B: {second}1031.65.f16) => {product})"))
    strategy = auto()
    low = succeeded(strategy(term)).term
    assert chosen(strategy, term) == ["tensor_core"]
    kernels = assemble(low, "f").kernels
    assert len(kernels) == 3 and kernels[-1].function.maps, "the copies are made before, for bulk copies"
    assert agrees(term, low)


WEIGHTS = {
    "scaled as f16": "f32(x) * f32(f16(y) * c)",
    "scaled as f32": "f32(x) * (f32(y) * f32(c))",
    "scaled last": "f32(x) * f32(f16(y)) * f32(c)",
    "with a zero point": "f32(x) * f32(f16(y) - c)",
    "by rows": "f32(f16(y) - c) * f32(x)",
}


@pytest.mark.parametrize("name", every_other(WEIGHTS))
def test_bytes_with_a_number_beside_their_row_are_an_operand(name: str) -> None:
    """Weights of 8 bits are one product, however they are scaled; the scale of a sum stands beside it."""
    dot = f"zip(row)(col) |> map(fun((x, y) => {WEIGHTS[name]})) |> reduce(+, 0)"
    each = f"A |> map(fun(row => zip(B)(s) |> map(fun((col, c) => f16({dot})))))"
    if name == "by rows":
        dot = dot.replace("(row)(col)", "(col)(row)").replace("(x, y)", "(y, x)")
        each = f"zip(B)(s) |> map(fun((col, c) => A |> map(fun(row => f16({dot})))))"
    random = Random(name)
    m, n, k = (random.choice(SIZES) for _ in "mnk")
    text = "fun((A: {0}.{2}.f16, B: {1}.{2}.i8, s: {1}.f16) => {3})"
    strategy = auto()
    for sizes in ((2048, 1536, 1024), (m, n, k)):
        term = data_flow(check_expression(text.format(*sizes, each)))
        result = succeeded(strategy(term))
        kinds = chosen(strategy, term)
        assert kinds[-1] == "tensor_core" and "default" not in kinds, str(strategy.choice(term))
    assert agrees(term, result.term)


def test_norms_beside_a_product_are_computed_before_it() -> None:
    """They are sums of rows, not products: each is a kernel, and the product is computed once."""
    norms = "map(fun(r => rsqrt((r |> map(fun(x => f32(x) * f32(x))) |> reduce(+, 0)) + 1)))"
    text = (
        f"fun((X: 37.48.f16, Y: 101.48.f16) => zip(X)(X |> {norms}) |> map(fun((row, a) =>"
        f" zip(Y)(Y |> {norms}) |> map(fun((col, b) => f16(({DOT}) * a * b))))))"
    )
    term = data_flow(check_expression(text))
    strategy = auto()
    result = succeeded(strategy(term))
    kinds = Counter(chosen(strategy, term))
    assert kinds["tensor_core"] == 1 and kinds.total() == 3 and not kinds["default"], kinds
    assert agrees(term, result.term)


NORM = "(zip({0})({0}) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))"
DISTANCES = {
    "cosine": f"({DOT}) * rsqrt({NORM.format('row')} * {NORM.format('col')} + 1)",
    "nearest": f"{NORM.format('row')} - 2 * ({DOT}) + {NORM.format('col')}",
    "column alone": f"{NORM.format('col')} - ({DOT})",
}


@pytest.mark.parametrize("name", every_other(DISTANCES))
def test_norms_inside_of_a_product_are_computed_once(name: str) -> None:
    """Each is a kernel whose results are as many as rows: not one for each element of the product."""
    least = "" if name == "cosine" else " |> reduce(min, infinity)"
    sizes = Random(f"5 {name}").sample((5, 8, 17, 33), 3)
    text = (
        f"fun((X: {sizes[0]}.{sizes[2]}.f16, Y: {sizes[1]}.{sizes[2]}.f16) =>"
        f" X |> map(fun(row => Y |> map(fun(col => {DISTANCES[name]})){least})))"
    )
    term = data_flow(check_expression(text))
    norms = sum(each in DISTANCES[name] for each in (NORM.format("row"), NORM.format("col")))
    low = succeeded(AUTO(term)).term
    assert chosen(AUTO, term) == ["reduction"] * norms + ["tensor_core"], sizes
    assert agrees(term, low), sizes


def test_of_many_kernels_none_stores_what_another_has_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a cut that makes no progress would be made for ever."""
    monkeypatch.setattr("strategies.auto.MANY", 0)
    kernels = _Kernels(Search(for_target("sm_90a"), "sm_90a"), ())
    term = check_expression("generate(fun((i: Idx[5]) => 2)) |> toMem(Global) |> map(fun(x => x + 1))")
    assert isinstance(kernels._new(term), Success)
    assert isinstance(kernels._new(term), Failure)


def test_kernels_that_do_not_build_together_become_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    error = TranslationError("R0716", "too much together")
    monkeypatch.setattr("strategies.auto.refusal", lambda _: error)
    term = program("biasReluHalf", m=33, n=17, k=20)
    strategy = auto()
    assert isinstance(strategy(term), Success) and chosen(strategy, term) == ["default"]
    assert "R0716 too much together" in str(strategy.choice(term))


# --- programs without products ------------------------------------------------------------------------------

OTHERS = {
    "fun(xs: 101.f32 => xs |> map(fun(x => x * 2 + 1)))": ["elementwise"],
    "fun(xss: 33.65.f16 => transpose(xss))": ["transposition"],
    "generate(fun((i: Idx[300]) => i32(i) * 2))": ["elementwise"],
    "fun(xs: 7.101.f32 => (xs |> map(map(fun(x => x + 1))), (transpose(xs), xs |> join |> reduce(+, 0))))": [
        "elementwise",
        "transposition",
        "reduction",
    ],
    "fun(xss: 7.101.f32 => xss |> map(reduce(+, 0)))": ["reduction"],
    "fun(xs: 1003.f32 => xs |> reduce(+, 0))": ["reduction"],
    "fun(xs: 1003.f32 => let s = xs |> reduce(+, 0) in xs |> map(fun(x => x - s)))": [
        "reduction",
        "elementwise",
    ],
    "fun(xss: 7.101.f32 => (xss |> map(fun(xs => let s = xs |> reduce(max, 0) in"
    " xs |> map(fun(x => x - s)))), xss |> map(reduce(+, 0))))": ["rows", "reduction"],
    "fun(xs: 64.f32 => xs |> scan(+, 0))": ["default"],
}


@pytest.mark.parametrize("text", OTHERS)
def test_programs_without_products_get_the_schedule_of_their_structure(text: str) -> None:
    term = data_flow(check_expression(text))
    strategy = auto()
    result = succeeded(strategy(term))
    assert chosen(strategy, term) == OTHERS[text], str(strategy.choice(term))
    assert agrees(term, result.term)


def test_a_second_operand_that_is_a_product_is_stored_before() -> None:
    """A·(B·C), where the operand has the name of an input, as the parameter of a function may."""
    product = "{0} |> map(fun(row => transpose({1}) |> map(fun(col => f16(" + DOT + ")))))"
    inner, outer = product.format("B", "C"), product.format("A", "B")
    text = f"fun((A: 33.65.f16, B: 65.17.f16, C: 17.41.f16) => ({inner}) |> fun(B => {outer}))"
    term = data_flow(check_expression(text))
    strategy = auto()
    result = succeeded(strategy(term))
    assert chosen(strategy, term).count("tensor_core") == 2 and "default" not in chosen(strategy, term)
    assert agrees(term, result.term)


def test_of_three_results_two_are_one_kernel() -> None:
    """Those of a pair inside of the pair, which loads the operand that both have once."""
    product = "X |> map(fun(row => transpose({}) |> map(fun(col => " + DOT + "))))"
    each = ", (".join(map(product.format, "WVU"))
    inputs = "X: 33.65.f16, " + ", ".join(f"{name}: 65.101.f16" for name in "WVU")
    term = data_flow(check_expression(f"fun(({inputs}) => ({each}))))"))
    strategy = auto()
    low = succeeded(strategy(term)).term
    assert chosen(strategy, term) == ["tensor_core"] * 2, str(strategy.choice(term))
    multiply = [k for k in assemble(low, "f").kernels if "tensorMatMulAdd" in k.source or "mma" in k.source]
    assert len(multiply) == 2
    assert agrees(term, low)


def test_each_of_two_results_computes_a_value_that_takes_no_loop() -> None:
    """Also where that numbers elements, and has names in it."""
    banded = "zip(zip(A)(generate(fun(i => indexToInt(i)))))(B) |> map(fun((ai, b) => zip(fst(ai))(b)"
    value = f"{banded} |> map(fun((x, y) => let z = x * y in select(snd(ai) < 9, z * z, y)))))"
    both = "(D |> map(map(fun(x => f16(x)))), D |> map(fun(row => row |> reduce(+, 0))))"
    text = f"fun((A: 33.65.f32, B: 33.65.f32) => let D = {value} in {both})"
    term = data_flow(check_expression(text))
    strategy = auto()
    low = succeeded(strategy(term)).term
    assert len(chosen(strategy, term)) == 2 and "default" not in chosen(strategy, term)
    assert agrees(term, low)


def test_a_low_level_program_stays_as_it_is() -> None:
    term = data_flow(check_expression("fun(xs: 64.f32 => xs |> mapGlobal(0)(fun(x => x + 1)))"))
    result = AUTO(term)
    assert isinstance(result, Success) and result.term == term and not result.steps
    assert "low-level already" in str(AUTO.choice(term))


def test_compiling_without_a_strategy_takes_auto() -> None:
    definition = loaded(FUSED)["softmaxProduct"]
    sizes = {"m": 33, "n": 65, "k": 20}
    inputs = random_inputs(inputs_of(specialise(definition, sizes)), 1, exact=True)
    compiled = codegen.compile(definition, sizes=sizes, backend="emulate")
    assert len(compiled.program.kernels) > 1
    assert np.allclose(compiled(*inputs), call(specialise(definition, sizes), *inputs), atol=2e-3)


@pytest.mark.parametrize("target", ["sm_70", "sm_75", "sm_80", "sm_90", "sm_90a", "sm_120"])
def test_there_is_a_choice_for_every_gpu(target: str) -> None:
    """Operands are of 64 × 64 numbers: every GPU since the first with tensor cores multiplies them there."""
    text = f"fun((A: 64.64.f16, B: 64.64.f16) => A |> map(fun(row => B |> map(fun(col => {DOT})))))"
    term = data_flow(check_expression(text))
    strategy = auto(target)
    assert isinstance(strategy(term), Success) and chosen(strategy, term) == ["tensor_core"]


# --- arrays without elements --------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["m", "n", "k"])
def test_products_without_rows_columns_or_terms_are_taken(empty: str) -> None:
    """No schedule of products is asked; sums of no terms are zero."""
    sizes = {"m": 5, "n": 7, "k": 9} | {empty: 0}
    text = f"fun((A: {sizes['m']}.{sizes['k']}.f16, B: {sizes['n']}.{sizes['k']}.f16) => A |> map(fun(row =>"
    term = data_flow(check_expression(f"{text} B |> map(fun(col => {DOT})))))"))
    low = succeeded(AUTO(term)).term
    assert chosen(AUTO, term) == ["default"] and agrees(term, low)
    assert reference(term, [low], 1).draws  # the draws of `--check`


# --- programs that say row by row what several kernels compute --------------------------------------------

BY_ROWS = """import "prelude.rise"
def dot16{k: Nat}(xs: k.f16, ys: k.f16): f32 =
  zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)
def normed{k: Nat}(row: k.f16, g: k.f16): k.f16 =
  let r = rsqrt((row |> map(x => f32(x) * f32(x)) |> sum) + 1) in
  zip(row)(g) |> map((x, g) => f16(f32(x) * r * f32(g)))

// a norm, a product with it, and the row of another matrix beside
def residual(m: Nat, n: Nat, k: Nat)(X: m.k.f16, g: k.f16, W: n.k.f16, R: m.n.f16): m.n.f16 =
  zip(X)(R) |> map((row, rs) =>
    let y = normed(row, g) in
    zip(W)(rs) |> map((col, r) => f16(dot16(y, col) + f32(r))))
def weighted(m: Nat, n: Nat, k: Nat)(X: m.k.f16, V: n.k.f16): m.n.f16 =
  X |> map(row =>
    let xs = row |> map(x => f32(x)) in
    let top = xs |> maximum in
    let e = xs |> map(x => exp(x - top)) in
    let z = e |> sum in
    let p = e |> map(x => f16(x / z)) in
    V |> map(col => f16(dot16(p, col))))
// a layer for rows of arrays in arrays of matrices
def layer(m: Nat, n: Nat, k: Nat)(X: 2.3.m.k.f16, W: n.k.f16, R: 2.3.m.n.f16): 2.3.m.n.f16 =
  zip(X)(R) |> map((x, r) => zip(x)(r) |> map((x, r) => zip(x)(r) |> map((x, r) =>
    zip(W)(r) |> map((w, r) => f16(dot16(x, w) + f32(r))))))

def extremes(m: Nat, n: Nat, k: Nat)(X: k.f32) = (X |> minimum, X |> maximum)
def sumOfMaxima(m: Nat, n: Nat, k: Nat)(X: m.k.f32): f32 = X |> map(maximum) |> sum
def scaled(m: Nat, n: Nat, k: Nat)(X: m.k.f32): m.k.f32 =
  let top = X |> map(maximum) |> maximum in X |> map2D(x => x / top)
// a function of what rows are reduced to, as a map of its own
def inverted(m: Nat, n: Nat, k: Nat)(X: m.k.f32): m.f32 =
  X |> map(row => row |> sum) |> map(s => 1 / (s * s + 1))
// each thread reduces for one element: nothing is cut
def counts(m: Nat, n: Nat, k: Nat)(x: k.i32): 5.i32 =
  generate((b: Idx[5]) => x |> map(v => select(v == indexToInt(b), 1, 0)) |> reduce(+, 0))
"""
KERNELS = {
    "counts": ["default"],
    "residual": ["rows", "tensor_core"],
    "weighted": ["rows", "tensor_core"],
    "layer": ["batch"],
    "extremes": ["reduction", "reduction"],
    "sumOfMaxima": ["reduction", "reduction"],
    "scaled": ["reduction", "reduction", "elementwise"],
    "inverted": ["rows"],
}


@pytest.mark.parametrize("name", every_other(KERNELS))
def test_what_is_said_row_by_row_gets_the_schedules_of_its_parts(name: str) -> None:
    """None of it is left to `default`, where a thread computes a row, or one thread everything."""
    sizes = dict(zip("mnk", Random(f"5 {name}").sample((5, 8, 13, 21), 3), strict=True))
    term = data_flow(specialise(check_text(BY_ROWS)[name], sizes))
    low = succeeded(AUTO(term)).term
    assert chosen(AUTO, term) == KERNELS[name] and agrees(term, low), sizes
