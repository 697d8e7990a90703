"""Rules that introduce tensor-core primitives (extended abstract, Listing 4), and rules about fragments."""

from __future__ import annotations

from rewrites.algorithmic import changes
from rewrites.match import Match
from rewrites.rule import Condition, Rule
from rewrites.rule import library_rule as rule
from rise.instructions import Family, Shape, family, instruction
from rise.nat import Nat
from rise.types import Fragment, Scalar, shape


def _shape(m: Nat, n: Nat, k: Nat) -> Shape | None:
    """As numbers; None where one of them is not known."""
    match m.value, n.value, k.value:
        case int(rows), int(columns), int(depth):
            return rows, columns, depth
        case _:
            return None


def has_instruction(match: Match) -> str | None:
    """a: m.k, b: n.k and c: m.n have shapes and types that an instruction has."""
    (m, k), operand = shape(match.terms["a"].type)
    (n, _), _ = shape(match.terms["b"].type)
    _, accumulator = shape(match.terms["c"].type)
    sizes = _shape(m, n, k)
    if not isinstance(operand, Scalar) or not isinstance(accumulator, Scalar):
        return "the elements are not numbers"
    if sizes is None or instruction(sizes, operand.name, accumulator.name) is None:
        return (
            f"there is no tensor-core instruction for {m}×{n}×{k}, operands of type `{operand}` and sums in"
            f" `{accumulator}`"
        )
    return None


def by_warp(match: Match) -> str | None:
    """A warp executes the instruction."""
    return "the instruction is a warpgroup's" if _of_group(match) else None


def by_warpgroup(match: Match) -> str | None:
    """A warpgroup executes the instruction."""
    return None if _of_group(match) else "the instruction is a warp's"


def _of_group(match: Match) -> bool:
    (m, n), _ = shape(match.terms["c"].type)
    (_, k), _ = shape(match.terms["a"].type)
    sizes = _shape(m, n, k)
    return sizes is not None and family(sizes) is Family.WGMMA


def _tensorise(name: str, product: str, meaning: str, executes: Condition, exact: bool = False) -> Rule:
    """c + a·bᵀ, where `product` is one of two elements. Warps load operands, warpgroups leave them."""
    load = " |> toMem(Local)" if executes is by_warp else ""
    return rule(
        name,
        "zip(c)(a) |> map(fun((cr, r) => zip(cr)(b) |> map(fun((x, col) => "
        f"x + (zip(r)(col) |> map(fun((p, q) => {product})) |> reduce(+, 0))))))",
        f"tensorMatMulAdd(a |> asFragment{load})(b |> transpose |> asFragment{load})"
        "(c |> asFragment) |> asMatrix",
        meaning=meaning,
        exact=exact,
        conditions=(has_instruction, executes),
    )


SAME_TYPE = "The same where operands and accumulator have one type."
TENSORISE = _tensorise(
    "tensorise",
    "f32(p) * f32(q)",
    "A product of two tiles, added to a third, as one tensor-core instruction.",
    by_warp,
)
TENSORISE_SAME = _tensorise("tensoriseSame", "p * q", SAME_TYPE, by_warp)
TENSORISE_WHOLE = _tensorise(
    "tensoriseWhole",
    "i32(p) * i32(q)",
    "A product of two tiles of bytes, added to a third of whole numbers.",
    by_warp,
    exact=True,
)
TENSORISE_GROUP = _tensorise(
    "tensoriseGroup",
    "f32(p) * f32(q)",
    "A product by a warpgroup, which reads its operands from shared memory.",
    by_warpgroup,
)
TENSORISE_GROUP_SAME = _tensorise("tensoriseGroupSame", "p * q", SAME_TYPE, by_warpgroup)
TENSORISE_GROUP_WHOLE = _tensorise(
    "tensoriseGroupWhole",
    "i32(p) * i32(q)",
    "A product of two tiles of bytes by a warpgroup, added to a third of whole numbers.",
    by_warpgroup,
    exact=True,
)
LOAD_ONCE = rule(
    "loadOnce",
    "zip(c)(a) |> map(fun(r => zip(fst(r))(b) |> map(fun(p => "
    "tensorMatMulAdd(snd(r) |> asFragment |> toMem(Local))"
    "(snd(p) |> transpose |> asFragment |> toMem(Local))(fst(p))))))",
    "b |> map(fun(t => t |> transpose |> asFragment)) |> toMem(Local) |> fun(bs => zip(c)(a) |> map(fun(r => "
    "snd(r) |> asFragment |> toMem(Local) |> fun(f => zip(fst(r))(bs) |> map(fun(p => "
    "tensorMatMulAdd(f)(snd(p))(fst(p))))))))",
    meaning="Fragments that several products use are loaded once.",
)
FETCH = rule(
    "fetch",
    "xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(g(x)) |> map(fun(r => zip(fst(r))(h(x)) |> map(fun(p => "
    "tensorMatMulAdd(snd(r) |> asFragment |> toMem(Local))"
    "(snd(p) |> transpose |> asFragment |> toMem(Local))(fst(p))))))), z)",
    "xs |> reducePipelined(2)(fun(x => (g(x) |> map(fun(t => t |> asFragment)) |> toMem(Local), "
    "h(x) |> map(fun(t => t |> transpose |> asFragment)) |> toMem(Local))), "
    "fun(acc, x => zip(acc)(fst(x)) |> map(fun(r => zip(fst(r))(snd(x)) |> map(fun(p => "
    "tensorMatMulAdd(snd(r))(snd(p))(fst(p))))))), z)",
    meaning="Fragments are loaded once; those of a step are prefetched while the step before it computes.",
)
FRAGMENT_OF_MATRIX = rule(
    "asMatrix >> asFragment",
    "f |> asMatrix |> asFragment",
    "f",
    meaning="A fragment stored as a matrix and loaded again is the same fragment.",
)
STORED_FRAGMENT = rule(
    "asMatrix >> asFragment >> toMem",
    "f |> asMatrix |> asFragment |> toMem(Local)",
    "f",
    meaning="A stored fragment is not stored again.",
)
FRAGMENT_OF_CONSTANT = rule(
    "constant >> asFragment",
    "generate(fun(i => generate(fun(j => z)))) |> asFragment",
    "generateFragment(z)",
    meaning="A fragment of a constant matrix is filled with that constant.",
)


def accumulator_family(fragment: Fragment) -> Family | None:
    """The instructions that add to an accumulator of this type."""
    sizes = _shape(fragment.rows, fragment.columns, fragment.other)
    return None if sizes is None else family(sizes)


# --- bringing asMatrix, join and transpose out of reductions and maps -------------------------------------


def _mapped(function: str, depth: int) -> str:
    """`map(r1 => r1 |> map(… function …))`, function under depth maps, as a pipe step."""
    if depth == 0:
        return function
    return f"map(fun(r{depth} => r{depth} |> {_mapped(function, depth - 1)}))"


def through(forward: str, backward: str, depth: int) -> Rule:
    """reduceSeq(λacc x. iso(f acc x)) z → iso(reduceSeq(λacc x. f (iso acc) x) (iso⁻¹ z))"""
    name = "*" * depth + forward
    iso, inverse = _mapped(forward, depth), _mapped(backward, depth)
    return rule(
        f"reduceSeq >> {name}",
        f"xs |> reduceSeq(Local)(fun(acc, x => f(acc, x) |> {iso}), z)",
        f"xs |> reduceSeq(Local)(fun(acc, x => f(acc |> {iso}, x)), z |> {inverse}) |> {iso}",
        meaning="A view of the accumulator moves out of the step.",
    )


ISOMORPHISMS = (
    ("asMatrix", "asFragment"),
    ("join", "split(n)"),
    ("split(n)", "join"),
    ("transpose", "transpose"),
)
ACCUMULATE = tuple(through(f, b, depth) for depth in range(5) for f, b in ISOMORPHISMS)
# an accumulator that its step computes flat, and then splits
ACCUMULATE_SPLIT = ACCUMULATE[2]


def _out(forward: str, name: str = "") -> Rule:
    condition: Condition = changes("f", f"only `{forward}` is mapped")
    return rule(
        f"*({name or forward})",
        f"xs |> map(fun(x => f(x) |> {forward}))",
        f"xs |> map(f) |> map(fun(y => y |> {forward}))",
        meaning="A view of a result becomes a map of its own.",
        conditions=(condition,),
    )


MAP_OUT = tuple(_out(forward) for forward, _ in ISOMORPHISMS)
MAP_MAP_OUT = tuple(
    _out(_mapped(forward, depth), "*" * depth + forward)
    for depth in (1, 2, 3, 4)
    for forward, _ in ISOMORPHISMS
)
