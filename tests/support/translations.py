"""Low-level programs, by what each of them shows."""

from __future__ import annotations

COPY = "mapSeq(fun(x => x))"

SUM = "reduceSeq(Local)(fun((a, x) => a + x), 0)"

HALVE = """depFun((l: Nat) => fun(ys: (2*l).i32 =>
  ys |> split(2) |> mapSeq(fun(p => idx(0)(p) - idx(1)(p)))))"""

NEXT = """depFun((l: Nat) => fun(ys: (1*l).i32 =>
  zip(ys)(ys |> reorder(l, natFun(i => l - 1 - i), natFun(i => l - 1 - i)))
  |> mapSeq(fun((x, y) => 2*x + y))))"""

BACKWARDS = "generate(fun((i: Idx[20]) => i)) |> reorder(20, natFun(i => 19 - i), natFun(i => 19 - i))"

MIX = 'foreignFunction("mix", 2, "return x1 * x1 - x2;")(fun((a, b) => a * a - b))'

# by what is shown; sizes are primes, so that what is mixed up shows
PROGRAMS = {
    "makeArray, read by a loop": f"fun((x: i32, y: i32) => makeArray(5)(x, y, 3, x, 7) |> {COPY})",
    "makeArray of arrays": "fun((xs: 3.f32, ys: 3.f32) =>"
    f" makeArray(2)(xs, ys) |> transpose |> mapSeq({COPY}))",
    "makeArray, written": "fun((xs: 5.f32, ys: 5.f32) =>"
    f" makeArray(3)(xs |> {COPY}, ys |> {COPY}, xs |> {COPY}))",
    "concat, read": f"fun((xs: 2.f32, ys: 5.f32, zs: 1.f32) => concat(concat(xs)(ys))(zs) |> {COPY})",
    "concat, written": f"fun((xs: 2.f32, ys: 5.f32) => concat(xs |> {COPY}, ys |> mapSeq(fun(y => y + 1))))",
    "padClamp": f"fun(xs: 7.f32 => xs |> padClamp(2, 3) |> {COPY})",
    "padClamp, left only": f"fun(xs: 1.f32 => xs |> padClamp(3, 0) |> {COPY})",
    "padClamp, right only": f"fun(xs: 5.f32 => xs |> padClamp(0, 2) |> {COPY})",
    "padClamp, then padCst": f"fun(xs: 3.f32 => xs |> padClamp(1, 1) |> padCst(1, 1)(0) |> {COPY})",
    "padCst of a value": f"fun((x: f32, xs: 7.f32) => xs |> padCst(2, 3)(x) |> {COPY})",
    "padCst before, padClamp after transposing": "fun(xs: 3.5.f32 =>"
    f" xs |> map(padCst(1, 2)(0)) |> transpose |> padClamp(2, 0) |> mapSeq({COPY}))",
    "padEmpty, written": f"fun(xs: 5.f32 => xs |> {COPY} |> padEmpty(0))",
    "padEmpty, read": f"fun(xs: 5.f32 => xs |> padEmpty(3) |> take(5) |> {COPY})",
    "gather": f"fun((is: 7.Idx[5], xs: 5.3.f32) => xs |> gather(is) |> mapSeq({COPY}))",
    "gather by gathered indices": "fun((is: 7.Idx[5], js: 5.Idx[3], xs: 3.f32) =>"
    f" xs |> gather(js |> gather(is)) |> {COPY})",
    "gather, padded: no index is read that there is not": "fun((is: 4.Idx[5], xs: 5.f32) =>"
    f" xs |> gather(is) |> padCst(1, 2)(0) |> {COPY})",
    "an index from data": "fun((is: 7.Idx[5], xs: 3.5.f32) =>"
    " is |> mapSeq(fun(i => xs |> join |> idx(natAsIndex(15)(2 * indexAsNat(i) + 1)))))",
    "scatter": f"fun((xs: 20.f32) => xs |> {COPY} |> scatter({BACKWARDS}))",
    "scatterBy": f"fun((xs: 20.f32) => xs |> {COPY} |> scatterBy({BACKWARDS})({BACKWARDS}))",
    "prefix, written": f"fun(xs: 7.f32 => xs |> {COPY} |> prefix(7))",
    "prefix, read": f"fun(xs: 7.f32 => xs |> prefix(7) |> {COPY})",
    "promoted, read": f"fun(xs: 7.f32 => xs |> promoted(256) |> {COPY})",
    "prefixes, written": f"fun(xs: 2.7.f32 => xs |> mapSeq({COPY}) |> prefixes(makeArray(2)(7, 7)))",
    "prefixes, read": f"fun(xs: 2.7.f32 => xs |> prefixes(makeArray(2)(7, 7)) |> mapSeq({COPY}))",
    "reorder, read": "fun(xs: 6.f32 =>"
    f" xs |> reorder(6, natFun(i => i / 3 + 2*(i % 3)), natFun(i => i / 2 + 3*(i % 2))) |> {COPY})",
    "scanSeq": "fun((z: i32, xs: 7.i32) => xs |> scanSeq(fun((x, a) => 2 * a + x), z))",
    "scanSeq of rows": "fun(xs: 5.3.f32 => xs |> scanSeq("
    "fun((x, a) => zip(x)(a) |> mapSeq(fun((p, q) => 2 * q - p))), generate(fun(i => 0))))",
    "iterate, each turn shorter": f"fun(xs: 24.i32 => xs |> iterate(3)({HALVE}))",
    "iterate, read": f"fun(xs: 12.i32 => xs |> iterate(2)({HALVE}) |> {SUM})",
    "iterate, many turns of one size": f"fun(xs: 3.i32 => xs |> iterate(5)({NEXT}))",
    "iterate, no turn": f"fun(xs: 3.i32 => xs |> iterate(0)({NEXT}))",
    "mapFst and mapSnd, read": "fun(ps: 5.(i32, f32) => ps |> mapSeq(fun(p =>"
    " p |> mapFst(fun(x => x + 1)) |> mapSnd(fun(y => y * 2)) |> fun((x, y) => f32(x) + y))))",
    "mapFst, written": "fun(p: (5.i32, 3.f32) => p |> mapFst(mapSeq(fun(x => x + 1))))",
    "mapSnd, written": "fun(p: (5.i32, 3.f32) => p |> mapSnd(mapSeq(fun(x => x + 1))))",
    "a C function, given": f"fun(xs: 5.i32 => xs |> mapSeq(fun(x => {MIX}(x, {MIX}(x, 3)))))",
    "a C function that exists": 'fun(xs: 5.f32 => xs |> mapSeq(foreignFunction("fabsf", 1)(abs)))',
    "vectorFromScalar": "fun((a: f32, xs: 12.f32) =>"
    " xs |> asVector(4) |> mapSeq(fun(v => v * vectorFromScalar(a))) |> asScalar)",
    "select of arrays": "fun((c: bool, xs: 5.f32, is: 5.Idx[5]) =>"
    f" select(c)(generate(fun(i => f32(indexToInt(i)))))(xs |> gather(is)) |> {COPY})",
    "select of pairs": "fun((xs: 5.i32, ys: 5.i32) =>"
    " zip(xs)(ys) |> mapSeq(fun((x, y) => select(x < y)((x, y))((y, x)))))",
    "whole numbers": "fun(xs: 7.f32 => xs |> mapSeq(fun(x => (round(x * 0.5), ceil(x * 0.25)))))",
    "narrow numbers wrap": "fun(xs: 7.u8 => xs |> mapSeq(fun(x => i32(fma(x + 250, x, x)))))",
    "the largest number of all": "fun(xs: 5.f32 => xs |> reduceSeq(Local)(min, infinity))",
}
