"""A definition as a value of Python: its type, its text, its results, its compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from rise import expr
from rise.embed import errors
from rise.embed.closing import Sizes, close
from rise.embed.errors import TracingError, short_traceback
from rise.embed.evaluation import evaluate
from rise.embed.functions import abstraction, is_tracing, python_function
from rise.embed.places import here
from rise.embed.traced import Traced, lift, reference
from rise.expr import Expr, Reference, children, fresh_name, subterms, with_children
from rise.notebook import code_html, definition_html
from rise.pretty import show_definition, show_type
from rise.syntax import surface as s
from rise.types import Dependent, Type


@dataclass(frozen=True, eq=False)
class Signature:
    """The type of a definition, inferred parameters first, with what it asks of its sizes."""

    definition: expr.Definition

    @property
    def type(self) -> Type:
        type_: Type = self.definition.body.type
        for parameter in reversed(self.definition.parameters):
            type_ = Dependent(parameter.name, parameter.kind, type_, parameter.implicit)
        return type_

    def __str__(self) -> str:
        asked = ", ".join(str(c) for c in self.definition.constraints)
        return show_type(self.type) + (f" where {asked}" if asked else "")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def _repr_html_(self) -> str:
        return code_html(str(self))


class Definition(expr.Definition):
    """A definition that Python can call, compose, print and show in a notebook."""

    @classmethod
    def of(cls, checked: expr.Definition) -> Definition:
        return cls(checked.name, checked.parameters, checked.body, checked.constraints, checked.origin)

    @property
    def type(self) -> Signature:
        """The type as a program writes it, with what it asks of its sizes: `… where 32 | n`."""
        return Signature(self)

    def evaluate(self, *inputs: Any, **sizes: Any) -> Any:
        """The result on NumPy arrays and numbers, tuples for pairs, by the interpreter.

        An input of type `m.n.f32` is an array of shape (m, n) and of dtype float32. Sizes, and the types a
        definition abstracts over, follow from the inputs; those that do not are given by name:
        `f.evaluate(xs, n=4)`.

        Raises EvaluationError where inputs do not fit, UsageError R0405 where a size is missing, TypeMismatch
        where what the definition asks of its sizes does not hold.
        """
        return evaluate(self, inputs, sizes)

    def __call__(self, *inputs: Any, **sizes: Any) -> Any:
        """Within a program written in Python, a part of it; elsewhere as `evaluate`."""
        if is_tracing() or any(isinstance(x, Traced | expr.Definition) or callable(x) for x in inputs):
            return reference(self)(*inputs)
        return self.evaluate(*inputs, **sizes)

    def show(self, width: int = 100) -> str:
        """The text of a program: what it uses, then itself. It parses back to the same definition.

        Of different definitions with one name, as a notebook makes them, the later ones are renamed.
        """
        taken: set[str] = set()
        final: dict[Key, expr.Definition] = {}
        texts: list[str] = []
        for each in (*_used(self), self):
            renamed = replace(each, name=fresh_name(each.name, taken), body=_redirected(each.body, final))
            taken.add(renamed.name)
            final[_key(each)] = renamed
            texts.append(show_definition(renamed, width))
        return "\n\n".join(texts)

    def __repr__(self) -> str:
        return show_definition(self, 88)

    def _repr_html_(self) -> str:
        return definition_html(repr(self), f"{self.name} : {self.type}")

    __array_ufunc__ = None  # NumPy leaves `array | f` to the definition

    def __rshift__(self, second: Any) -> Any:
        """`f >> g` is g after f, checked."""
        return compose(self, second)

    def __rrshift__(self, first: Any) -> Any:
        return compose(first, self)

    def __ror__(self, argument: Any) -> Any:
        """`x | f` is f(x)."""
        return self(argument)


# --- text -------------------------------------------------------------------------------------------


# which definition is meant: one that Python holds shares its body with the one that the checker made
Key = tuple[str, int]


def _key(definition: expr.Definition) -> Key:
    return definition.name, id(definition.body)


def _used(definition: expr.Definition, seen: set[Key] | None = None) -> Iterator[expr.Definition]:
    """What a definition refers to, each once, those that others need first."""
    seen = seen if seen is not None else set()
    for term in subterms(definition.body):
        if isinstance(term, Reference) and _key(term.definition) not in seen:
            seen.add(_key(term.definition))
            yield from _used(term.definition, seen)
            yield term.definition


def _redirected(body: Expr, final: Mapping[Key, expr.Definition]) -> Expr:
    if isinstance(body, Reference):
        return replace(body, definition=final[_key(body.definition)])
    return with_children(body, tuple(_redirected(c, final) for c in children(body)))


# --- making -----------------------------------------------------------------------------------------


Program = Callable[..., Any] | Traced | expr.Definition


@overload
def define(program: Program, /, *, name: str | None = None, sizes: Sizes = ()) -> Definition: ...
@overload
def define(*, name: str | None = None, sizes: Sizes = ()) -> Callable[[Callable[..., Any]], Definition]: ...
def define(
    program: Program | None = None,
    /,
    *,
    name: str | None = None,
    sizes: Sizes = (),
) -> Definition | Callable[[Callable[..., Any]], Definition]:
    """The definition that a Python function, called once with traced parameters, describes.

    Annotations are types, `Array[n, f32]`; where there is none, the type is inferred. Sizes and types
    that occur in it, `n = Nat("n")`, become implicit parameters in the order of their first use; those
    in `sizes` become explicit ones, which callers within programs give: `f(n)(xs)`.

    A decorator, with or without arguments; also for functions without parameters of their own,
    `define(map(f) >> join, name="flat")`. Raises a RiseError that points into the Python text.
    """
    if program is None:
        return lambda function: _define(function, name, sizes)
    return _define(program, name, sizes)


def _define(program: Any, name: str | None, sizes: Sizes) -> Definition:
    with short_traceback():
        place = here()
        if isinstance(program, Traced | expr.Definition):
            value, found, span = lift(program, place.operand(0)), "it", place.span
        else:
            if not callable(program):
                lift(program, place.operand(0))
                message = "a number is no program"
                raise TracingError(errors.DEFINED, message, place.span, "`define` takes a Python function")
            python = python_function(program, place.operand(0), constant=True)
            value, found, span = abstraction(python, {}, grouped=False), python.name, python.place.span
        return Definition.of(close(value, name or ("it" if found == "<lambda>" else found), span, sizes))


def compose(first: Any, second: Any) -> Definition | Traced:
    """`f >> g`, checked: a definition of its own, or a part of the program that is being traced."""
    place = here()
    value = lift(first, place.operand(0)) >> lift(second, place.operand(1))
    if is_tracing():
        return value
    with short_traceback():
        return Definition.of(close(value, f"{_name(first)}_then_{_name(second)}", place.span))


def _name(function: Any) -> str:
    """What a function is called: itself, or what it is a partial application of."""
    if isinstance(function, expr.Definition):
        return function.name
    node = function.expression if isinstance(function, Traced) else None
    while isinstance(node, s.Call):
        node = node.function
    return node.name if isinstance(node, s.Name) and node.name.isidentifier() else "function"
