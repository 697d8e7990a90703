"""Random programs as written: every form of the grammar, well typed or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rise.source import Source, Span
from rise.syntax import surface as s
from rise.syntax.definitions import curried

HERE = Span(Source("generated", ""), 1, 1, 1, 1)
NAMES = st.sampled_from(["x", "xs", "f", "map", "n", "letter", "f32", "Local", "x_1", "_"])
KINDS = st.sampled_from(["Nat", "DataType", "Nat2Nat"])
BINARY = ["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "^"]
OPERATORS = st.sampled_from(BINARY)


def here(node: Any, *parts: Any) -> Any:
    """A strategy for nodes of one form."""
    return st.builds(lambda *drawn: node(*drawn, HERE), *parts)


def some(parts: Any, least: Any = 1) -> Any:
    return st.lists(parts, min_size=least, max_size=3).map(tuple)


KINDED = some(here(s.KindedName, NAMES, KINDS))

TYPES = st.recursive(
    st.one_of(here(s.TypeName, NAMES), here(s.TypeNumber, st.integers(0, 20))),
    lambda inner: st.one_of(
        here(
            s.TypeOperation, st.sampled_from(["+", "-", "*", "/", "%", "^", "min", "ceildiv"]), inner, inner
        ),
        here(s.TypeArray, inner, inner),
        here(s.TypePair, inner, inner),
        here(s.TypeApplication, st.sampled_from(["Array", "Vec", "Idx"]), some(inner)),
        here(s.TypeFunction, inner, inner),
        here(s.TypeDependent, KINDED, st.booleans(), inner),
    ),
    max_leaves=6,
)

NAME_PATTERNS = here(s.NamePattern, NAMES, st.one_of(st.none(), TYPES))
PATTERNS = st.recursive(NAME_PATTERNS, lambda inner: here(s.PairPattern, inner, inner), max_leaves=3)

NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.booleans(),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 1e-7, 1e22, -2.5, float("inf")]),
)


def expressions(inner: Any) -> Any:
    texts = here(s.Text, st.sampled_from(["", "__expf", "return a + b; // no comment"]))
    operators = here(s.Operator, OPERATORS)
    return st.one_of(
        here(s.Binary, OPERATORS, inner, inner),
        here(s.Unary, st.sampled_from("-!"), inner),
        here(s.Call, inner, some(inner)),
        here(s.Call, inner, some(st.one_of(inner, operators, texts))),
        here(s.Call, inner, some(texts)),
        st.builds(lambda f, x: s.Call(f, (x,), HERE, piped=True), inner, inner),
        here(s.Compose, inner, inner),
        here(s.Tuple, inner, inner),
        here(s.Function, some(PATTERNS), inner),
        here(s.DependentFunction, KINDED, inner),
        here(s.NatLambda, NAMES, TYPES),
        here(s.Let, PATTERNS, inner, inner),
        here(s.Annotated, inner, TYPES),
        operators,
    )


EXPRESSIONS = st.recursive(
    st.one_of(
        here(s.Name, NAMES),
        here(s.Number, NUMBERS),
        here(s.TypeApplication, st.sampled_from(["Array", "Vec"]), some(TYPES)),
    ),
    expressions,
    max_leaves=10,
)

DEFINITIONS = st.builds(
    lambda name, implicit, type_, body: curried(s.DefinitionSyntax(name, implicit, type_, body, HERE, HERE)),
    NAMES,
    st.one_of(st.just(()), KINDED),
    st.one_of(st.none(), TYPES),
    EXPRESSIONS,
)
IMPORTS = here(s.ImportSyntax, st.sampled_from(["prelude.rise", "a/b.rise"]))
FILES = st.builds(s.FileSyntax, some(IMPORTS, 0), some(DEFINITIONS))

# --- every form inside of every other -----------------------------------------------------------

X, ONE, N = s.Name("x", HERE), s.Number(1, HERE), s.TypeName("n", HERE)
PATTERN = s.NamePattern("p", None, HERE)
KINDED_NAME = s.KindedName("n", "Nat", HERE)

# expressions with a hole, each a function of what stands there
PLACES: list[Callable[[s.Surface], s.Surface]] = [
    *(lambda e, op=op: s.Binary(op, e, X, HERE) for op in BINARY),
    *(lambda e, op=op: s.Binary(op, X, e, HERE) for op in BINARY),
    *(lambda e, op=op: s.Unary(op, e, HERE) for op in "-!"),
    lambda e: s.Call(e, (X,), HERE),
    lambda e: s.Call(X, (ONE, e), HERE),
    lambda e: s.Call(e, (X,), HERE, piped=True),
    lambda e: s.Call(X, (e,), HERE, piped=True),
    lambda e: s.Compose(e, X, HERE),
    lambda e: s.Compose(X, e, HERE),
    lambda e: s.Tuple(e, X, HERE),
    lambda e: s.Tuple(X, e, HERE),
    lambda e: s.Function((PATTERN,), e, HERE),
    lambda e: s.DependentFunction((KINDED_NAME,), e, HERE),
    lambda e: s.Let(PATTERN, e, X, HERE),
    lambda e: s.Let(PATTERN, X, e, HERE),
    lambda e: s.Annotated(e, N, HERE),
]
INSIDE = [
    X,
    ONE,
    s.Number(-1, HERE),
    s.Operator("+", HERE),
    s.TypeApplication("Vec", (N, N), HERE),
    s.NatLambda("i", N, HERE),
    *(place(X) for place in PLACES),
]

SIZE_OPERATORS = ["+", "-", "*", "/", "%", "^", "min"]
TYPE_PLACES: list[Callable[[s.SurfaceType], s.SurfaceType]] = [
    *(lambda t, op=op: s.TypeOperation(op, t, N, HERE) for op in SIZE_OPERATORS),
    *(lambda t, op=op: s.TypeOperation(op, N, t, HERE) for op in SIZE_OPERATORS),
    lambda t: s.TypeOperation("-", s.TypeNumber(0, HERE), t, HERE),
    lambda t: s.TypeArray(t, N, HERE),
    lambda t: s.TypeArray(N, t, HERE),
    lambda t: s.TypePair(t, N, HERE),
    lambda t: s.TypePair(N, t, HERE),
    lambda t: s.TypeApplication("Vec", (N, t), HERE),
    lambda t: s.TypeFunction(t, N, HERE),
    lambda t: s.TypeFunction(N, t, HERE),
    lambda t: s.TypeDependent((KINDED_NAME,), True, t, HERE),
    lambda t: s.TypeDependent((KINDED_NAME,), False, t, HERE),
]
TYPES_INSIDE = [N, s.TypeNumber(2, HERE), *(place(N) for place in TYPE_PLACES)]


# Figure 1 and Listing 4 of the paper on tensor cores in RISE, letter by letter: no parenthesis had
# to be repaired; only the line numbers in the margin are left out
HIGH_LEVEL_GEMM = """
depFun((m:Nat,n:Nat,k:Nat) =>
fun((A: Array[m,Array[k,f32]], B: Array[k,Array[n,f32]],
C: Array[m,Array[n,f32]], alpha: f32, beta: f32) =>
zip(A)(C) |> map(fun(rowAC =>
zip(B |> transpose)(snd(rowAC)) |> map(fun(colBC =>
zip(fst(rowAC))(fst(colBC)) |>
map(fun((a, b) => a * b)) |> reduce(+, 0) |>
fun(r => (alpha * r) + (beta * snd(colBC))) ))))))
"""

LOW_LEVEL_GEMM = """
depFun((m:Nat,n:Nat,k:Nat) => fun(A,B,C,alpha,beta =>
zip(A)(C) |> mapBlock(fun(rowAC =>
zip(B |> transpose)(snd(rowAC)) |>
mapThreads(fun(colBC => zip(fst(rowAC))(fst(colBC)) |>
reduceSeq(Local) (fun((acc,ab) =>
acc + fst(ab) * snd(ab)),0) |>
fun(r => (alpha * r) + (beta * snd(colBC))) ))))))
"""

TILE_PRODUCT = """
aTile: Array[16,Array[16,f16]] |> map(fun(aRow =>
bTile: Array[16,Array[16,f16]] |> map(fun(bCol =>
zip(aRow, bCol) |>
reduceSeq(fun(ac, ab =>
add(ac, mul(fst(ab), snd(ab)))))(0.0)))))
"""

TENSOR_PRODUCT = """
tensorMatMulAdd
(aTile: Array[16,Array[16,f16]] |> asFragment |> toMem(Local))
(bTile: Array[16,Array[16,f16]] |> transpose
|> asFragment |> toMem(Local))
(generateFragment(0.0) |> toMem(Local))
|> toMem(Local) |> asMatrix
"""
