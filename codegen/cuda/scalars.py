"""Scalar operations in C++, with the semantics of the language even where C++ leaves behaviour undefined.

Integers wrap, conversions to integers saturate, and literals are rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import isinf, isnan

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element
from rise.errors import TranslationError
from rise.numbers import rounded, wrapped
from rise.types import F32, F64, TF32, Data, Index, Scalar, Vector

TYPES = {
    "bool": "bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long",
    "u8": "unsigned char", "u16": "unsigned short", "u32": "unsigned int", "u64": "unsigned long long",
    "f16": "half", "bf16": "bfloat16", "tf32": "tf32", "f32": "float", "f64": "double",
}  # fmt: skip
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "eq": "==", "ne": "!=", "and": "&&", "or": "||",
}  # fmt: skip
# operations on floats: the name in the C library, without the suffix
FLOATING = {
    **{name: name for name in "exp exp2 log sqrt rsqrt reciprocal tanh floor ceil sin cos pow fma".split()},
    "abs": "fabs", "min": "fmin", "max": "fmax", "mod": "fmod", "round": "rint",
}  # fmt: skip
# functions of floats that GPUs have an instruction for, which the C library would adjust
INSTRUCTIONS = {"exp2": "power_of_two", "reciprocal": "reciprocal"}
# the unsigned type in which integers of a type are computed: C++ promotes narrow types to int, whose overflow
# is undefined
WRAPPING: Mapping[Data, str] = {
    **{Scalar(name): "unsigned int" for name in ("i8", "i16", "i32", "u8", "u16")},
    Scalar("i64"): "unsigned long long",
}
SIGNED = frozenset(map(Scalar, ("i8", "i16", "i32", "i64")))
NARROW_FLOATS = frozenset(map(Scalar, ("f16", "bf16")))
INDICES_IN_MEMORY = 2**31
SUFFIX = {"u32": "u", "i64": "ll", "u64": "ull"}


def base(type_: Data) -> str:
    """The C type of the elements."""
    element = inner_element(type_)
    if isinstance(element, Scalar):
        return TYPES[element.name]
    if isinstance(element, Index):
        if element.size.value is not None and element.size.value > INDICES_IN_MEMORY:
            message = f"values of `{element}` are stored in 32 bits, and must be below 2^31"
            raise TranslationError("R0741", message)
        return "int"
    raise TranslationError("R0715", f"`{element}` cannot be stored in memory")


def operation(expr: i.Operator, operands: list[str]) -> str:
    """An operation on printed operands."""
    match expr.name, operands:
        case "cast", [a]:
            return converted(a, expr.operands[0].type, expr.type)
        case "indexToInt" | "natAsIndex", [a]:
            return f"(int)({a})"
        case "select", [c, a, b]:
            a, b = (_chosen(expr, side, text) for side, text in ((1, a), (2, b)))
            return f"({c} ? {a} : {b})"
        case "shuffleXor", [a, bits]:
            return f"shuffle_xor<{base(expr.type)}>({a}, {bits})"
        case "not", [a]:
            return f"(!{a})"
        case _ if _is_float(expr.type):
            return _of_floats(expr.name, operands, expr.type)
        case _:
            return _of_integers(expr, operands)


def _chosen(expr: i.Operator, side: int, text: str) -> str:
    """One side of a conditional. If the other side has another class, what is read is converted to a number:
    different memories return different reference types, and a tf32 has no implicit conversions."""
    reads = [isinstance(operand, i.Access) for operand in expr.operands]
    differ = expr.type == TF32 or (expr.type in NARROW_FLOATS and reads[3 - side])
    return f"({base(expr.type)})({text})" if reads[side] and differ else text


def _of_floats(name: str, operands: list[str], type_: Data) -> str:
    match name, operands:
        case "neg", [a]:
            return f"(-{f'({a})' if a.startswith('-') else a})"
        case "fma", _ if type_ in NARROW_FLOATS:
            return f"{'__hfma' if type_ == Scalar('f16') else 'fma_bfloat16'}({', '.join(operands)})"
        case _ if name in FLOATING:
            return _through_float(FLOATING[name], operands, type_)
        case _, [a, b] if name in INFIX:
            return f"({a} {INFIX[name]} {b})"
        case _:
            raise TranslationError("R0799", f"internal: no operator `{name}` on {type_}")


def _through_float(name: str, operands: list[str], type_: Data) -> str:
    """A function of the C library; for 16-bit types it computes in float and rounds the result."""
    if type_ in NARROW_FLOATS:
        wide = [converted(o, type_, F32) for o in operands]
        return converted(_of_single(name, wide), F32, type_)
    return f"{name}({', '.join(operands)})" if type_ == F64 else _of_single(name, operands)


def _of_single(name: str, operands: list[str]) -> str:
    """A function of floats: an instruction of the GPU, or a function of the C library."""
    return f"{INSTRUCTIONS.get(name, name + 'f')}({', '.join(operands)})"


def _of_integers(expr: i.Operator, operands: list[str]) -> str:
    """Also comparisons of any type, and operations on truth values."""
    name, type_ = expr.name, expr.type
    match name, operands:
        case "add" | "sub" | "mul" | "neg" | "fma", _ if type_ in WRAPPING:
            unsigned = [f"({WRAPPING[type_]}){operand}" for operand in operands]
            return _wrapped(_whole(name, unsigned), type_)
        case "neg" | "fma", _:
            return f"({_whole(name, operands)})"
        case "abs", [a]:
            return f"magnitude<{base(type_)}>({a})" if type_ in SIGNED else a
        case "pow", [a, b]:
            return f"power_of<{base(type_)}>({a}, {b})"
        case "floor" | "ceil" | "round", [a]:
            return a
        case "min" | "max", [a, b]:
            return f"{name}({a}, {b})"
        case "div" | "mod", [a, b] if type_ in SIGNED and not _divides_plainly(expr.operands[1]):
            return f"{'quotient' if name == 'div' else 'remainder'}_of<{base(type_)}>({a}, {b})"
        case _, [a, b] if name in INFIX:
            return f"({a} {INFIX[name]} {b})"
        case _:
            raise TranslationError("R0799", f"internal: no operator `{name}` on {type_}")


def _wrapped(text: str, type_: Data) -> str:
    """The low bits of an unsigned number."""
    return f"narrowed<short>({text})" if type_ == Scalar("i16") else f"({base(type_)})({text})"


def _whole(name: str, operands: list[str]) -> str:
    """An operation on integers."""
    if name == "neg":
        return f"-{operands[0]}"
    if name == "fma":
        return f"{operands[0]} * {operands[1]} + {operands[2]}"
    return f" {INFIX[name]} ".join(operands)


def _divides_plainly(divisor: i.Expression) -> bool:
    """Whether quotients by the divisor cannot overflow, because it is a constant other than -1 and 0."""
    return isinstance(divisor, i.Number) and divisor.value not in (0, -1)


def _is_float(type_: Data) -> bool:
    return isinstance(type_, Scalar) and type_.is_float


# --- conversions --------------------------------------------------------------------------------------

TO_FLOAT = {"f16": "__half2float", "bf16": "from_bfloat16", "tf32": "from_tf32"}
FROM_FLOAT = {"f16": "__float2half", "bf16": "__float2bfloat16", "tf32": "to_tf32"}
FROM_DOUBLE = {"f16": "__double2half({})", "bf16": "__double2bfloat16({})", "tf32": "to_tf32((float)({}))"}
# integers that a float may have to round, so that bf16 would round twice
FINER_THAN_FLOAT = ("i32", "u32", "i64", "u64")


def converted(text: str, source: Data, target: Data) -> str:
    """A conversion: to floats, rounded once to nearest; to integers, truncated and saturating."""
    if source == target or not (isinstance(source, Scalar | Index) and isinstance(target, Scalar)):
        return text
    if isinstance(source, Index) and target.name == "i32" and not _is_int(text, source):
        return f"(int)({text})"
    name = source.name if isinstance(source, Scalar) else "i32"
    if name in TO_FLOAT:
        text, name = f"{TO_FLOAT[name]}({text})", "f32"
    if target.name in FROM_FLOAT:
        return _to_narrow(text, name, target)
    if name in ("f32", "f64") and not target.is_float and target.name != "bool":
        return f"truncated<{base(target)}>({text})"
    return text if name == target.name else f"({base(target)})({text})"


def _is_int(text: str, index: Index) -> bool:
    """Whether the text of an index is an `int` in any expression: not a sum, and not beyond 31 bits."""
    return " " not in text and index.size.value is not None and index.size.value <= INDICES_IN_MEMORY


def _to_narrow(text: str, name: str, target: Scalar) -> str:
    """To f16, bf16 or tf32, from a float, a double or an integer."""
    if name == "f64":
        return FROM_DOUBLE[target.name].format(text)
    if target.name == "bf16" and name in FINER_THAN_FLOAT:
        text = f"rounded_to_odd(({TYPES[name]})({text}))"
    elif name != "f32":
        text = f"(float)({text})"
    return f"{FROM_FLOAT[target.name]}({text})"


# --- literals -----------------------------------------------------------------------------------------


def literal(value: float | bool, type_: Data) -> str:
    match type_:
        case Vector(_, element):
            return literal(value, element)
        case Scalar("bool"):
            return "true" if value else "false"
        case Scalar("f16" | "bf16" | "tf32" as name):
            return f"{FROM_FLOAT[name]}({_number(rounded(value, type_), F32)})"
        case Scalar("f32" | "f64"):
            return _number(value, type_)
        case Scalar(name):
            number = wrapped(int(value), type_)
            if name in ("i32", "i64") and number == -1 << type_.bits - 1:  # C++ has no such literal
                return f"({number + 1}{SUFFIX.get(name, '')} - 1)"
            return f"{number}{SUFFIX.get(name, '')}"
        case _:
            return str(int(value))


def _number(value: float, type_: Scalar) -> str:
    """The decimal, if C++ reads the same number from it, since it rounds the decimal only once."""
    number, suffix = rounded(value, type_), "" if type_ == F64 else "f"
    if isinf(number) or isnan(number):
        name = "NAN" if isnan(number) else "-INFINITY" if number < 0 else "INFINITY"
        return f"({'(double)' if type_ == F64 else ''}{name})"
    text = repr(float(value)) if abs(value) < 2**1023 else repr(number)
    same = rounded(Fraction(Decimal(text)), type_) == number
    return f"{text if same else repr(number)}{suffix}"
