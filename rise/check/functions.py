"""Functions written in place: curried or taking a pair apart, as the expected type says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rise.check.context import NOWHERE, Context, Notes, counted, plainly
from rise.check.difference import shown
from rise.check.inference import Inference
from rise.check.scope import Scope, annotation
from rise.errors import ScopeError, TypeMismatch
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive
from rise.nat import Nat
from rise.primitives.declare import primitive as declared
from rise.source import Note, Span
from rise.syntax import surface as s
from rise.types import Composite, Dependent, Function, Pair, Type, Unknown

UNUSED = "_"  # names any number of values, none of which is of interest


def function(
    e: Inference, node: s.Function, expected: Type, scope: Scope, context: Context = NOWHERE
) -> Expr:
    """Curried, or taking a pair apart: the expected type decides (`map` wants one argument)."""
    distinct(_parameters_of(node))
    wanted = _as_function(e, expected, node)
    patterns, body = node.parameters, node.body
    if len(patterns) > 1 and isinstance(wanted, Function) and _takes_pair(e, wanted):
        patterns = (_nest(patterns),)
    while len(node.parameters) == 1 and isinstance(body, s.Function) and len(body.parameters) == 1:
        patterns, body = (*patterns, *body.parameters), body.body
    return _Curried(e, node, body, expected, context, len(patterns)).rest(patterns, wanted, scope)


def _as_function(e: Inference, wanted: Type, node: s.Function) -> Type:
    """The type wanted; a function's where nothing is known of it."""
    wanted = e.unifier.shallow(wanted)
    if isinstance(wanted, Unknown) and wanted not in e.unifier.data_only:
        made = Function(e.unifier.type(), e.unifier.type())
        e.unifier.unify(wanted, made, node.span)
        return made
    return wanted


def _takes_pair(e: Inference, wanted: Function) -> bool:
    result = e.unifier.shallow(wanted.result)
    if isinstance(result, Function):
        return False
    if isinstance(result, Unknown) and result not in e.unifier.data_only:
        return isinstance(e.unifier.shallow(wanted.parameter), Pair)
    return True


@dataclass(frozen=True)
class _Curried:
    """`x => y => body`, or one list of parameters: one after the other."""

    e: Inference
    node: s.Function
    inside: s.Surface
    expected: Type
    context: Context
    parameters: int

    def rest(self, patterns: tuple[s.Pattern, ...], wanted: Type, scope: Scope) -> Expr:
        if not patterns:
            return self.body(wanted, scope)
        wanted = _as_function(self.e, wanted, self.node)
        if not isinstance(wanted, Function):
            raise self.arity(self.parameters - len(patterns))
        identifier, inner = pattern(self.e, patterns[0], wanted.parameter, scope, self.note)
        return Lambda(identifier, self.rest(patterns[1:], wanted.result, inner), self.node.span)

    def body(self, wanted: Type, scope: Scope) -> Expr:
        result = self.e.unifier.shallow(wanted)
        if isinstance(result, Function) and not isinstance(self.inside, s.Function):
            found = self.e.infer(self.inside, scope)
            if not isinstance(self.e.unifier.shallow(found.type), Function | Unknown):
                raise self.arity(self.parameters + _arity(self.e, result))
            self.e.unifier.unify(wanted, found.type, self.inside.span, self.result)
            return found
        return self.e.check(self.inside, wanted, scope, self.result)

    @property
    def result(self) -> Context:
        return Context(lambda: "the result of this function", self.note)

    def note(self) -> tuple[Note, ...]:
        """What the function is used for, and the type that it has to have."""
        if self.context is NOWHERE:
            return ()
        type_ = shown(self.e.unifier.resolve(self.expected))
        return (Note(f"the function is {self.context.role()}, which has to be `{type_}`", self.node.span),)

    def arity(self, wanted: int) -> TypeMismatch:
        """R0309"""
        found = self.parameters
        if wanted == 0:
            shown_type = shown(self.e.unifier.resolve(self.expected))
            return TypeMismatch(
                "R0301",
                f"{self.context.role()} has to be `{shown_type}`, not a function",
                self.node.span,
                notes=self.context.notes(),
            )
        hint = f"write `{_parameters(wanted)} => …`"
        if wanted == 1 and found > 1:
            hint = f"`({', '.join('xyzuvw'[:found])}) => …` takes a pair apart"
        return TypeMismatch(
            "R0309",
            f"this function has {counted(found, 'parameter')}, where {wanted} "
            f"{'is' if wanted == 1 else 'are'} expected",
            self.node.span,
            hint,
            notes=self.note()[:1],
        )


def _parameters(number: int) -> str:
    names = ", ".join("xyzuvw"[:number])
    return names if number == 1 else f"({names})"


def _arity(e: Inference, type_: Type) -> int:
    number = 0
    while isinstance(type_, Function):
        number, type_ = number + 1, e.unifier.shallow(type_.result)
    return number


# --- patterns ---------------------------------------------------------------------------------------


def pattern(
    e: Inference, node: s.Pattern, type_: Type, scope: Scope, notes: Notes = tuple
) -> tuple[Identifier, Scope]:
    """The identifier that a pattern binds, and the scope in which its names mean parts of it."""
    require_natural(e, type_, node)
    if isinstance(node, s.NamePattern):
        _annotate(e, node, type_, scope)
        return scope.bind(node.name, type_, node.span)
    names = [p.name for p in _names(node)]
    whole = "".join(names) if all(len(n) == 1 for n in names) else "_".join(names)
    identifier, inner = scope.bind(whole, type_, node.span)
    return identifier, _project(e, node, identifier, inner, notes)


def distinct(patterns: Iterable[s.Pattern]) -> None:
    """R0205 if two of the values that are named together have the same name, other than `_`."""
    names: set[str] = set()
    for named in (name for node in patterns for name in _names(node)):
        if named.name in names - {UNUSED}:
            message = f"`{named.name}` already names a value here"
            raise ScopeError("R0205", message, named.span, "give one of them another name")
        names.add(named.name)


def _parameters_of(node: s.Surface) -> Iterator[s.Pattern]:
    """Those of a function, and of the functions that it consists of: `x => y => …` is `(x, y) => …`."""
    while isinstance(node, s.Function | s.DependentFunction):
        if isinstance(node, s.Function):
            yield from node.parameters
        node = node.body


def require_natural(e: Inference, type_: Type, node: s.Pattern) -> None:
    """The sizes of a parameter are natural numbers, however they are written."""
    for size in _sizes(type_):
        e.unifier.obligations.written(size, f"the type of `{_shown(node)}`", node.span)


def _sizes(type_: Type) -> Iterator[Nat]:
    """Every size in a type, but for those below a size that it binds itself."""
    waiting: list[Type] = [type_]
    seen: set[Type] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Composite) and not isinstance(part, Dependent) and part not in seen:
            seen.add(part)
            yield from (size for size in part.parts if isinstance(size, Nat))
            waiting += reversed([inner for inner in part.parts if not isinstance(inner, Nat)])


def _annotate(e: Inference, node: s.NamePattern, type_: Type, scope: Scope) -> None:
    if node.annotation is not None:
        wanted = annotation(node.annotation, scope)
        require_natural(e, wanted, node)
        e.unifier.unify(wanted, type_, node.span, plainly(f"what `{node.name}` stands for"))


def _shown(node: s.Pattern) -> str:
    return node.name if isinstance(node, s.NamePattern) else node.span.text


def _project(e: Inference, node: s.Pattern, value: Expr, scope: Scope, notes: Notes) -> Scope:
    if isinstance(node, s.NamePattern):
        _annotate(e, node, value.type, scope)
        return scope.with_value(node.name, value)
    found = e.unifier.shallow(value.type)
    if not isinstance(found, Pair | Unknown):
        raise TypeMismatch(
            "R0310",
            f"a pair is taken apart here, but what stands for it is `{shown(e.unifier.resolve(found))}`",
            node.span,
            "write one name, `x => …`",
            notes=notes(),
        )
    first, second = e.unifier.data(), e.unifier.data()
    e.unifier.unify(Pair(first, second), value.type, node.span)
    for part, name in ((node.first, "fst"), (node.second, "snd")):
        projection = Primitive(declared(name), (first, second), node.span)
        scope = _project(e, part, Apply(projection, value, node.span), scope, notes)
    return scope


def _nest(patterns: tuple[s.Pattern, ...]) -> s.Pattern:
    if len(patterns) == 1:
        return patterns[0]
    rest = _nest(patterns[1:])
    return s.PairPattern(patterns[0], rest, _covering(patterns[0], rest))


def _covering(first: s.Pattern, last: s.Pattern) -> Span:
    a, b = first.span, last.span
    return Span(a.source, a.line, a.column, b.end_line, b.end_column)


def _names(node: s.Pattern) -> list[s.NamePattern]:
    if isinstance(node, s.NamePattern):
        return [node]
    return _names(node.first) + _names(node.second)
