"""A fold over scalars as a loop of Python, compiled once: a tenth of a microsecond an operation.

An operation on scalars of NumPy is that on its arrays, rounding included. What is not listed here is
left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive, spine
from rise.interpret.inputs import dtype_of, literal_number
from rise.interpret.lazily import np
from rise.interpret.operations import extreme, wide
from rise.interpret.scalars import conversion, fused, index_within, quotient, remainder
from rise.nat import Nat
from rise.types import Index, Pair, Scalar, Type, arguments

# (size, keep, first accumulators, a column for each part) to (last accumulators, all of them)
Loop = Callable[[int, bool, list[Any], list[Any]], tuple[list[Any], list[list[Any]]]]
Texts = str | tuple["Texts", "Texts"]

NUMERIC = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "neg": "(-{})", "abs": "abs({})",
    # neither is smaller: NaN, and zeros of two signs
    "min": "({0} if {0} < {1} else {1} if {1} < {0} else extreme('fmin', {0}, {1})[()])",
    "max": "({0} if {0} > {1} else {1} if {1} > {0} else extreme('fmax', {0}, {1})[()])",
    "lt": "({} < {})", "le": "({} <= {})",
    "gt": "({} > {})", "ge": "({} >= {})", "eq": "({} == {})", "ne": "({} != {})",
}  # fmt: skip
WHOLE = {
    "div": "quotient({}, {})", "mod": "remainder({}, {})", "fma": "({} * {} + {})",
    "floor": "{}", "ceil": "{}", "round": "{}",
}  # fmt: skip
OF_INDICES = {name: NUMERIC[name] for name in ("lt", "le", "gt", "ge", "eq", "ne")}
ELEMENTARY = ("exp", "log", "sqrt", "tanh", "sin", "cos")
FLOATING = {
    "div": "({} / {})", "mod": "fmod({}, {})", "pow": "power({}, {})",
    "floor": "floor({})", "ceil": "ceil({})", "round": "rint({})", "fma": "{fused}({}, {}, {})",
    # computed in a wider type and rounded once
    **{name: name + "({}.astype({wider})).astype({own})" for name in ELEMENTARY},
    "rsqrt": "(1 / sqrt({}.astype({wider}))).astype({own})",
}  # fmt: skip
# functions of NumPy in these texts
FUNCTIONS = ("fmod", "power", "floor", "ceil", "rint", *ELEMENTARY)
LOGICAL = {"and": "({} and {})", "or": "({} or {})", "not": "({} == false)"}


class Unsupported(Exception):
    """The term has something that no loop over scalars does here."""


def compiled_loop(body: Expr, accumulator: Identifier, parts: Mapping[str, Type]) -> Loop | None:
    """The loop `accumulator = body` over columns of the parts, several for pairs; None if not supported."""
    writer = _Writer()
    try:
        shape = writer.members(accumulator.type)
        shapes = {part: writer.members(type_) for part, type_ in parts.items()}
        result = writer.text(body, {accumulator.name: shape, **shapes})
    except Unsupported:
        return None
    names, values = _flat(shape), _flat(result)
    elements = [name for members in shapes.values() for name in _flat(members)]
    loops = [_source(names, values, writer.lines, elements, keep) for keep in (False, True)]
    exec("\n".join(loops), writer.constants)  # noqa: S102  # written above, from a typed term
    plain, keeping = writer.constants["loop_False"], writer.constants["loop_True"]

    def run(size: int, keep: bool, starts: list[Any], columns: list[Any]) -> Any:
        lists: list[Iterable[Any]] = [list(column) for column in columns]
        return (keeping if keep else plain)(*starts, *(lists or [range(size)]))

    return run


def _source(names: list[str], values: list[str], lines: list[str], parts: Sequence[str], keep: bool) -> str:
    columns = [f"column_{i}" for i in range(max(1, len(parts)))]
    elements = ", ".join(parts) or "_"
    rows = f"zip({', '.join(columns)})" if len(parts) > 1 else columns[0]
    kept = [f"kept_{i}" for i in range(len(names))] if keep else []
    return "\n".join(
        [
            f"def loop_{keep}({', '.join([*names, *columns])}):",
            *(f"    {k} = []; append_{k} = {k}.append" for k in kept),
            f"    for {elements} in {rows}:",
            *(f"        {line}" for line in lines),
            f"        {', '.join(names)} = {', '.join(values)}",
            *(f"        append_{k}({n})" for k, n in zip(kept, names, strict=False)),
            f"    return [{', '.join(names)}], [{', '.join(kept)}]",
            "",
        ]
    )


class _Writer:
    """Writes terms as expressions of Python; what is used more than once gets a name first."""

    def __init__(self) -> None:
        self.numbers = count()
        self.lines: list[str] = []
        functions = {name: getattr(np, name) for name in FUNCTIONS}
        whole = {"quotient": quotient, "remainder": remainder}
        self.constants: dict[str, Any] = {"extreme": extreme, "false": np.False_, **functions, **whole}

    def fresh(self) -> str:
        return f"v{next(self.numbers)}"

    def members(self, type_: Type) -> Texts:
        """Names for the scalars that a value consists of."""
        match type_:
            case Pair(first, second):
                return self.members(first), self.members(second)
            case Scalar() | Index():
                return self.fresh()
            case _:
                raise Unsupported

    def constant(self, value: Any) -> str:
        name = self.fresh()
        self.constants[name] = value
        return name

    def text(self, term: Expr, names: Mapping[str, Texts]) -> Texts:
        match term:
            case Identifier(name) if name in names:
                return names[name]
            case Literal(value, Scalar() as type_):
                return self.constant(literal_number(value, type_))
            case Apply():
                return self._application(term, names)
            case _:
                raise Unsupported

    def _application(self, term: Apply, names: Mapping[str, Texts]) -> Texts:
        head, applications = spine(term)
        operands = [a.argument for a in applications]
        match head, operands:
            case Lambda(parameter, body), [argument]:
                return self.text(body, {**names, parameter.name: self._named(self.text(argument, names))})
            case Primitive(declaration), [value, Lambda(parameter, body)] if declaration.name == "let":
                return self.text(body, {**names, parameter.name: self._named(self.text(value, names))})
            case Primitive(), _:
                return self._call(head, [self.text(o, names) for o in operands])
            case _:
                raise Unsupported

    def _named(self, value: Texts) -> Texts:
        if isinstance(value, tuple):
            return self._named(value[0]), self._named(value[1])
        name = self.fresh()
        self.lines.append(f"{name} = {value}")
        return name

    def _call(self, primitive: Primitive, operands: list[Texts]) -> Texts:
        match primitive.name, operands:
            case "pair", [first, second]:
                return first, second
            case "fst", [(first, _)]:
                return first
            case "snd", [(_, second)]:
                return second
            case "select", [str() as condition, then, otherwise]:
                return _choice(str(self._named(condition)), then, otherwise)
            case "cast", [str() as operand]:
                return self._cast(operand, *primitive.arguments)
            case "indexToInt" | "indexAsNat", [str() as operand]:
                return f"{operand}.astype({self.constant(np.dtype(np.int32))})"
            case "natAsIndex", [str() as operand]:
                return f"{self._within(*primitive.arguments)}({operand})"
            case _:
                return self._operation(primitive, operands)

    def _cast(self, operand: str, source: object, target: object) -> str:
        if not isinstance(source, Scalar) or not isinstance(target, Scalar) or target.name == "tf32":
            raise Unsupported
        return operand if source == target else f"{self.constant(conversion(source, target))}({operand})"

    def _within(self, size: object) -> str:
        if not isinstance(size, Nat) or size.value is None:
            raise Unsupported
        return self.constant(index_within(size.value))

    def _operation(self, primitive: Primitive, operands: list[Texts]) -> str:
        type_ = primitive.arguments[0] if primitive.arguments else None
        templates: dict[str, str] = LOGICAL
        if isinstance(type_, Scalar) and type_.name != "bool":
            templates = NUMERIC | (FLOATING if type_.is_float else WHOLE)
        elif isinstance(type_, Index):
            templates = OF_INDICES
        template = templates.get(primitive.name)
        texts = [operand for operand in operands if isinstance(operand, str)]
        if template is None or len(texts) != len(arguments(primitive.type)[0]):
            raise Unsupported
        if "{0}" in template:
            texts = [str(self._named(text)) for text in texts]
        types: dict[str, str] = {}
        if "{own}" in template and isinstance(type_, Scalar):
            types = {"own": self.constant(dtype_of(type_)), "wider": self.constant(dtype_of(wide(type_)))}
        if "{fused}" in template and isinstance(type_, Scalar):
            if type_.name == "f64":
                raise Unsupported
            types = {"fused": self.constant(fused(type_))}
        return template.format(*texts, **types)


def _choice(condition: str, then: Texts, otherwise: Texts) -> Texts:
    if isinstance(then, tuple) and isinstance(otherwise, tuple):
        return _choice(condition, then[0], otherwise[0]), _choice(condition, then[1], otherwise[1])
    return f"({then} if {condition} else {otherwise})"


def _flat(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else [*_flat(texts[0]), *_flat(texts[1])]
