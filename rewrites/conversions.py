"""Conversions of narrow floats, moved behind what rounds nothing: `max(f32(x), 0)` is `f32(max(x, 0))`.

Tensor cores multiply narrow numbers. An operand that is computed after its conversion is an f32; one that is
computed before stays narrow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewrites.rule import computed
from rewrites.typed import instance
from rise.expr import Apply, Expr, Lambda, Literal, Primitive, apply, call, substitute
from rise.numbers import rounded
from rise.primitives.declare import primitive
from rise.types import F32, TF32, Scalar

NARROW = (Scalar("f16"), Scalar("bf16"))
SIGNS, EXTREMA = ("neg", "abs"), ("max", "min")


@dataclass(frozen=True)
class _Converted:
    """A number and the types that it is converted to, one after the other, the last of which is f32."""

    number: Expr
    types: tuple[Scalar, ...]

    @property
    def type(self) -> Scalar:
        """Of what is computed before the conversions."""
        return self.number.type if isinstance(self.number.type, Scalar) else F32

    @classmethod
    def of(cls, term: Expr) -> _Converted | None:
        """Of an f16 or a bf16, or of an f32 that is rounded to tf32."""
        match call(term):
            case "cast", _, [number] if term.type == F32 and number.type in NARROW:
                return cls(number, (F32,))
            case "cast", _, [inner] if term.type == F32 and inner.type == TF32:
                match call(inner):
                    case "cast", _, [number] if number.type == F32:
                        return cls(number, (TF32, F32))
        return None

    def taken(self, other: Expr | _Converted) -> Expr | None:
        """Another operand before the same conversions; None where it has others, or they round it."""
        narrow = self.types[0] if self.types[0] == TF32 else self.type
        match other:
            case _Converted(number, types):
                return number if (number.type, types) == (self.type, self.types) else None
            case Literal(int() | float() as value, origin=origin):
                return Literal(value, self.type, origin) if rounded(value, narrow) == value else None
            case _:
                return None

    def applied(self) -> Expr:
        """The number, converted."""
        value = self.number
        for type_ in self.types:
            value = apply(instance("cast", (value.type, type_), value.origin), value)
        return value


def _behind(term: Expr) -> _Converted | None:
    """A term as a number that is converted last; None where it may be rounded before."""
    match term:
        case Apply(Lambda(x, body), value) if is_converted(value):
            return _behind(substitute(body, {x.name: value}))
    converted, applied = _Converted.of(term), call(term)
    if converted is not None or applied is None:
        return converted
    name, _, operands = applied
    kept, numbers = (operands[:1], operands[1:]) if name == "select" else ([], operands)
    from_zero = name == "sub" and isinstance(operands[0], Literal) and not operands[0].value
    if not (from_zero or name in ("select", *SIGNS, *EXTREMA)):
        return None
    parts = [_behind(number) or number for number in numbers]
    known = next((part for part in parts if isinstance(part, _Converted)), None)
    taken = [known.taken(part) for part in parts] if known is not None else [None]
    if known is None or None in taken:
        return None
    operation = Primitive(primitive(name), (known.type,), term.origin)
    return replace(known, number=apply(operation, *kept, *(part for part in taken if part is not None)))


def is_converted(term: Expr) -> bool:
    """Whether a term is a number of a narrow type, converted, after what rounds nothing."""
    return _behind(term) is not None


@computed(
    "conversion of factors, last",
    "max(f32(x), c) * y → f32(max(x, c)) * y, where x: f16, bf16 or tf32(z) can be c; the same of min, of"
    " -f32(x), 0 - f32(x) and abs, of select, and of the second factor",
    (
        "fun((x: f16, y: f16) => max(f32(x), 0.5) * f32(y))",
        "fun((x: bf16, y: bf16, z: bf16) => f32(z) * min(f32(x), f32(y)))",
        "fun((x: f32, y: f32) => max(0, f32(tf32(x))) * (0 - f32(tf32(y))))",
        "fun((x: f16, y: f16) => -f32(x) * abs(f32(y)))",
        "fun((x: f16, y: f32) => select(y < 0.25, abs(max(f32(x), -1)), 2) * y)",
        "fun((x: f16, y: f32) => (fun(v => max(v, -v)))(0 - f32(x)) * y)",
    ),
    "What rounds nothing is done before a number is converted, which tensor cores then multiply.",
    head=("mul", 2),
)
def CONVERSION_LAST(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    applied = call(term)
    if applied is None or term.type != F32:
        return "expected a product of f32"
    _, product, factors = applied
    changed = [None if _Converted.of(factor) else _behind(factor) for factor in factors]
    if not any(changed):
        return "no factor is an extremum or a sign of a number that is converted"
    made = [factor if new is None else new.applied() for factor, new in zip(factors, changed, strict=True)]
    return apply(product, *made, origin=term.origin)
