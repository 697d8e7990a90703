"""Every primitive against NumPy: alone, under a map, under two with operands of unequal depth.

What is expected under maps is the NumPy function applied to one element after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rise.check.program import check_expression
from rise.expr import Primitive, subterms
from rise.interpret import call, random_inputs
from rise.interpret.inputs import layout
from rise.primitives.declare import REGISTRY
from rise.types import arguments

BATCH = (2, 3)
SIZES = [(1, 1), (2, 5), (7, 3)]


@dataclass(frozen=True)
class Claim:
    """A function `text` of x0, x1, x2 of the given types is the NumPy function `expected`."""

    text: str
    types: tuple[str, ...]
    expected: Callable[..., Any]

    @property
    def function(self) -> str:
        parameters = ", ".join(f"x{i}: {t}" for i, t in enumerate(self.types))
        return f"(fun(({parameters}) => {self.text}))"


def is_(expected: Callable[..., Any], text: str, *types: str) -> Claim:
    return Claim(text, types, expected)


# --- the claims -----------------------------------------------------------------------------------


def in_f64(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of f32 computed in f64 and rounded once."""
    return lambda *xs: np.float32(function(*(np.float64(x) for x in xs)))


def scalar_claims() -> list[Claim]:
    f32, i32 = "f32", "i32"
    operators: dict[str, Callable[..., Any]] = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "==": np.equal,
        "!=": np.not_equal,
    }
    halves = (np.ceil, np.floor, np.rint)
    elementary = {f: getattr(np, f) for f in ("exp", "exp2", "log", "sqrt", "tanh", "sin", "cos")}
    return [
        *(is_(f, f"x0 {o} x1", t, t) for o, f in operators.items() for t in (f32, i32)),
        *(is_(in_f64(f), f"{name}(x0)", f32) for name, f in elementary.items()),
        is_(in_f64(lambda x: 1 / np.sqrt(x)), "rsqrt(x0)", f32),
        is_(in_f64(lambda x: 1 / x), "reciprocal(x0)", f32),
        is_(np.abs, "abs(x0)", i32),
        *(
            is_(lambda x, f=f: f(x / 4), f"{name}(x0 / 4)", f32)
            for f, name in zip(halves, ("ceil", "floor", "round"), strict=True)
        ),
        *(is_(lambda x: x, f"{name}(x0)", i32) for name in ("ceil", "floor", "round")),
        is_(np.negative, "neg(x0)", f32),
        is_(np.divide, "x0 / x1", f32, f32),
        is_(np.fmod, "x0 % x1", f32, f32),
        is_(np.power, "pow(x0)(x1)", f32, f32),
        is_(np.minimum, "min(x0)(x1)", f32, f32),
        is_(np.maximum, "max(x0)(x1)", i32, i32),
        is_(lambda x, y, z: x * y + z, "fma(x0)(x1)(x2)", f32, f32, f32),
        is_(np.logical_and, "x0 && x1", "bool", "bool"),
        is_(np.logical_or, "x0 || x1", "bool", "bool"),
        is_(np.logical_not, "!x0", "bool"),
        is_(np.int32, "i32(x0)", f32),
        is_(np.float16, "f16(x0)", i32),
        is_(lambda c, x, y: x if c else y, "select(x0)(x1)(x2)", "bool", f32, f32),
        is_(lambda i: np.int32(i), "indexToInt(x0)", "Idx[5]"),
        is_(lambda i: np.int32(i), "indexAsNat(x0)", "Idx[5]"),
        is_(lambda i: np.int64(4 - i), "natAsIndex(5)(4 - indexAsNat(x0))", "Idx[5]"),
        is_(np.subtract, 'foreignFunction("minus", 2)(fun((x, y) => x - y))(x0)(x1)', f32, f32),
    ]


def fold(function: Callable[..., Any], start: Any, xs: Any) -> Any:
    for x in xs:
        start = function(start, x)
    return start


def prefixes(function: Callable[..., Any], start: Any, xs: Any) -> Any:
    return np.stack([fold(function, start, xs[: i + 1]) for i in range(len(xs))])


def iterated(xs: Any, y: Any) -> Any:
    for _ in range(2):
        xs = xs[::2] + xs[1::2] + y
    return xs


def pattern_claims(n: int, m: int) -> list[Claim]:
    f32, xs, xss = "f32", f"{n}.f32", f"{n}.{m}.f32"
    plus = "fun((a, x) => a + x)"
    maps = ("map", "mapSeq", "mapSeqUnroll", "mapWarpGroup", "mapWarpGroupThreads", "mapWarp", "mapLane")
    levels = (
        "mapGlobal",
        "mapCluster",
        "mapBlock(1)",
        "mapThreads(2)",
        "mapBlockPersistent(1, 2)",
        "mapClusterPersistent(0, 3)",
    )
    folds = ("reduce", "reduceSeq", "reduceSeqUnroll(Shared)")
    pipelines = ("reducePipelined(3)", "reduceRoleSplit(3, 1, 2)")
    copies = ("toMem(Shared)", "toMem(Shared, padded(3))", "copyThreads", "copyAsync(padded(1))")
    ahead = "bulkCopyRoleSplit(2, 1, 2, swizzled(64))"
    bulk = ("bulkCopy(swizzled(64))", ahead, "bulkStore", "pingPong(2)", "skewed", "inTurn")
    halved = "depFun((l: Nat) => fun(ys => split(2)(ys) |> map(fun(p => reduce(+, 0)(p) + x1))))"
    return [
        *(is_(lambda a, y: a * y, f"{f}(fun(x => x * x1))(x0)", xs, f32) for f in (*maps, *levels)),
        *(is_(lambda a, y: fold(np.add, y, a), f"{f}({plus})(x1)(x0)", xs, f32) for f in folds),
        *(is_(lambda a, y: fold(np.add, y, a), f"{f}(+)(x1)(x0)", xs, f32) for f in folds),
        is_(lambda a: fold(np.subtract, np.float32(0), a), "reduceSeq(-)(0)(x0)", xs),
        is_(lambda a: a.sum(1), "map(reduce(+, 0))(x0)", xss),
        is_(lambda a: a.sum(0), "map(reduce(+, 0))(transpose(x0))", xss),
        is_(
            lambda a: fold(np.add, np.zeros(m, np.float32), a),
            "reduceSeq(fun((a, x) => zip(a)(x) |> map(fun((u, v) => u + v))))(generate(fun(i => 0)))(x0)",
            xss,
        ),
        is_(
            lambda a: (a.sum(), a.max()),
            "reduceSeq(fun(((s, l), x) => (s + x, max(l)(x))))((0, x0 |> reduce(max, -9)))(x0)",
            xs,
        ),
        is_(lambda y: np.arange(n) * y, f"generate(fun((i: Idx[{n}]) => indexToInt(i) * x0))", "i32"),
        is_(lambda x: (x + 1) * (x + 1), "let y = x0 + 1 in y * y", f32),
        is_(lambda a: a, "id(x0)", xs),
        *(is_(lambda a: a, f"{f}(x0)", xs) for f in (*copies, *bulk)),
        *(
            is_(lambda a: fold(np.subtract, np.float32(1), a * a), f"{f}(fun(x => x * x), -, 1)(x0)", xs)
            for f in pipelines
        ),
        *(is_(lambda a, y: prefixes(np.add, y, a), f"scan({f})(x1)(x0)", xs, f32) for f in ("+", plus)),
        is_(
            lambda a, y: prefixes(lambda r, x: x - 2 * r, y, a),
            "scanSeq(fun((x, r) => x - 2 * r))(x1)(x0)",
            xs,
            f32,
        ),
        is_(
            lambda a: prefixes(np.add, np.zeros(m, np.float32), a),
            "scanSeq(fun((x, r) => zip(r)(x) |> map(fun((u, v) => u + v))))(generate(fun(i => 0)))(x0)",
            xss,
        ),
        is_(iterated, f"iterate(2)({halved})(x0)", f"{4 * n}.f32", f32),
        is_(lambda a, y: np.stack([a, a + y, a]), "makeArray(3)(x0, x0 + x1, x0)", f32, f32),
        is_(lambda a, y: np.stack([a, a + y]), "makeArray(2)(x0)(map(fun(x => x + x1))(x0))", xs, f32),
        is_(lambda p: (p[0] + 1, p[1]), "mapFst(fun(x => x + 1))(x0)", "(f32, i32)"),
        is_(lambda p: (p[0], p[1] * p[1]), "mapSnd(fun(x => x * x))(x0)", f"({xs}, i32)"),
    ]


REVERSED = "natFun(i => N - 1 - i)"
TURNED = "natAsIndex(N)(N - 1 - indexToInt(i))"


def scattered(a: Any) -> Any:
    result = np.full((2 * len(a), *a.shape[1:]), np.nan, a.dtype)
    result[::2] = a
    return result


def owned(owners: Any, places: Any, a: Any) -> Any:
    """Place by place."""
    result = np.full((len(owners), *a.shape[1:]), np.nan, a.dtype)
    for place, owner in enumerate(owners):
        if places[owner] == place:
            result[place] = a[owner]
    return result


def first_of(count: Any, a: Any) -> Any:
    result = np.full(a.shape, np.nan, a.dtype)
    result[:count] = a[:count]
    return result


def first_of_each(counts: Any, a: Any) -> Any:
    return np.stack([first_of(count, row) for count, row in zip(counts, a, strict=True)])


def vector_claims(n: int, m: int) -> list[Claim]:
    flat, vectors, vector = f"{n * m}.f32", f"{m}.Vec[{n}, f32]", f"Vec[{n}, f32]"
    return [
        *(is_(lambda a: a.reshape(m, n), f"{f}({n})(x0)", flat) for f in ("asVector", "asVectorAligned")),
        is_(lambda a: a.reshape(n * m), "asScalar(x0)", vectors),
        is_(lambda a, v: a * v + 1, "map(fun(w => w * x1 + 1))(x0)", vectors, vector),
        is_(lambda y: np.full(n, y), f"vectorFromScalar(x0) : {vector}", "f32"),
        is_(lambda v, y: v + y, "mapVec(fun(x => x + x1))(x0)", vector, "f32"),
        is_(lambda v: v.astype(np.float16), "mapVec(fun(x => f16(x)))(x0)", vector),
        is_(lambda a: a.sum(0), f"reduce(+, 0)(x0) : {vector}", vectors),
        is_(lambda a: (a * a).sum(0), "reduceSeq(fun((r, v) => r + v * v), 0)(x0)", vectors),
    ]


def view_claims(n: int, m: int) -> list[Claim]:
    f32, xs, xss, pairs = "f32", f"{n}.f32", f"{n}.{m}.f32", f"{n}.(f32, i32)"
    return [
        is_(lambda a, b: (a, b), "zip(x0)(x1)", xs, f"{n}.i32"),
        is_(lambda p: p, "unzip(x0)", pairs),
        is_(lambda a: (a, a + 1), "unzip(map(fun(x => (x, x + 1)))(x0))", xs),
        is_(lambda x, y: (x, y), "pair(x0)(x1)", xs, f32),
        is_(lambda p: p[0], "fst(x0)", "(f32, i32)"),
        is_(lambda p: p[1], "map(fun(p => snd(p)))(x0)", pairs),
        is_(lambda a: a.reshape(m, n), f"split({n})(x0)", f"{n * m}.f32"),
        is_(lambda p: tuple(a.reshape(m, n) for a in p), f"split({n})(x0)", f"{n * m}.(f32, i32)"),
        is_(lambda a: a.reshape(n * m), "join(x0)", xss),
        is_(lambda a: a.reshape(n * m, 2), "join(x0)", f"{n}.{m}.2.f32"),
        is_(lambda a: a.T, "transpose(x0)", xss),
        is_(lambda a: a.swapaxes(0, 1), "transpose(x0)", f"{n}.{m}.2.f32"),
        *(
            is_(
                lambda a, w=w, s=s: np.stack([a[i * s : i * s + w] for i in range(n + 1)]),
                f"slide({w}, {s})(x0)",
                f"{s * n + w}.f32",
            )
            for w, s in [(1, 1), (3, 1), (3, 2), (2, 3)]
        ),
        is_(lambda a: a[:n], f"take({n})(x0)", f"{n + m}.f32"),
        is_(lambda a: a[n:], f"drop({n})(x0)", f"{n + m}.2.f32"),
        is_(lambda a, b: np.concatenate([a, b]), "concat(x0)(x1)", xs, f"{m}.f32"),
        is_(lambda a, y: np.pad(a, (2, 1), constant_values=y), "padCst(2, 1)(x1)(x0)", xs, f32),
        is_(lambda a, y: np.concatenate([[y], a, [y]]), "padCst(1, 1)(x1)(x0)", xss, f"{m}.f32"),
        is_(lambda a: np.pad(a, (2, 3), mode="edge"), "padClamp(2, 3)(x0)", xs),
        is_(lambda a: np.concatenate([a, [np.nan] * 2]).astype(a.dtype), "padEmpty(2)(x0)", xs),
        is_(lambda a: np.concatenate([a, [-(2**31)]]).astype(a.dtype), "padEmpty(1)(x0)", f"{n}.i32"),
        is_(lambda a: a[::-1], f"reorder({n}, {REVERSED}, {REVERSED})(x0)".replace("N", str(n)), xss),
        is_(
            lambda a: a[[(i + 1) % n for i in range(n)]],
            f"reorder({n}, natFun(i => (i + 1) % {n}), natFun(i => (i + {n - 1}) % {n}))(x0)",
            xs,
        ),
        is_(
            lambda a: a[::-1],
            f"scatter(generate(fun((i: Idx[{n}]) => {TURNED})))(x0) : {xs}".replace("N", str(n)),
            xs,
        ),
        is_(
            scattered,
            f"scatter(generate(fun((i: Idx[{n}]) => natAsIndex({2 * n})(2 * indexToInt(i)))))(x0)"
            f" : {2 * n}.{m}.f32",
            xss,
        ),
        is_(owned, "scatterBy(x0)(x1)(x2)", f"{m}.Idx[{n}]", f"{n}.Idx[{m}]", xs),
        is_(owned, "scatterBy(x0)(x1)(x2)", f"{m}.Idx[{n}]", f"{n}.Idx[{m}]", xss),
        is_(first_of, "prefix(x0)(x1)", f"Idx[{n + 1}]", xs),
        is_(first_of, "prefix(x0)(x1)", f"Idx[{n + 1}]", xss),
        is_(lambda a: a, "promoted(256)(x0)", xss),
        is_(first_of_each, "prefixes(x0)(x1)", f"{n}.Idx[{m + 1}]", xss),
        is_(lambda i, a: a[i], "gather(x0)(x1)", f"{m}.Idx[{n}]", xs),
        is_(lambda a, i: a[i], "gather(x1)(x0)", f"{n}.2.f32", f"{m}.Idx[{n}]"),
        is_(lambda i, a: a[i], "idx(x0)(x1)", f"Idx[{n}]", xss),
        is_(lambda p, i: (p[0][i], p[1][i]), "idx(x1)(x0)", pairs, f"Idx[{n}]"),
    ]


def fragment_claims(n: int, m: int) -> list[Claim]:
    tile, fragment = f"{n}.{m}.f32", f"Fragment[{n}, {m}, 4, f32, Accum]"
    product = "tensorMatMulAdd(asFragment(x0))(asFragment(x1))(asFragment(x2))"

    def multiplied(a: Any, b: Any, c: Any) -> Any:
        return (a.astype(np.float32) @ b.astype(np.float32) + c).astype(c.dtype)

    def of_fragment(body: str) -> str:
        return f"(fun(f: {fragment} => asMatrix({body})))(asFragment(x0))"

    return [
        *(
            is_(multiplied, f"asMatrix({product})", f"{n}.4.{s}", f"4.{m}.{s}", f"{n}.{m}.{t}")
            for s, t in [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("i8", "i32")]
        ),
        is_(lambda a: a, of_fragment("f"), tile),
        is_(lambda a, y: a + y, of_fragment("mapFragment(fun(x => x + x1))(f)"), tile, "f32"),
        is_(np.float16, of_fragment("mapFragment(fun(x => f16(x)))(f)"), tile),
        is_(
            lambda a: a * a,
            of_fragment("mapFragment(fun((x, y) => x * y))(zipFragment(f)(f))"),
            tile,
        ),
        is_(
            lambda a, y: a + y,
            of_fragment("mapFragment(fun((x, y) => x + y))(zipFragment(f)(generateFragment(x1)))"),
            tile,
            "f32",
        ),
        is_(
            lambda a: a.max(axis=1, keepdims=True),
            of_fragment("f").replace("asMatrix(f)", "asColumn(reduceRows(max, -100.0)(f))"),
            tile,
        ),
        is_(
            lambda a: a - a.sum(axis=1, keepdims=True),
            of_fragment(
                "mapFragment(fun((x, y) => x - y))(zipFragment(f)(repeatColumn(reduceRows(+, 0)(f))))"
            ),
            tile,
        ),
        is_(
            lambda a: np.stack([a @ np.ones((m, 2))] * 1).astype(np.float32),
            of_fragment("f")
            .replace(", 4, f32", f", {m}, f32")
            .replace(
                "asMatrix(f)",
                f"(asOperands(f) : 1.Fragment[{n}, {m}, 2, f32, AMatrix]) |> map(fun(x => asMatrix("
                "tensorMatMulAdd(x)(generateFragment(1.0))(generateFragment(0.0)"
                f" : Fragment[{n}, 2, {m}, f32, Accum]))))",
            ),
            tile,
        ),
    ]


def claims(n: int, m: int) -> list[Claim]:
    return [*pattern_claims(n, m), *view_claims(n, m), *vector_claims(n, m), *fragment_claims(n, m)]


ALL = [*scalar_claims(), *(c for n, m in SIZES for c in claims(n, m))]


def name(case: Claim) -> str:
    return f"{case.text} on {', '.join(case.types)}"


every_claim = pytest.mark.parametrize("case", ALL, ids=name)


# --- the tests ------------------------------------------------------------------------------------


def at(data: Any, *position: int) -> Any:
    return tuple(at(d, *position) for d in data) if isinstance(data, tuple) else data[position]


def stacked(results: list[Any]) -> Any:
    if isinstance(results[0], tuple):
        return tuple(stacked([r[i] for r in results]) for i in (0, 1))
    return np.stack(results)


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for f, e in zip(found, expected, strict=True):
            same(f, e)
    else:
        assert found.shape == np.shape(expected)
        np.testing.assert_array_equal(found, expected)


def has_type(found: Any, expected: Any) -> None:
    """What a value is stored in is what its type says."""
    if isinstance(expected, tuple):
        for part, kind in zip(found, expected, strict=True):
            has_type(part, kind)
    else:
        assert found.dtype == expected.dtype and found.shape == expected.shape


def check(text: str, expected: Callable[..., Any]) -> None:
    term = check_expression(text)
    parameters = [(f"x{i}", t) for i, t in enumerate(arguments(term.type)[0])]
    inputs = random_inputs(parameters, seed=len(text), exact=True)
    with np.errstate(all="ignore"):
        found = call(term, *inputs)
        same(found, expected(*inputs))
    has_type(found, layout(arguments(term.type)[1]))


def header(types: tuple[str, ...], batches: tuple[str, ...]) -> str:
    return ", ".join(f"a{i}: {b}{t}" for i, (t, b) in enumerate(zip(types, batches, strict=True)))


@every_claim
def test_alone(case: Claim) -> None:
    check(case.function, case.expected)


@every_claim
def test_under_one_map(case: Claim) -> None:
    """All operands vary with the map."""
    count = len(case.types)
    arrays = ["a0", "zip(a0)(a1)", "zip(a0)(zip(a1)(a2))"][count - 1]
    pattern = ["p0", "(p0, p1)", "(p0, (p1, p2))"][count - 1]
    applied = case.function + "".join(f"(p{i})" for i in range(count))
    body = f"map(fun({pattern} => {applied}))({arrays})"

    def expected(*inputs: Any) -> Any:
        return stacked([case.expected(*(at(x, i) for x in inputs)) for i in range(BATCH[0])])

    check(f"fun(({header(case.types, (f'{BATCH[0]}.',) * count)}) => {body})", expected)


@every_claim
def test_under_two_maps(case: Claim) -> None:
    """The first operand varies with the outer map, the second with the inner, a third with none."""
    rows, columns = BATCH
    if len(case.types) == 1:
        text = f"fun((a0: {rows}.{columns}.{case.types[0]}) => map(map({case.function}))(a0))"
    else:
        applied = f"{case.function}(p0)(p1)" + "(a2)" * (len(case.types) - 2)
        batches = (f"{rows}.", f"{columns}.", "")[: len(case.types)]
        body = f"map(fun(p0 => map(fun(p1 => {applied}))(a1)))(a0)"
        text = f"fun(({header(case.types, batches)}) => {body})"

    def one(i: int, j: int, first: Any, rest: tuple[Any, ...]) -> Any:
        if not rest:
            return case.expected(at(first, i, j))
        return case.expected(at(first, i), at(rest[0], j), *rest[1:])

    def expected(first: Any, *rest: Any) -> Any:
        return stacked([stacked([one(i, j, first, rest) for j in range(columns)]) for i in range(rows)])

    check(text, expected)


def test_no_primitive_is_forgotten() -> None:
    terms = [check_expression(c.function) for c in ALL if c.types]
    used = {e.name for term in terms for e in subterms(term) if isinstance(e, Primitive)}
    assert set(REGISTRY) - used == set()
