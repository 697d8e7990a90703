"""Five programs, written in Python and in RISE: the same definitions, side by side.

python examples/embedded.py
"""

import numpy as np

import rise
from rise.ops import (
    Array,
    Nat,
    Pair,
    add,
    f16,
    f32,
    join,
    let,
    map,
    natFun,
    padClamp,
    reduce,
    reduceSeq,
    reorder,
    slide,
    split,
    sqrt,
    transpose,
    zip,
)

m, n, k = Nat("m n k")

TEXT = """
// 1. a dot product: f16 products, summed in f32
def dot{n: Nat}(xs: n.f16, ys: n.f16): f32 =
  zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)

// 2. a product of matrices, of dot products
def matmul(m: Nat, n: Nat, k: Nat)(a: m.k.f16, b: k.n.f16) =
  a |> map(row => b |> transpose |> map(col => dot(row)(col)))

// 3. a stencil: the mean of three neighbours
def blur{n: Nat}(xs: n.f32): n.f32 =
  xs |> padClamp(1, 1) |> slide(3, 1) |> map(window => reduce(+, 0)(window) / 3)

// 4. lengths of complex numbers, summed with compensation for rounding (Kahan)
def total{n: Nat}(zs: n.(f32, f32)): f32 =
  zs
  |> map(z => sqrt(fst(z) * fst(z) + snd(z) * snd(z)))
  |> reduceSeq(
    (acc, x) => let y = x - snd(acc) in let t = fst(acc) + y in (t, t - fst(acc) - y),
    (0, 0))
  |> fst

// 5. blocks of eight, reversed
def backwards{n: Nat}(xs: (8*n).f32): (8*n).f32 =
  xs |> split(8) |> reorder(n, natFun(i => n - 1 - i), natFun(i => n - 1 - i)) |> join
"""


@rise.define
def dot(xs: Array[n, f16], ys: Array[n, f16]) -> f32:
    return zip(xs, ys) | map(lambda x, y: f32(x) * f32(y)) | reduce(add, 0)


@rise.define(sizes=(m, n, k))
def matmul(a: Array[m, k, f16], b: Array[k, n, f16]):
    return a | map(lambda row: b | transpose | map(lambda col: dot(row, col)))


@rise.define
def blur(xs: Array[n, f32]) -> Array[n, f32]:
    return xs | padClamp(1, 1) | slide(3, 1) | map(lambda window: reduce(add, 0)(window) / 3)


@rise.define
def total(zs: Array[n, Pair[f32, f32]]) -> f32:
    def length(z):
        re, im = z
        return sqrt(re * re + im * im)

    def step(acc, x):
        so_far, lost = acc
        return let(x - lost, lambda y: let(so_far + y, lambda t: (t, t - so_far - y)))

    return (zs | map(length) | reduceSeq(step, (0, 0))).fst


@rise.define
def backwards(xs: Array[8 * n, f32]) -> Array[8 * n, f32]:
    mirror = natFun(lambda i: n - 1 - i)
    return xs | split(8) | reorder(n, mirror, mirror) | join


def main() -> None:
    """Shows each definition and evaluates it on small inputs."""
    for definition in (dot, matmul, blur, total, backwards):
        print(definition, "\n")
    print(matmul(np.eye(3, 4, dtype=np.float16), np.ones((4, 2), np.float16)))
    print(blur(np.array([0, 3, 6], np.float32)))
    print(total((np.array([3, 5], np.float32), np.array([4, 12], np.float32))))
    print(backwards(np.arange(16, dtype=np.float32)))


if __name__ == "__main__":
    main()
