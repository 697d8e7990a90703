"""Requirements on the instances of some rules that their left sides do not express.

A hint names the types of free names, terms for them, or functions that must only change the form of data.
"""

from __future__ import annotations

from collections.abc import Mapping

from rise.expr import Expr, Identifier, Lambda, Literal, Primitive, apply
from rise.nat import constant
from rise.primitives.declare import primitive
from rise.testing.choose import Choose
from rise.testing.samples import Hint
from rise.types import (
    F16,
    F32,
    I32,
    SCALARS,
    TF32,
    Array,
    Function,
    Index,
    Pair,
    Scalar,
    Type,
    array,
)

# of fragments, by the bytes of an operand
SHAPES = {
    1: ((16, 8, 32), (16, 16, 32), (64, 8, 32), (64, 24, 32)),
    2: ((16, 16, 16), (32, 8, 16), (8, 32, 16), (16, 8, 16), (16, 24, 8), (64, 8, 16), (64, 24, 16)),
    4: ((16, 8, 8), (32, 24, 8), (64, 8, 8), (64, 24, 8)),
}
# of operands, and of sums
PRODUCTS = ((F16, F32), (F16, F16), (SCALARS["bf16"], F32), (TF32, F32), (SCALARS["i8"], I32))
ANY = Hint()


def monoid(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """+ with 0, or the maximum with what is below all inputs."""
    type_ = types["z"]
    if not isinstance(type_, Scalar):
        raise TypeError(str(type_))
    name, neutral = choose.pick((("add", 0), ("max", -100)))
    zero = Literal(float(neutral) if type_.is_float else neutral, type_)
    return {"op": Primitive(primitive(name), (type_,)), "z": zero}


REDUCTION = Hint(lambda choose: {"z": choose.pick((I32, F32))}, monoid)


def tiles(*changed: str) -> Hint:
    """Operands of one type and an accumulator of another, in a shape of tensor cores; w converts.

    changed: the names of functions of elements of an operand
    """

    def types(choose: Choose) -> Mapping[str, Type]:
        operand, accumulator = choose.pick(PRODUCTS)
        m, n, k = choose.pick(SHAPES[operand.bytes])
        return {
            "a": array(m, k, operand),
            "b": array(n, k, operand),
            "c": array(m, n, accumulator),
            **dict.fromkeys(changed, Function(operand, operand)),
        }

    def values(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
        match types["w"]:
            case Function(Scalar() as operand, Scalar() as accumulator):
                x = Identifier("x", operand)
                cast = Primitive(primitive("cast"), (operand, accumulator))
                small = {n: _small(choose, operand) for n in changed if accumulator == F16}
                return {"w": Lambda(x, x if operand == accumulator else apply(cast, x)), **small}
            case other:
                raise TypeError(str(other))

    return Hint(types, values)


def _small(choose: Choose, operand: Scalar) -> Expr:
    """A function under which numbers stay small: sums in f16 are exact up to 2048."""
    x = Identifier("x", operand)
    return Lambda(x, apply(Primitive(primitive(choose.pick(("neg", "abs"))), (operand,)), x))


def endofunction(*names: str, arguments: int = 1) -> Hint:
    """Functions from numbers to numbers of the same type."""

    def types(choose: Choose) -> Mapping[str, Type]:
        scalar = choose.pick((F32, F16, I32))
        type_: Type = scalar
        for _ in range(arguments):
            type_ = Function(scalar, type_)
        return dict.fromkeys(names, type_)

    return Hint(types)


def _often_computing(choose: Choose) -> Mapping[str, Type]:
    """Two of three functions are from numbers to those of another type: none of these is a view."""
    return {"f": choose.pick((Function(I32, F32), Function(F32, I32)))} if choose.below(3) else {}


def _injection(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """Different indices for all elements, in some order."""
    type_ = types["is"]
    if not (isinstance(type_, Array) and isinstance(type_.element, Index)):
        raise TypeError(str(type_))
    places = list(range(type_.element.size.value or 0))
    count = type_.size.value or 0
    order = [Literal(places.pop(choose.below(len(places))), type_.element) for _ in range(count)]
    return {"is": apply(Primitive(primitive("makeArray").member(count), (type_.element,)), *order)}


def _places(choose: Choose) -> Mapping[str, Type]:
    """Up to four elements, and as many places or some more."""
    count = 1 + choose.below(4)
    return {"is": array(count, Index(constant(count + choose.below(3))))}


def _operands(choose: Choose) -> Mapping[str, Type]:
    """Numbers of one type are multiplied, and numbers of the same or another one added."""
    operand, total = choose.pick(((F16, F32), (F16, F16), (SCALARS["i8"], I32), (I32, I32)))
    return {"f": Function(Pair(operand, operand), total)}


def _product(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """The product of the members of a pair, in the type of the result, and sums of such."""
    from rise.check.program import check_expression

    match types["f"]:
        case Function(Pair(operand, _), Scalar() as total):
            product = f"fun((p: ({operand}, {operand})) => {total}(fst(p)) * {total}(snd(p)))"
            return {"f": check_expression(product), "op": Primitive(primitive("add"), (total,))}
        case other:
            raise TypeError(str(other))


def _positive(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """A number that is not negative: of a negative one, the left side cancels, and loses digits itself."""
    return {"x": apply(Primitive(primitive("abs"), (F32,)), Identifier("x", F32))}


def _power(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """A power, which is rounded."""
    return {"y": apply(Primitive(primitive("exp"), (F32,)), Identifier("y", F32))}


INJECTION = Hint(_places, _injection)
RESHAPES = Hint(views=frozenset({"f"}))

INTEGERS = Hint(lambda choose: {"z": choose.pick((SCALARS["u8"], SCALARS["i16"], I32))})
HINTS: Mapping[str, Hint] = {
    **dict.fromkeys(
        (
            "first operand minus z", "first operand plus z",
            "second operand minus z", "second operand plus z",
        ),
        INTEGERS,
    ),
    **dict.fromkeys(
        (
            "blockReduce", "reduceTree", "reduceTree, strided", "J >> reduce", "*reduce >> reduce",
            "*(f >> reduce) >> reduce", "reduce of arrays, by elements", "concat >> reduce",
            "reduce, backwards", "reorder >> reduce", "roundUp reduce", "roundUp scan", "scan in blocks",
            "roundUp reduce, of pairs", "product, k in slices", "product, k in slices, A by columns",
            "product, k in slices, B by columns", "product, k in slices, both by columns",
            "separateSumHV", "separateSumVH", "reduce → threads", "reduce → lanes",
            "reduceTree, strided vectors", "reduce, loaded", "reduce, loaded as vectors", "reduce, as a row",
        ),
        REDUCTION,
    ),
    **dict.fromkeys(("*f >> scatter", "zip >> scatter", "scatter >> gather"), INJECTION),
    **dict.fromkeys(("zip(*f, )", "zip(, *f)", "mapViewFusion"), RESHAPES),
    "tensorise": tiles(),
    "tensorise, first operand computed": tiles("g"),
    "map → mapSeq, computing": Hint(_often_computing),
    "roundUp sums": Hint(_operands, _product),
    "prologueSame": endofunction("g", "h"),
    **dict.fromkeys(("1 + tanh(x)", "tanh(x) + 1"), Hint(values=_positive)),
    "x / y → x * reciprocal(y)": Hint(values=_power),
}  # fmt: skip


def hint(name: str) -> Hint:
    """The requirements on instances of the rule."""
    return HINTS.get(name, ANY)
