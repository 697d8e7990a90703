"""From the surface to typed expressions: names and kinds resolved, every dependent argument found."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rise.check.unify import Unifier
from rise.errors import ScopeError, TypeMismatch
from rise.expr import (
    Apply,
    Constraint,
    Definition,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    Reference,
    apply,
    fresh_name,
    map_types,
)
from rise.primitives.declare import REGISTRY, lookup
from rise.primitives.declare import primitive as declared
from rise.source import Span
from rise.syntax import surface as s
from rise.syntax.resolve import as_type, resolve_argument, resolve_nat_function, resolve_type
from rise.types import (
    BOOL,
    SCALARS,
    Argument,
    Dependent,
    FragmentKind,
    Function,
    Kind,
    Pair,
    Parameter,
    Space,
    Type,
    Unknown,
    substitute_argument,
    substitute_type,
)

INFIX = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "<": "lt", "<=": "le", ">": "gt",
    ">=": "ge", "==": "eq", "!=": "ne", "&&": "and", "||": "or", "^": "pow",
}  # fmt: skip
UNARY = {"-": "neg", "!": "not"}
CONSTANTS: Mapping[str, Argument] = {c.value: c for c in (*Space, *FragmentKind)}


@dataclass(frozen=True)
class Scope:
    """What names mean at a place: values (an identifier, or a projection from one), definitions, kinds."""

    values: Mapping[str, Expr] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def bind(self, name: str, type_: Type, span: Span) -> tuple[Identifier, Scope]:
        """A new identifier for a name; renamed where the name is in use, so that no binder shadows."""
        used = {free for value in self.values.values() for free in value.free}
        identifier = Identifier(fresh_name(name, used), type_, span)
        return identifier, replace(self, values={**self.values, name: identifier})

    def with_value(self, name: str, value: Expr) -> Scope:
        return replace(self, values={**self.values, name: value})

    def with_kind(self, name: str, kind: Kind) -> Scope:
        return replace(self, kinds={**self.kinds, name: kind})


@dataclass
class Elaborator:
    """One inference. `pattern_variables` collects free names where they are allowed (sides of rules)."""

    unifier: Unifier = field(default_factory=Unifier)
    pattern_variables: dict[str, Identifier] | None = None
    size_variables: dict[str, Kind] | None = None

    # --- names ----------------------------------------------------------------------------------------

    def name(self, node: s.Name, scope: Scope) -> Expr:
        value = scope.values.get(node.name)
        if value is not None:
            return replace(value, origin=node.span)
        if node.name in scope.definitions:
            return self.reference(scope.definitions[node.name], (), scope, node.span)[0]
        declaration = lookup(node.name)
        if declaration is not None:
            return self.primitive(node.name, (), scope, node.span)[0]
        if node.name in SCALARS:
            return self._cast(node.name, node.span)
        if self.pattern_variables is not None:
            return replace(self._pattern_variable(node, self.pattern_variables), origin=node.span)
        raise self.unknown_name(node, scope)

    def _pattern_variable(self, node: s.Name, variables: dict[str, Identifier]) -> Identifier:
        if node.name not in variables:
            variables[node.name] = Identifier(node.name, self.unifier.type(), node.span)
        return variables[node.name]

    def unknown_name(self, node: s.Name, scope: Scope) -> ScopeError:
        if node.name in scope.kinds or node.name in CONSTANTS:
            kind = scope.kinds[node.name].value if node.name in scope.kinds else "constant"
            return ScopeError("R0203", f"`{node.name}` is a {kind}, not a value", node.span)
        known = [*scope.values, *scope.definitions, *REGISTRY]
        close = difflib.get_close_matches(node.name, known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else None
        return ScopeError("R0201", f"unknown name `{node.name}`", node.span, hint)

    def _cast(self, name: str, span: Span) -> Primitive:
        return Primitive(declared("cast"), (self.unifier.data(), SCALARS[name]), span)

    # --- heads with dependent parameters ----------------------------------------------------------------

    def primitive(
        self, name: str, given: tuple[s.Surface, ...], scope: Scope, span: Span
    ) -> tuple[Expr, tuple[s.Surface, ...]]:
        declaration = declared(name)
        chosen, rest = self.dependent_arguments(declaration.scheme.parameters, name, given, scope, span)
        return Primitive(declaration, chosen, span), rest

    def reference(
        self, definition: Definition, given: tuple[s.Surface, ...], scope: Scope, span: Span
    ) -> tuple[Expr, tuple[s.Surface, ...]]:
        parameters = definition.scheme.parameters
        chosen, rest = self.dependent_arguments(parameters, definition.name, given, scope, span)
        solution = {p.key: a for p, a in zip(parameters, chosen, strict=True)}
        for constraint in definition.constraints:
            value = substitute_argument(constraint.value, solution)  # type: ignore[arg-type]
            divisor = constraint.divisor
            if divisor is not None:
                divisor = substitute_argument(divisor, solution)  # type: ignore[arg-type]
            self.unifier.require(Constraint(value, divisor, span))
        return Reference(definition, chosen, span), rest

    def dependent_arguments(
        self,
        parameters: tuple[Parameter, ...],
        name: str,
        given: tuple[s.Surface, ...],
        scope: Scope,
        span: Span,
    ) -> tuple[tuple[Argument, ...], tuple[s.Surface, ...]]:
        """Fresh unknowns for implicit parameters; explicit ones from what is given, or their default."""
        chosen: list[Argument] = []
        rest = list(given)
        for parameter in parameters:
            if parameter.implicit:
                chosen.append(self.unifier.argument(parameter.kind))
            elif rest and (parameter.default is None or self._fits(rest[0], parameter.kind, scope)):
                chosen.append(self.dependent_argument(rest.pop(0), parameter.kind, scope))
            elif parameter.default is not None:
                chosen.append(parameter.default)
            else:
                raise ScopeError(
                    "R0206",
                    f"`{name}` needs its argument `{parameter.name}: {parameter.kind.value}`",
                    span,
                    f"write `{name}(…)` with a {parameter.kind.value}",
                )
        return tuple(chosen), tuple(rest)

    def _fits(self, node: s.Surface, kind: Kind, scope: Scope) -> bool:
        """Whether an argument can be meant for a dependent parameter that has a default."""
        match node:
            case s.Name(name):
                if kind is Kind.SPACE:
                    return isinstance(CONSTANTS.get(name), Space)
                return scope.kinds.get(name) is kind
            case s.Number(value):
                return kind is Kind.NAT and isinstance(value, int) and not isinstance(value, bool)
            case s.Binary(_, left, right):
                return self._fits(left, kind, scope) and self._fits(right, kind, scope)
            case _:
                return False

    def dependent_argument(self, node: s.Surface, kind: Kind, scope: Scope) -> Argument:
        if isinstance(node, s.NatLambda):
            return resolve_nat_function(node, scope.kinds)
        written = as_type(node)
        kinds = dict(scope.kinds)
        if self.size_variables is not None:
            for name in type_names(written):
                if name not in kinds and name not in CONSTANTS and name not in SCALARS:
                    kinds[name] = self.size_variables.setdefault(name, kind)
        return resolve_argument(written, kind, kinds)

    # --- application --------------------------------------------------------------------------------

    def call(self, node: s.Call, scope: Scope) -> Expr:
        head: s.Surface = node.function
        given = node.arguments
        while isinstance(head, s.Call):
            given = head.arguments + given
            head = head.function
        function, given = self.head(head, given, scope)
        return self.apply(function, given, scope, node.span)

    def head(
        self, node: s.Surface, given: tuple[s.Surface, ...], scope: Scope
    ) -> tuple[Expr, tuple[s.Surface, ...]]:
        if isinstance(node, s.Name) and node.name not in scope.values:
            if node.name in scope.definitions:
                return self.reference(scope.definitions[node.name], given, scope, node.span)
            if lookup(node.name) is not None:
                return self.primitive(node.name, given, scope, node.span)
        if isinstance(node, s.Function) and given:
            return self._applied_function(node, given, scope)
        return self.infer(node, scope), given

    def _applied_function(
        self, node: s.Function, given: tuple[s.Surface, ...], scope: Scope
    ) -> tuple[Expr, tuple[s.Surface, ...]]:
        """`x |> fun(y => e)`: the argument first, since its type says what the parameter is."""
        argument = self.infer(given[0], scope)
        function = self.check(node, Function(argument.type, self.unifier.type()), scope)
        return Apply(function, argument, node.span), given[1:]

    def apply(self, function: Expr, given: tuple[s.Surface, ...], scope: Scope, span: Span) -> Expr:
        """Arguments that are functions written in place are checked last: then their parameter is known."""
        type_ = self.unifier.shallow(function.type)
        while given and isinstance(type_, Dependent):
            argument = self.dependent_argument(given[0], type_.kind, scope)
            function = DependentApply(function, argument, span)
            given, type_ = given[1:], self.unifier.shallow(function.type)
        parameters: list[Type] = []
        for node in given:
            type_ = self._function_type(type_, node, span)
            parameters.append(type_.parameter)
            type_ = self.unifier.shallow(type_.result)
        checked: dict[int, Expr] = {}
        for late in (False, True):
            for i, (node, parameter) in enumerate(zip(given, parameters, strict=True)):
                if isinstance(node, s.Function | s.Operator) == late:
                    checked[i] = self.check(node, parameter, scope)
        if given:
            # what was an unknown type is a function's by now: applications read their type off it
            function = map_types(function, self.unifier.resolve, self.unifier.resolve_argument)
        for i in range(len(given)):
            function = Apply(function, checked[i], span)
        return function

    def _function_type(self, type_: Type, node: s.Surface, span: Span) -> Function:
        if isinstance(type_, Function):
            return type_
        if isinstance(type_, Unknown) and type_ not in self.unifier.data_only:
            made = Function(self.unifier.type(), self.unifier.type())
            self.unifier.unify(type_, made, span)
            return made
        shown = self.unifier.resolve(type_)
        raise TypeMismatch("R0304", f"`{shown}` is no function: it takes no argument", node.span)

    # --- checking against an expected type --------------------------------------------------------------

    def check(self, node: s.Surface, expected: Type, scope: Scope) -> Expr:
        match node:
            case s.Function():
                return self.function(node, expected, scope)
            case s.Tuple(first, second):
                wanted = self.unifier.shallow(expected)
                if isinstance(wanted, Pair):
                    a, b = (
                        self.check(first, wanted.first, scope),
                        self.check(second, wanted.second, scope),
                    )
                    return self._pair(a, b, node.span)
            case s.DependentFunction() if isinstance(self.unifier.shallow(expected), Dependent):
                return self._check_dependent(node, expected, scope)
            case _:
                pass
        found = self.infer(node, scope)
        self.unifier.unify(expected, found.type, node.span)
        return found

    def _check_dependent(self, node: s.DependentFunction, expected: Type, scope: Scope) -> Expr:
        names: list[tuple[str, Kind]] = []
        for parameter in node.parameters:
            wanted = self.unifier.shallow(expected)
            kind = to_kind(parameter)
            if not isinstance(wanted, Dependent) or wanted.kind is not kind:
                shown = self.unifier.resolve(wanted)
                raise TypeMismatch(
                    "R0301",
                    f"expected `{shown}`, found a function of a {kind.value}",
                    parameter.span,
                )
            renaming = Parameter(wanted.name, kind, False)
            mine = Parameter(parameter.name, kind, False)
            expected = substitute_type(wanted.result, {renaming.key: mine.leaf})
            names.append((parameter.name, kind))
            scope = self._bind_kind(parameter, scope)
        body = self.check(node.body, expected, scope)
        for name, kind in reversed(names):
            body = DependentLambda(name, kind, body, node.span)
        return body

    def function(self, node: s.Function, expected: Type, scope: Scope) -> Expr:
        """Curried, or taking a pair apart: the expected type decides (`map` wants one argument)."""
        wanted = self.unifier.shallow(expected)
        if isinstance(wanted, Unknown) and wanted not in self.unifier.data_only:
            made = Function(self.unifier.type(), self.unifier.type())
            self.unifier.unify(wanted, made, node.span)
            wanted = made
        patterns = node.parameters
        if node.grouped and len(patterns) > 1 and isinstance(wanted, Function) and self._takes_pair(wanted):
            patterns = (_nest(patterns),)
        return self._curried(patterns, node, wanted, scope)

    def _takes_pair(self, wanted: Function) -> bool:
        result = self.unifier.shallow(wanted.result)
        if isinstance(result, Function):
            return False
        if isinstance(result, Unknown) and result not in self.unifier.data_only:
            return isinstance(self.unifier.shallow(wanted.parameter), Pair)
        return True

    def _curried(self, patterns: tuple[s.Pattern, ...], node: s.Function, wanted: Type, scope: Scope) -> Expr:
        if not patterns:
            return self.check(node.body, wanted, scope)
        wanted = self.unifier.shallow(wanted)
        if isinstance(wanted, Unknown) and wanted not in self.unifier.data_only:
            made = Function(self.unifier.type(), self.unifier.type())
            self.unifier.unify(wanted, made, node.span)
            wanted = made
        if not isinstance(wanted, Function):
            shown = self.unifier.resolve(wanted)
            raise TypeMismatch("R0301", f"expected `{shown}`, found a function", node.span)
        identifier, inner = self.pattern(patterns[0], wanted.parameter, scope)
        return Lambda(identifier, self._curried(patterns[1:], node, wanted.result, inner), node.span)

    def pattern(self, pattern: s.Pattern, type_: Type, scope: Scope) -> tuple[Identifier, Scope]:
        """The identifier that a pattern binds, and the scope in which its names mean parts of it."""
        if isinstance(pattern, s.NamePattern):
            if pattern.annotation is not None:
                self.unifier.unify(resolve_type(pattern.annotation, scope.kinds), type_, pattern.span)
            return scope.bind(pattern.name, type_, pattern.span)
        names = [p.name for p in _names(pattern)]
        whole = "".join(names) if all(len(n) == 1 for n in names) else "_".join(names)
        identifier, inner = scope.bind(whole, type_, pattern.span)
        return identifier, self._project(pattern, identifier, inner)

    def _project(self, pattern: s.Pattern, value: Expr, scope: Scope) -> Scope:
        if isinstance(pattern, s.NamePattern):
            if pattern.annotation is not None:
                self.unifier.unify(resolve_type(pattern.annotation, scope.kinds), value.type, pattern.span)
            return scope.with_value(pattern.name, value)
        first, second = self.unifier.data(), self.unifier.data()
        self.unifier.unify(Pair(first, second), value.type, pattern.span)
        for part, name in ((pattern.first, "fst"), (pattern.second, "snd")):
            projection = Primitive(declared(name), (first, second), pattern.span)
            scope = self._project(part, Apply(projection, value, pattern.span), scope)
        return scope

    def _bind_kind(self, parameter: s.KindedName, scope: Scope) -> Scope:
        if parameter.name in scope.kinds:
            raise ScopeError("R0205", f"`{parameter.name}` is already a parameter here", parameter.span)
        return scope.with_kind(parameter.name, to_kind(parameter))

    # --- inference ------------------------------------------------------------------------------------

    def infer(self, node: s.Surface, scope: Scope) -> Expr:
        match node:
            case s.Name():
                return self.name(node, scope)
            case s.Number(bool() as value):
                return Literal(value, BOOL, node.span)
            case s.Number(value):
                return Literal(value, self.unifier.literal(value, node.span), node.span)
            case s.Operator(operator):
                return self.name(s.Name(INFIX[operator], node.span), Scope())
            case s.Binary(operator, left, right):
                function = self.name(s.Name(INFIX[operator], node.span), Scope())
                return self.apply(function, (left, right), scope, node.span)
            case s.Unary(operator, operand):
                function = self.name(s.Name(UNARY[operator], node.span), Scope())
                return self.apply(function, (operand,), scope, node.span)
            case s.Call():
                return self.call(node, scope)
            case s.Compose(first, second):
                return self._compose(first, second, scope, node.span)
            case s.Tuple(first, second):
                return self._pair(self.infer(first, scope), self.infer(second, scope), node.span)
            case s.Function():
                return self.function(node, self.unifier.type(), scope)
            case s.DependentFunction(parameters, body):
                for parameter in parameters:
                    scope = self._bind_kind(parameter, scope)
                result = self.infer(body, scope)
                for parameter in reversed(parameters):
                    result = DependentLambda(parameter.name, to_kind(parameter), result, node.span)
                return result
            case s.Let(pattern, value, body):
                bound = self.infer(value, scope)
                identifier, inner = self.pattern(pattern, bound.type, scope)
                function = Lambda(identifier, self.infer(body, inner), node.span)
                types = (self.unifier.data(), self.unifier.data())
                self.unifier.unify(types[0], bound.type, value.span)
                self.unifier.unify(types[1], function.body.type, body.span)
                return apply(Primitive(declared("let"), types, node.span), bound, function, origin=node.span)
            case s.Annotated(expression, written):
                return self.check(expression, resolve_type(written, scope.kinds), scope)
            case s.NatLambda():
                raise ScopeError("R0203", "a function on sizes is not a value", node.span)
            case s.TypeApplication():
                raise ScopeError("R0203", "a type is not a value", node.span)
            case s.Text():
                raise ScopeError("R0203", "a text is not a value", node.span)

    def _pair(self, first: Expr, second: Expr, span: Span) -> Expr:
        types = (self.unifier.data(), self.unifier.data())
        self.unifier.unify(types[0], first.type, first.origin)
        self.unifier.unify(types[1], second.type, second.origin)
        return apply(Primitive(declared("pair"), types, span), first, second, origin=span)

    def _compose(self, first: s.Surface, second: s.Surface, scope: Scope, span: Span) -> Expr:
        f = self.infer(first, scope)
        middle = self.unifier.type()
        parameter = self.unifier.type()
        self.unifier.unify(Function(parameter, middle), f.type, first.span)
        g = self.check(second, Function(middle, self.unifier.type()), scope)
        identifier, _ = scope.bind("x", parameter, span)
        return Lambda(identifier, Apply(g, Apply(f, identifier, span), span), span)


def to_kind(parameter: s.KindedName) -> Kind:
    for kind in Kind:
        if kind.value == parameter.kind:
            return kind
    known = ", ".join(k.value for k in Kind)
    raise ScopeError("R0208", f"unknown kind `{parameter.kind}`", parameter.span, f"kinds are {known}")


def _nest(patterns: tuple[s.Pattern, ...]) -> s.Pattern:
    if len(patterns) == 1:
        return patterns[0]
    return s.PairPattern(patterns[0], _nest(patterns[1:]), patterns[0].span)


def _names(pattern: s.Pattern) -> list[s.NamePattern]:
    if isinstance(pattern, s.NamePattern):
        return [pattern]
    return _names(pattern.first) + _names(pattern.second)


def type_names(written: s.SurfaceType) -> list[str]:
    match written:
        case s.TypeName(name):
            return [name]
        case s.TypeOperation(_, left, right):
            return type_names(left) + type_names(right)
        case _:
            return []
