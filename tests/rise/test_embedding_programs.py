"""Random programs, written in Python by a few lines and traced, are the terms that they were."""

from __future__ import annotations

from collections import Counter
from math import inf, nan

from hypothesis import given

import rise
from rise.embed.operators import BINARY
from rise.expr import (
    Apply,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    spine,
)
from rise.nat import Nat
from rise.pretty import show
from rise.testing import programs
from rise.types import (
    Argument,
    Array,
    Fragment,
    Function,
    Index,
    Layout,
    NatFunction,
    Pair,
    Scalar,
    Type,
    Vector,
)
from tests.rise.python_cells import cell

INFIX = {primitive.replace("truediv", "div"): sign for primitive, sign in BINARY.items() if sign != "^"}
fired: Counter[str] = Counter()


def python(expr: Expr) -> str:
    """The term as a Python expression over `rise.ops`, here `o`; each primitive states its type."""
    fired[type(expr).__name__] += 1
    match expr:
        case Identifier(name):
            return name
        case Literal(value, type_):
            return str(value) if isinstance(value, bool) else f"o.typed({value!r}, {written(type_)})"
        case Lambda(parameter, body):
            return (
                f"o.fun(lambda {parameter.name}: {python(body)}, {parameter.name}={written(parameter.type)})"
            )
        case DependentLambda(name, kind, body):
            return f"o.depFun(lambda {name}: {python(body)}, {name}=o.{kind.value})"
        case DependentApply(function, argument):
            return f"{python(function)}({given_(argument)})"
        case Apply():
            return application(expr)
        case Primitive(declaration, arguments):
            parameters = zip(declaration.scheme.parameters, arguments, strict=True)
            explicit = [*map(repr, declaration.given), *(given_(a) for p, a in parameters if not p.implicit)]
            name = f"o.{declaration.name}{'_' if declaration.name in ('and', 'or', 'not') else ''}"
            called = f"{name}({', '.join(explicit)})" if explicit else name
            return f"o.typed({called}, {written(expr.type)})"
    raise AssertionError(expr)


def application(expr: Expr) -> str:
    """Operators as Python writes them, calls with all arguments at once, or piped."""
    head, applications = spine(expr)
    arguments = [a.argument for a in applications]
    if isinstance(head, Primitive) and len(arguments) == 2 and head.name in INFIX:
        fired["operator"] += 1
        left = python(arguments[0])
        if left in ("True", "False"):  # of two booleans Python computes the result itself
            left = f"o.typed({left}, o.bool)"
        return f"({left} {INFIX[head.name].replace('&&', '&')} {python(arguments[1])})"
    if isinstance(head, Primitive) and len(arguments) == 1 and head.name in ("fst", "snd"):
        fired["projection"] += 1
        return f"{python(arguments[0])}.{head.name}"
    if len(arguments) == 1:
        fired["pipe"] += 1
        return f"({python(arguments[0])} | {python(head)})"
    return f"{python(head)}({', '.join(python(a) for a in arguments)})"


def written(type_: Type) -> str:
    match type_:
        case Scalar(name):
            return f"o.{name}"
        case Array(size, element):
            return f"o.Array[{number(size)}, {written(element)}]"
        case Vector(size, element):
            return f"o.Vec[{number(size)}, {written(element)}]"
        case Index(size):
            return f"o.Idx[{number(size)}]"
        case Pair(first, second):
            return f"o.Pair[{written(first)}, {written(second)}]"
        case Function(parameter, result):
            return f"o.Function[{written(parameter)}, {written(result)}]"
        case Fragment(rows, columns, other, element, kind):
            sizes = ", ".join(map(number, (rows, columns, other)))
            return f"o.Fragment[{sizes}, {written(element)}, o.{kind}]"
    raise AssertionError(type_)


def number(size: Nat) -> str:
    return str(size).replace(" / ", " // ").replace("^", "**")


def given_(argument: Argument) -> str:
    match argument:
        case Nat():
            return number(argument)
        case NatFunction(parameter, body):
            return f"o.natFun(lambda {parameter}: {number(body)})"
        case Layout(name, amount):
            return f"o.{name}" if amount is None else f"o.{name}({number(amount)})"
        case Array() | Vector() | Pair() | Index() | Scalar() | Fragment():
            return written(argument)
    return f"o.{argument}"


@given(programs(fuel=5))
def traced_is_the_same(term: Expr) -> None:
    source = f"traced = rise.define({python(term)}, name='traced')"
    namespace: dict[str, object] = {"rise": rise, "o": rise.ops, "inf": inf, "nan": nan}
    exec(compile(source, cell(source), "exec"), namespace)
    found = namespace["traced"]
    assert isinstance(found, rise.Definition)
    assert alpha_equal(found.body, term), f"{source}\n{show(found.body)}\n{show(term)}"


def test_random_programs_in_python_are_the_same_terms() -> None:
    fired.clear()
    traced_is_the_same()
    for construct in ("Lambda", "Literal", "Primitive", "operator", "projection", "pipe"):
        assert fired[construct] >= 10, fired
