"""Rules about reductions, folds and scans: in parts, in another order, one inside another."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.algorithmic import is_reduction
from rewrites.elements import fresh, members, names, pair, zipped
from rewrites.match import replace_term
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type, instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    alpha_equal,
    application,
    apply,
    call,
    closed_parts,
    substitute,
    subterms,
)
from rise.normal import simplify
from rise.types import Pair, as_data, is_data

# --- reductions in parts: the operator is associative and commutative, z its neutral element -------------

REDUCE_TREE = rule(
    "reduceTree",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> map(fun(b => b |> reduce(op, z))) |> reduce(op, z)",
    sizes=("n",),
    exact=False,
    meaning="Two levels: blocks of n, then their results; for blocks of a grid, or split-K.",
)
REDUCE_TREE_STRIDED = rule(
    "reduceTree, strided",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> transpose |> map(fun(c => c |> reduce(op, z))) |> reduce(op, z)",
    sizes=("n",),
    exact=False,
    meaning="Two levels, every n-th element in one part: adjacent threads read adjacent elements.",
)
REDUCE_JOIN = rule(
    "J >> reduce",
    "xs |> join |> reduce(op, z)",
    "xs |> map(fun(b => b |> reduce(op, z))) |> reduce(op, z)",
    exact=False,
    meaning="Of rows, then of their results.",
)
REDUCE_FLAT = rule(
    "*reduce >> reduce",
    "xs |> map(fun(b => b |> reduce(op, z))) |> reduce(op, z)",
    "xs |> join |> reduce(op, z)",
    exact=False,
    meaning="The reductions of the parts, reduced, are the reduction of the whole.",
)
REDUCE_FLAT_MAP = rule(
    "*(f >> reduce) >> reduce",
    "xs |> map(fun(x => h(x) |> reduce(op, z))) |> reduce(op, z)",
    "xs |> map(h) |> join |> reduce(op, z)",
    exact=False,
    meaning="The same of parts that are computed: the sum of the sums of rows is one of all their terms.",
)
REDUCE_OF_SUMS = rule(
    "reduce + reduce",
    "(xs |> reduce(+, 0)) + (ys |> reduce(+, 0))",
    "concat(xs)(ys) |> reduce(+, 0)",
    exact=False,
    meaning="The sum of two sums: of two products of matrices, one with a longer k.",
)
REDUCE_OF_ZIP = rule(
    "reduce + reduce, zipped",
    "(xs |> reduce(+, 0)) + (ys |> reduce(+, 0))",
    "zip(xs)(ys) |> map(fun((x, y) => x + y)) |> reduce(+, 0)",
    exact=False,
    meaning="The same in one loop, for equal lengths.",
)
REDUCE_CONCAT = rule(
    "concat >> reduce",
    "concat(xs)(ys) |> reduce(op, z)",
    "op(xs |> reduce(op, z), ys |> reduce(op, z))",
    exact=False,
    meaning="A reduction of two concatenated arrays combines the reductions of both.",
)
REDUCE_REORDER = rule(
    "reduce, backwards",
    "xs |> reduce(op, z)",
    "xs |> reorder(n, natFun(i => n - 1 - i), natFun(i => n - 1 - i)) |> reduce(op, z)",
    sizes=("n",),
    exact=False,
    meaning="In another order, which a permutation of the k dimension is.",
)
FOLD_OF_SUMS = rule(
    "reduceSeq of sums",
    "xs |> reduceSeq(Local)(fun(acc, x => acc + (h(x) |> reduce(+, 0))), 0)",
    "xs |> reduceSeq(Local)(fun(accs, x => zip(accs)(h(x)) |> map(fun((a, y) => a + y))),"
    " generate(fun(i => 0))) |> reduce(+, 0)",
    exact=False,
    meaning="A fold of sums is the sum of folds, one for each summand.",
)
REDUCE_FACTOR = rule(
    "*(c *) >> reduce",
    "xs |> map(fun(x => x * c)) |> reduce(+, 0)",
    "(xs |> reduce(+, 0)) * c",
    exact=False,
    meaning="A common factor of a sum.",
)

# --- folds in parts: exact, since they keep the order -----------------------------------------------------

FOLD = "reduceSeq(Local)(fun(acc, x => f(acc, x)), z)"
FOLD_IN_BLOCKS = rule(
    "reduceSeq in blocks",
    f"xs |> {FOLD}",
    "xs |> split(n) |> reduceSeq(Local)(fun(acc, b => b |> reduceSeq(Local)(fun(a, x => f(a, x)), acc)), z)",
    sizes=("n",),
    meaning="A loop as two nested ones.",
)
FOLD_AND_REST = rule(
    "reduceSeq, of the first and the rest",
    f"xs |> {FOLD}",
    "xs |> drop(n) |> reduceSeq(Local)(fun(acc, x => f(acc, x)), xs |> take(n) |> " + FOLD + ")",
    sizes=("n",),
    meaning="A loop as two loops, one after the other.",
)
FOLD_JOIN = rule(
    "J >> reduceSeq",
    f"xs |> join |> {FOLD}",
    "xs |> reduceSeq(Local)(fun(acc, b => b |> reduceSeq(Local)(fun(a, x => f(a, x)), acc)), z)",
    meaning="A fold over joined rows continues in each row with the result of the one before.",
)
FOLD_FLAT = rule(
    "reduceSeq of reduceSeq",
    "xs |> reduceSeq(Local)(fun(acc, b => b |> reduceSeq(Local)(fun(a, x => f(a, x)), acc)), z)",
    f"xs |> join |> {FOLD}",
    meaning="Two nested loops as one.",
)
FOLD_CONCAT = rule(
    "concat >> reduceSeq",
    f"concat(xs)(ys) |> {FOLD}",
    f"xs |> {FOLD} |> fun(s => ys |> reduceSeq(Local)(fun(acc, x => f(acc, x)), s))",
    meaning="A fold over two concatenated arrays continues in the second with the result of the first.",
)
FOLD_PEEL = rule(
    "reduceSeq, peeled",
    f"xs |> {FOLD}",
    "xs |> drop(1) |> reduceSeq(Local)(fun(acc, x => f(acc, x)), f(z, idx(0)(xs)))",
    meaning="The first step before the loop, where it may be simpler.",
)

# --- reductions and maps --------------------------------------------------------------------------------

LIFT_REDUCTION = rule(
    "liftReduce, of reduce",
    "xs |> map(fun(x => h(x) |> reduce(op, z)))",
    "xs |> map(h) |> transpose"
    " |> reduce(fun(acc, ys => zip(acc)(ys) |> map(fun((a, y) => op(a, y)))), generate(fun(i => z)))",
    meaning="A map of reductions is a reduction of arrays.",
)
ARRAYS_BY_ELEMENTS = rule(
    "reduce of arrays, by elements",
    "xs |> reduce(fun((acc, ys) => zip(acc)(ys) |> map(fun((a, y) => op(a, y)))), generate(fun(i => z)))",
    "xs |> transpose |> map(fun(ys => ys |> reduce(op, z)))",
    meaning="A reduction of arrays is one for each of their elements.",
)


@computed(
    "reduceMapFission",
    "xs |> reduceSeq(Local)(acc => x => op(acc, f(x)), z)"
    " → xs |> map(f) |> reduceSeq(Local)(acc => y => op(acc, y), z)",
    (
        "fun(xs: 5.i32 => xs |> reduceSeq(Local)(fun(acc, x => acc - x * x), 7))",
        "fun((xs: 4.(f32, f32), c: f32) =>"
        " xs |> reduceSeq(Local)(fun(acc, (x, y) => max(acc)(x * y + c)), 0))",
        "fun(xs: 3.4.i32 => xs"
        " |> reduceSeq(Local)(fun(acc, r => acc + (r |> reduceSeq(Local)(fun(a, x => a + x), 0))), 1))",
    ),
    "What a fold's step computes of the element alone is a map before it; the opposite of reduceSeqMap.",
)
def REDUCE_MAP_FISSION(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    applied = call(term)
    if applied is None or applied[0] not in ("reduceSeq", "reduceSeqUnroll") or len(applied[2]) != 3:
        return "expected a fold"
    _, head, (step, initial, xs) = applied
    parts = _operator_and_operand(step)
    if isinstance(parts, str):
        return parts
    operator, accumulator, x, operand = parts
    space, size, element, _ = head.arguments
    types = (size, element, operand.type)
    mapped = apply(instance("map", types, term.origin), Lambda(x, operand, x.origin), xs)
    y = Identifier(x.name, operand.type, x.origin)
    body = Apply(Apply(operator, accumulator, step.origin), y, step.origin)
    new_step = Lambda(accumulator, Lambda(y, body, step.origin), step.origin)
    new_types = (space, size, operand.type, accumulator.type)
    fold = instance(head.declaration, new_types, head.origin)
    return simplify(apply(fold, new_step, initial, mapped, origin=term.origin))


def _operator_and_operand(step: Expr) -> tuple[Expr, Identifier, Identifier, Expr] | str:
    """op, acc, x and e of a step (acc => x => op(acc, e)) where op uses neither, and e not acc."""
    if not (isinstance(step, Lambda) and isinstance(step.body, Lambda)):
        return "expected a step of two parameters"
    accumulator, x, body = step.parameter, step.body.parameter, step.body.body
    if accumulator.name == x.name or not (isinstance(body, Apply) and isinstance(body.function, Apply)):
        return "the step applies no operator to the accumulator"
    operator, first, operand = body.function.function, body.function.argument, body.argument
    if not (isinstance(first, Identifier) and first.name == accumulator.name and is_data(operand.type)):
        return "the step applies no operator to the accumulator"
    if operator.free & {accumulator.name, x.name} or accumulator.name in operand.free:
        return "operator and operand are not separate"
    if isinstance(operand, Identifier):
        return "the element is not computed with"
    return operator, accumulator, x, operand


# --- several reductions ---------------------------------------------------------------------------------


@computed(
    "reduce beside reduce",
    "e(xs |> reduce(f, y), ys |> reduce(g, z)) → zip(xs)(ys)"
    " |> reduce(((a, b), (c, d)) => (f(a, c), g(b, d)), (y, z)) |> ((s, t) => e(s, t))",
    (
        "fun(xs: 5.i32 => (xs |> reduce(+, 0)) - 2 * (xs |> reduce(max, -100)))",
        "fun((xs: 4.i32, ys: 4.f32) => (xs |> map(fun(x => x * x)) |> reduce(+, 0), ys |> reduce(min, 9)))",
        "fun((xss: 3.4.i32, c: i32) =>"
        " xss |> map(fun(r => c * (r |> reduce(+, 0)) + (r |> reduce(max, -9)))))",
    ),
    "Two reductions of equally many elements as one: what both are of is read once.",
)
def REDUCTIONS_AS_PAIR(term: Expr) -> Expr | str:  # noqa: N802
    if not is_data(term.type):
        return "expected data"
    found = _innermost_reductions(term)
    first = next(found, None)
    second = next((part for part in found if first is not None and _is_beside(part, first)), None)
    if first is None or second is None:
        return "expected two reductions of equally many elements"
    (f, y, xs), (g, z, ys) = (application(part)[2] for part in (first, second))
    types, taken = (as_data(first.type), as_data(second.type)), names(term)
    left, right, both = (fresh(name, Pair(*types), taken) for name in ("left", "right", "both"))
    s, t = (fresh(name, type_, taken) for name, type_ in zip("st", types, strict=True))
    each = [apply(op, *of) for op, *of in zip((f, g), members(left, 2), members(right, 2), strict=True)]
    step = Lambda(left, Lambda(right, pair(*each)))
    head = instance("reduce", (array_type(xs).size, both.type), term.origin)
    reduced = apply(head, step, pair(y, z), zipped(xs, ys))
    body = replace_term(replace_term(term, first, s), second, t)
    put_in = dict(zip((s.name, t.name), members(both, 2), strict=True))
    return simplify(Apply(Lambda(both, substitute(body, put_in)), reduced, term.origin))


def _innermost_reductions(term: Expr) -> Iterator[Expr]:
    """Those of which no part is a reduction, and that use nothing that is bound inside of the term."""
    for part in closed_parts(term):
        if is_reduction(part) and not any(map(is_reduction, subterms(application(part)[2][2]))):
            yield part


def _is_beside(part: Expr, first: Expr) -> bool:
    sizes = (array_type(application(each)[2][2]).size for each in (part, first))
    return len(set(sizes)) == 1 and not alpha_equal(part, first)


# --- scans ----------------------------------------------------------------------------------------------

SCAN_IN_BLOCKS = rule(
    "scan in blocks",
    "xs |> scan(op, z)",
    "xs |> split(n) |> fun(bs => zip(bs |> map(fun(b => b |> reduceSeq(Local)(op, z))) |> scan(op, z)"
    " |> padCst(1, 0)(z) |> take(m))(bs))"
    " |> map(fun((s, b) => b |> scan(op, z) |> map(fun(x => op(s, x))))) |> join",
    sizes=("n", "m"),
    exact=False,
    meaning="Blocks of n are scanned on their own, each from what all before it give together.",
)
SCAN_BLOCKS_IN_TURN = rule(
    "scanSeq in blocks",
    "xs |> scanSeq(fun(x, acc => f(x, acc)), z)",
    "xs |> split(n) |> scanSeq(fun(b, accs => b |> scanSeq(fun(x, acc => f(x, acc)),"
    " accs |> reduceSeq(Local)(fun(a, y => y), z))), generate(fun(i => z))) |> join",
    sizes=("n",),
    meaning="A loop over blocks, each from where the one before it ended.",
)
SCAN_MAP = rule(
    "*f >> scan",
    "xs |> map(f) |> scan(op, z)",
    "xs |> scanSeq(fun(x, acc => op(acc, f(x))), z)",
    meaning="A scan of a map maps on the way.",
)
SCAN_SEQ_MAP = rule(
    "*f >> scanSeq",
    "xs |> map(f) |> scanSeq(fun(y, acc => g(y, acc)), z)",
    "xs |> scanSeq(fun(x, acc => g(f(x), acc)), z)",
    meaning="A scan applies a mapped function to each element as it reads it.",
)
SCAN_TAKE = rule(
    "scanSeq >> take",
    "xs |> scanSeq(fun(x, acc => f(x, acc)), z) |> take(n)",
    "xs |> take(n) |> scanSeq(fun(x, acc => f(x, acc)), z)",
    meaning="What comes later does not matter.",
)
LIFT_SCAN = rule(
    "liftScan",
    "xs |> map(fun(r => r |> scanSeq(fun(x, acc => f(x, acc)), z)))",
    "xs |> transpose |> scanSeq(fun(c, accs => zip(c)(accs) |> map(fun((x, acc) => f(x, acc)))),"
    " generate(fun(i => z))) |> transpose",
    meaning="A map of scans is a scan of arrays.",
)
