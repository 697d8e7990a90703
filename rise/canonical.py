"""Terms as text that the names of bound variables do not change."""

from __future__ import annotations

from rise.expr import (
    Apply,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    Reference,
    substitute_sizes,
)
from rise.nat import variable
from rise.types import Kind, Parameter, Variable

Names = tuple[str, ...]


def canonical(term: Expr, bound: Names = ()) -> str:
    """The term as text, with a variable as how many binders out it is bound; `bound`: innermost first."""
    match term:
        case Identifier(name):
            return f"${bound.index(name)}" if name in bound else f"{name}:{term.type}"
        case Lambda(parameter, body):
            return f"(fun {parameter.type} {canonical(body, (parameter.name, *bound))})"
        case Apply(function, argument):
            return f"({canonical(function, bound)} {canonical(argument, bound)})"
        case DependentLambda(name, kind, body):
            fresh = f"${len(bound)}"
            leaf = variable(fresh) if kind is Kind.NAT else Variable(fresh)
            inside = substitute_sizes(body, {Parameter(name, kind, False).key: leaf})
            return f"(depFun {kind.name} {canonical(inside, (fresh, *bound))})"
        case DependentApply(function, argument):
            return f"({canonical(function, bound)} [{argument}])"
        case Literal(value, type_):
            return f"{value!r}:{type_}"
        case Primitive() | Reference():
            return f"{term.name}[{', '.join(map(str, term.arguments))}]"
