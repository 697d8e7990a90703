"""Vectorisation: arrays as arrays of vectors, computed with a few elements at a time."""

from __future__ import annotations

from rewrites.conditions import numbers, total
from rewrites.rule import Rule, computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type, instance
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, apply, call, fresh_name
from rise.nat import Nat
from rise.normal import simplify
from rise.primitives.declare import primitive
from rise.types import Array, Pair, Scalar, Variable, Vector, arguments

ARRAY, GIVES = numbers("xs"), numbers("f")

# --- vectors made, and taken apart ----------------------------------------------------------------------

AS_VECTOR_AFTER = rule(
    "asVector >> asScalar, introduced",
    "xs",
    "xs |> asVector(n) |> asScalar",
    conditions=(ARRAY,),
    meaning="An array is its vectors, taken apart into elements.",
)
AS_SCALAR_AS_VECTOR = rule(
    "asScalar >> asVector",
    "xs |> asScalar |> asVector(n)",
    "xs",
    meaning="Vectors taken apart and put together are the same vectors.",
)
AS_VECTOR_AS_SCALAR = rule(
    "asVector >> asScalar",
    "xs |> asVector(n) |> asScalar",
    "xs",
    meaning="Elements put into vectors and taken apart are the same elements.",
)
ROUND_UP_AFTER = rule(
    "roundUp asVector",
    "xs",
    "xs |> padEmpty(p) |> asVector(n) |> asScalar |> take(m)",
    sizes=("p",),
    conditions=(ARRAY,),
    meaning="p more elements, so that n divides the size.",
)
VECTORISE = rule(
    "vectorize",
    "xs |> map(f)",
    "xs |> asVector(n) |> map(fun(v => mapVec(f)(v))) |> asScalar",
    conditions=(ARRAY, GIVES),
    meaning="A map of numbers, n at a time.",
)
VECTORISE_ROUNDED = rule(
    "vectorize, roundUp",
    "xs |> map(f)",
    "xs |> padEmpty(p) |> asVector(n) |> map(fun(v => mapVec(f)(v))) |> asScalar |> take(m)",
    sizes=("p",),
    conditions=(ARRAY, GIVES, total("f")),
    meaning="The same where n does not divide the size: p undefined elements are added.",
)
VECTORISE_STEPS = rule(
    "vectorize reduce",
    "xs |> reduce(+, 0)",
    "xs |> asVector(n) |> reduceSeq(Local)(fun(acc, v => acc + v), vectorFromScalar(0))"
    " |> fun(s => generate(fun((i: Idx[1]) => s)) |> asScalar |> reduce(+, 0))",
    exact=False,
    conditions=(ARRAY,),
    meaning="n partial sums in one vector, which are added at the end.",
)

# --- past maps and reductions ---------------------------------------------------------------------------

BEFORE_MAP = rule(
    "*f >> asVector",
    "xs |> map(f) |> asVector(n)",
    "xs |> asVector(n) |> map(fun(v => mapVec(f)(v)))",
    conditions=(ARRAY,),
    meaning="A map before vectors are made is a map of every vector.",
)
AFTER_MAP = rule(
    "asVector >> *mapVec",
    "xs |> asVector(n) |> map(fun(v => mapVec(f)(v)))",
    "xs |> map(f) |> asVector(n)",
    meaning="A map of every vector is a map of the elements before.",
)
MAP_AFTER_AS_SCALAR = rule(
    "asScalar >> *f",
    "xs |> asScalar |> map(f)",
    "xs |> map(fun(v => mapVec(f)(v))) |> asScalar",
    conditions=(GIVES,),
    meaning="A map of the elements of vectors is a map of every vector.",
)
BEFORE_MAP_REDUCE = rule(
    "*reduce >> asVector",
    "xs |> map(fun(r => r |> reduceSeq(Local)(fun(acc, x => acc + g(x)), z))) |> asVector(n)",
    "xs |> transpose |> map(fun(c => c |> asVector(n))) |> transpose"
    " |> map(fun(r => r |> reduceSeq(Local)(fun(acc, v => acc + mapVec(g)(v)), vectorFromScalar(z))))",
    conditions=(numbers("g"),),
    meaning="Sums of n rows at a time: each step adds a vector, of one column.",
)
BEFORE_MAP_DOT = rule(
    "*dot >> asVector",
    "xs |> map(fun(r => zip(ws)(r) |> reduceSeq(Local)(fun(acc, (w, x) => acc + w * x), z))) |> asVector(n)",
    "xs |> transpose |> map(fun(c => c |> asVector(n))) |> transpose"
    " |> map(fun(r => zip(ws)(r)"
    " |> reduceSeq(Local)(fun(acc, (w, v) => acc + vectorFromScalar(w) * v), vectorFromScalar(z))))",
    meaning="Dot products of n rows with one list of weights, as of a stencil.",
)
MAP_VECTOR_FUSION = rule(
    "mapVec fusion",
    "v |> mapVec(f) |> mapVec(g)",
    "v |> mapVec(fun(x => g(f(x))))",
    meaning="Two functions of a vector's elements are one.",
)
MAP_VECTOR_CONSTANT = rule(
    "vectorFromScalar >> mapVec",
    "vectorFromScalar(x) |> mapVec(f)",
    "vectorFromScalar(f(x))",
    meaning="A function of a vector of equal elements is computed once.",
)
VECTOR_OF_CONSTANT = rule(
    "constant >> asVector",
    "generate(fun(i => z)) |> asVector(n)",
    "generate(fun(i => vectorFromScalar(z)))",
    meaning="The vectors of a constant array are constant.",
)
CONSTANT_AS_SCALAR = rule(
    "constant >> asScalar",
    "generate(fun(i => vectorFromScalar(z))) |> asScalar",
    "generate(fun(i => z))",
    meaning="The elements of constant vectors are a constant array.",
)

# --- past other views -----------------------------------------------------------------------------------

AS_SCALAR_PAIR = rule(
    "(asScalar, asScalar)",
    "(xs |> asScalar, ys |> asScalar)",
    "(xs, ys) |> mapFst(fun(x => x |> asScalar)) |> mapSnd(fun(y => y |> asScalar))",
    meaning="A pair of arrays of elements takes the vectors in the members of a pair apart.",
)


def _past(name: str, scalars: str, vectors: str) -> tuple[Rule, Rule]:
    """A view of whole vectors: before they are made, and after."""
    return (
        rule(
            f"asVector >> {name}",
            f"xs |> asVector(n) |> {vectors}",
            f"xs |> {scalars} |> asVector(n)",
            meaning=f"`{name}` of vectors applies to the elements before.",
        ),
        rule(
            f"asScalar >> {name}",
            f"xs |> asScalar |> {scalars}",
            f"xs |> {vectors} |> asScalar",
            meaning=f"`{name}` of the elements of whole vectors applies to the vectors before.",
        ),
    )


VECTORS_PADDED = _past("padEmpty", "padEmpty(p*n)", "padEmpty(p)")
VECTORS_TAKEN = _past("take", "take(p*n)", "take(p)")
VECTORS_DROPPED = _past("drop", "drop(p*n)", "drop(p)")
AS_VECTOR_SPLIT = rule(
    "asVector >> S",
    "xs |> asVector(n) |> split(k)",
    "xs |> split(k*n) |> map(fun(b => b |> asVector(n)))",
    meaning="Groups of vectors are the vectors of larger parts.",
)
SPLIT_AS_VECTOR = rule(
    "S >> *asVector",
    "xs |> split(k*n) |> map(fun(b => b |> asVector(n)))",
    "xs |> asVector(n) |> split(k)",
    meaning="The vectors of every part are the vectors of the array, in groups.",
)
AS_VECTOR_JOIN = rule(
    "J >> asVector",
    "xs |> join |> asVector(n)",
    "xs |> map(fun(r => r |> asVector(n))) |> join",
    meaning="The vectors of joined rows are the vectors of every row, joined.",
)
JOIN_AS_VECTOR = rule(
    "*asVector >> J",
    "xs |> map(fun(r => r |> asVector(n))) |> join",
    "xs |> join |> asVector(n)",
    meaning="The vectors of every row, joined, are the vectors of the joined rows.",
)

# --- arithmetic on several arrays ------------------------------------------------------------------------


@computed(
    "zip >> *f >> asVector",
    "zip(xs)(ys) |> map((x, y) => e) |> asVector(n)"
    " → zip(xs |> asVector(n))(ys |> asVector(n)) |> map((x, y) => e), e in arithmetic of vectors",
    (
        "fun((xs: 6.i32, ys: 6.i32) => zip(xs)(ys) |> map(fun((x, y) => x * y - 2)) |> asVector(3))",
        "fun((xs: 4.f32, ys: 4.f32, zs: 4.f32, c: f32) =>"
        " zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => max(x * c)(y) + neg(z))) |> asVector(2))",
    ),
    "Arithmetic of zipped arrays, n elements at a time.",
)
def BEFORE_ZIP_MAP(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    outer = call(term)
    inner = call(outer[2][0]) if outer and outer[0] == "asVector" and len(outer[2]) == 1 else None
    if outer is None or inner is None or inner[0] != "map" or len(inner[2]) != 2:
        return "expected vectors of a map"
    function, xs = inner[2]
    width, count, _ = outer[1].arguments
    if not isinstance(function, Lambda) or not isinstance(width, Nat) or not isinstance(count, Nat):
        return "expected a map of a function"
    vectors = _vectors(xs, width, count)
    if vectors is None or not isinstance(vectors.type, Array):
        return "expected zipped arrays of numbers"
    x = function.parameter
    p = Identifier(fresh_name(x.name, function.free), vectors.type.element, x.origin)
    body = _lifted(function.body, x, p, width)
    if body is None:
        return "the function is more than arithmetic of one type"
    types = (count, p.type, body.type)
    mapped = instance("map", types, term.origin)
    return simplify(apply(mapped, Lambda(p, body, function.origin), vectors, origin=term.origin))


def _vectors(xs: Expr, width: Nat, count: Nat) -> Expr | None:
    """An array of numbers as vectors; of zipped arrays, each of them."""
    applied = call(xs)
    if applied is not None and applied[0] == "zip" and len(applied[2]) == 2:
        parts = [v for part in applied[2] if (v := _vectors(part, width, count)) is not None]
        if len(parts) < len(applied[2]):
            return None
        elements = (array_type(part).element for part in parts)
        return apply(instance("zip", (count, *elements), xs.origin), *parts)
    if not isinstance(xs.type, Array) or not isinstance(xs.type.element, Scalar):
        return None
    vector = Primitive(primitive("asVector"), (width, count, xs.type.element), xs.origin)
    return apply(vector, xs, origin=xs.origin)


def _lifted(term: Expr, x: Identifier, p: Identifier, width: Nat) -> Expr | None:
    """The term on vectors: p holds vectors where x holds numbers."""
    if not isinstance(term.type, Scalar):
        return None
    if x.name not in term.free:
        return apply(Primitive(primitive("vectorFromScalar"), (width, term.type), term.origin), term)
    place = _projection(term, x, p)
    if place is not None:
        return place
    applied = call(term)
    if applied is None or not _lifts(applied[1]) or applied[1].arguments != (term.type,):
        return None
    operands = [v for operand in applied[2] if (v := _lifted(operand, x, p, width)) is not None]
    if len(operands) < len(applied[2]):
        return None
    return apply(instance(applied[1].declaration, (Vector(width, term.type),), term.origin), *operands)


def _lifts(operation: Primitive) -> bool:
    """Whether an operation takes numbers of one type to such: then it does so with vectors of them."""
    operands, result = arguments(operation.declaration.scheme.type)
    return operation.declaration.elementwise and all(isinstance(t, Variable) for t in (*operands, result))


def _projection(term: Expr, x: Identifier, p: Identifier) -> Expr | None:
    """The part of p that the term is of x."""
    if isinstance(term, Identifier):
        return p if term.name == x.name else None
    match term:
        case Apply(Primitive(declaration, _), whole) if declaration.name in ("fst", "snd"):
            inner = _projection(whole, x, p)
            if inner is None or not isinstance(inner.type, Pair):
                return None
            types = (inner.type.first, inner.type.second)
            return Apply(Primitive(declaration, types, term.origin), inner, term.origin)
        case _:
            return None
