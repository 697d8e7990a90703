"""Terms of computed rules, written in the notation of the language.

    build("xs |> split(n) |> map(f)", xs=xs, f=f, n=size)

Names stand for terms, and for sizes and types, which are written in place of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from string import Template

from rise.check.elaborate import Elaborator, Scope
from rise.check.program import fill
from rise.expr import Expr, Identifier, children, substitute, with_children
from rise.nat import Nat
from rise.normal import simplify
from rise.source import Source
from rise.syntax import surface
from rise.syntax.parser import parse_expression
from rise.types import Kind


def build(text: str, sizes: Mapping[str, object] | None = None, /, **terms: Expr) -> Expr:
    """The term of a text with `$name` for sizes and types. Raises TypeMismatch where it is ill-typed.

    The text's own binders are renamed where a term has a variable of the same name.
    """
    written = Template(text).substitute({name: str(value) for name, value in (sizes or {}).items()})
    variables = {v for value in (sizes or {}).values() for v in _variables(value)}
    values = {name: Identifier(name, term.type, term.origin) for name, term in terms.items()}
    elaborator = Elaborator()
    scope = Scope(values=values, kinds=dict.fromkeys(variables, Kind.NAT))
    term = elaborator.infer(_parsed(written), scope)
    elaborator.unifier.finish()
    return simplify(substitute(_of_nowhere(fill(term, elaborator.unifier)), terms))


def _of_nowhere(term: Expr) -> Expr:
    """Places in the text of a rule say nothing to those who read a program."""
    below = tuple(map(_of_nowhere, children(term)))
    return replace(with_children(term, below), origin=None)


def _variables(value: object) -> frozenset[str]:
    return value.variables if isinstance(value, Nat) else frozenset()


@lru_cache(maxsize=1 << 8)
def _parsed(text: str) -> surface.Surface:
    return parse_expression(Source("rule", text))
