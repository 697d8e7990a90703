"""From the surface to typed expressions: names and kinds resolved, every dependent argument found."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from rise.check import application, dependent_arguments, functions
from rise.check.context import NOWHERE, Context, plainly
from rise.check.difference import shown
from rise.check.inference import Inference
from rise.check.scope import CONSTANTS, INFIX, UNARY, Scope, annotation, bind_kind, to_kind, unknown_value
from rise.errors import ScopeError, TypeMismatch
from rise.expr import Apply, DependentLambda, Expr, Identifier, Lambda, Literal, Primitive, apply
from rise.primitives.declare import lookup
from rise.primitives.declare import primitive as declared
from rise.source import Span
from rise.syntax import surface as s
from rise.syntax.foreign_idioms import element_hint
from rise.syntax.resolve import APPLICATIONS
from rise.types import (
    BOOL,
    SCALARS,
    Dependent,
    Function,
    Kind,
    Pair,
    Parameter,
    Type,
    as_data,
    substitute_type,
)


class Elaborator(Inference):
    """Surface terms become typed ones."""

    # --- names ----------------------------------------------------------------------------------------

    def name(self, node: s.Name, scope: Scope) -> Expr:
        value = scope.values.get(node.name)
        if value is not None:
            return replace(value, origin=node.span)
        if node.name in scope.definitions:
            return dependent_arguments.reference(self, scope.definitions[node.name], (), scope, node.span)[0]
        if lookup(node.name) is not None:
            return dependent_arguments.primitive(self, node.name, (), scope, node.span)[0]
        if node.name in SCALARS:
            cast = dependent_arguments.primitive(self, "cast", (), scope, node.span)[0]
            self.unifier.unify(as_data(cast.arguments[1]), SCALARS[node.name], node.span)
            return cast
        if self.pattern_variables is not None:
            return replace(self._pattern_variable(node, self.pattern_variables), origin=node.span)
        raise unknown_value(node, scope)

    def _pattern_variable(self, node: s.Name, variables: dict[str, Identifier]) -> Identifier:
        if node.name not in variables:
            variables[node.name] = Identifier(node.name, self.unifier.type(), node.span)
        return variables[node.name]

    def _operator(self, name: str, span: Span) -> Expr:
        """What an operator stands for, whatever the name of its primitive means here."""
        return dependent_arguments.primitive(self, name, (), Scope(), span, span)[0]

    # --- checking against an expected type --------------------------------------------------------------

    def check(self, node: s.Surface, expected: Type, scope: Scope, context: Context = NOWHERE) -> Expr:
        self._enter(node)
        match node:
            case s.Function():
                return functions.function(self, node, expected, scope, context)
            case s.Tuple(first, second):
                wanted = self.unifier.shallow(expected)
                if isinstance(wanted, Pair):
                    a = self.check(first, wanted.first, scope, plainly("the first of this pair"))
                    b = self.check(second, wanted.second, scope, plainly("the second of this pair"))
                    return self._pair(a, b, node.span)
            case s.DependentFunction() if isinstance(self.unifier.shallow(expected), Dependent):
                return self._check_dependent(node, expected, scope)
            case s.Let():
                return self._let(node, scope, expected, context)
            case _:
                pass
        found = self.infer(node, scope)
        self.unifier.unify(expected, found.type, node.span, context)
        return found

    def _check_dependent(self, node: s.DependentFunction, expected: Type, scope: Scope) -> Expr:
        names: list[tuple[str, Kind]] = []
        for parameter in node.parameters:
            wanted = self.unifier.shallow(expected)
            kind = to_kind(parameter)
            if not isinstance(wanted, Dependent) or wanted.kind is not kind:
                text = shown(self.unifier.resolve(wanted))
                raise TypeMismatch(
                    "R0301",
                    f"this function takes a {kind.value}, where `{text}` is expected",
                    parameter.span,
                )
            renaming = Parameter(wanted.name, kind, False)
            mine = Parameter(parameter.name, kind, False)
            expected = substitute_type(wanted.result, {renaming.key: mine.leaf})
            names.append((parameter.name, kind))
            scope = bind_kind(parameter, scope)
        with self._inside(node):
            body = self.check(node.body, expected, scope, plainly("the result of this function"))
        for name, kind in reversed(names):
            body = DependentLambda(name, kind, body, node.span)
        return body

    def _enter(self, node: s.Surface) -> None:
        if not isinstance(node, s.DependentFunction | s.Annotated):
            self.outermost = False

    # --- inference ------------------------------------------------------------------------------------

    def infer(self, node: s.Surface, scope: Scope) -> Expr:
        self._enter(node)
        match node:
            case s.Name():
                return self.name(node, scope)
            case s.Number(bool() as value):
                return Literal(value, BOOL, node.span)
            case s.Number(value):
                return Literal(value, self.unifier.literal(value, node.span), node.span)
            case s.Operator(operator):
                return self._operator(INFIX[operator], node.span)
            case s.Binary(operator, left, right):
                function = self._operator(INFIX[operator], node.span)
                return application.apply(self, function, (left, right), scope, node.span)
            case s.Unary(operator, operand):
                function = self._operator(UNARY[operator], node.span)
                return application.apply(self, function, (operand,), scope, node.span)
            case s.Call():
                return application.call(self, node, scope)
            case s.Compose(first, second):
                return self._compose(first, second, scope, node.span)
            case s.Tuple(first, second):
                return self._pair(self.infer(first, scope), self.infer(second, scope), node.span)
            case s.Function():
                return functions.function(self, node, self.unifier.type(), scope)
            case s.DependentFunction():
                return self._infer_dependent(node, scope)
            case s.Let():
                return self._let(node, scope, self.unifier.data(), NOWHERE)
            case s.Annotated(expression, written):
                wanted = annotation(written, scope)
                return self.check(expression, wanted, scope, plainly("what is annotated"))
            case s.NatLambda():
                raise ScopeError("R0203", "a function on sizes is not a value", node.span)
            case s.TypeApplication(name, (index,)) if name not in APPLICATIONS:
                hint = element_hint(name, index.span.text)
                raise ScopeError("R0203", "a type is not a value", node.span, hint)
            case s.TypeApplication():
                raise ScopeError("R0203", "a type is not a value", node.span)
            case s.Text():
                raise ScopeError("R0203", "a text is not a value", node.span)

    def _infer_dependent(self, node: s.DependentFunction, scope: Scope) -> Expr:
        for parameter in node.parameters:
            scope = bind_kind(parameter, scope)
        with self._inside(node):
            result = self.infer(node.body, scope)
        for parameter in reversed(node.parameters):
            result = DependentLambda(parameter.name, to_kind(parameter), result, node.span)
        return result

    def _inside(self, node: s.DependentFunction) -> ExitStack:
        """The sizes of the outermost functions are the definition's; those of others are their own."""
        stack = ExitStack()
        if not self.outermost:
            for parameter in node.parameters:
                numbers = self.unifier.numbers
                stack.enter_context(self.unifier.obligations.inside(parameter.name, numbers, parameter.span))
        return stack

    def _let(self, node: s.Let, scope: Scope, expected: Type, context: Context) -> Expr:
        functions.distinct((node.pattern,))
        bound = self.infer(node.value, scope)
        types = (self.unifier.data(), self.unifier.data())
        self.unifier.unify(
            types[0], bound.type, node.value.span, plainly(f"what `{node.pattern.span.text}` names")
        )
        identifier, inner = functions.pattern(self, node.pattern, bound.type, scope)
        body = self.check(node.body, expected, inner, context)
        self.unifier.unify(types[1], body.type, node.body.span, plainly("the body of `let`"))
        function = Lambda(identifier, body, node.span)
        return apply(Primitive(declared("let"), types, node.span), bound, function, origin=node.span)

    def _pair(self, first: Expr, second: Expr, span: Span) -> Expr:
        types = (self.unifier.data(), self.unifier.data())
        self.unifier.unify(types[0], first.type, first.origin, plainly("the first of a pair"))
        self.unifier.unify(types[1], second.type, second.origin, plainly("the second of a pair"))
        return apply(Primitive(declared("pair"), types, span), first, second, origin=span)

    def _compose(self, first: s.Surface, second: s.Surface, scope: Scope, span: Span) -> Expr:
        f = self.infer(first, scope)
        middle = self.unifier.type()
        parameter = self.unifier.type()
        self.unifier.unify(Function(parameter, middle), f.type, first.span, plainly("the left of `>>`"))
        g = self.check(second, Function(middle, self.unifier.type()), scope, plainly("the right of `>>`"))
        identifier, _ = scope.bind("x", parameter, span)
        return Lambda(identifier, Apply(g, Apply(f, identifier, span), span), span)


__all__ = ["CONSTANTS", "Elaborator", "Scope"]
