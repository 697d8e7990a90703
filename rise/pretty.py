"""Prints typed expressions as programs that parse back to them.

Data flows through pipes where that reads well, operators are infix, dependent arguments are printed
where the program has to give them. Binders keep their names, except those that would hide a
primitive which is used below them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isinf, isnan

from rise.document import NOTHING, SPACE, Document, concat, group, indented, join, render
from rise.expr import (
    Apply,
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
    substitute,
    subterms,
)
from rise.nat import Nat
from rise.primitives.declare import Declaration
from rise.types import (
    F32,
    I32,
    Argument,
    Array,
    Dependent,
    Fragment,
    Function,
    Index,
    NatFunction,
    Pair,
    Parameter,
    Scalar,
    Scheme,
    Type,
    Variable,
    Vector,
    arguments,
    is_data,
)

# how tightly a form binds; one that binds less tightly than its place asks for is parenthesised
LOOSEST, PIPE, ANNOTATED, COMPOSE, OR, AND, EQUALITY, COMPARISON = range(8)
SUM, PRODUCT, UNARY, ATOM = range(8, 12)

BINARY = {
    "||": OR, "&&": AND, "==": EQUALITY, "!=": EQUALITY,
    "<": COMPARISON, "<=": COMPARISON, ">": COMPARISON, ">=": COMPARISON,
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT,
}  # fmt: skip
# operators of one operand, by the name of their primitive
PREFIX = {"neg": "-", "not": "!"}
# `a < b < c` is no expression
UNCHAINED = (EQUALITY, COMPARISON)


def show(expr: Expr, width: int = 100, annotate: bool = False) -> str:
    """The expression as text; with `annotate`, the outermost parameters show their types."""
    return render(Printer(_names(expr)).expression(expr, annotate=annotate), width)


def show_definition(definition: Definition, width: int = 100) -> str:
    """`def name = …`, its type written where parsing the text again could not find it."""
    body, start = definition.body, f"def {definition.name}"
    printer = Printer(_names(body))
    if not definition.parameters and isinstance(_below_dependent(body), Lambda):
        hugged = concat(start, " = ", printer.expression(body, annotate=True))
        return render(group(hugged), width)
    annotation = _scheme(definition.scheme)
    text = group(start, ": ", annotation, " =", indented(SPACE, printer.expression(body)))
    return render(text, width)


def _below_dependent(expr: Expr) -> Expr:
    while isinstance(expr, DependentLambda):
        expr = expr.body
    return expr


def _names(expr: Expr) -> frozenset[str]:
    """What is used in an expression without being bound there: no binder may hide these names."""
    names: set[str] = set()
    for term in subterms(expr):
        if isinstance(term, Primitive | Reference):
            names.add(term.name)
        if isinstance(term, Primitive) and term.name == "cast":
            names.add(str(term.arguments[1]))
    return frozenset(names)


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """A dependent argument, among the arguments that an expression is applied to."""

    argument: Argument


@dataclass(frozen=True)
class Printer:
    """`reserved` are the names that no binder may take."""

    reserved: frozenset[str]

    def expression(self, expr: Expr, level: int = LOOSEST, annotate: bool = False) -> Document:
        """The document of an expression, parenthesised if it binds less tightly than `level`."""
        own, document = self._expression(expr, annotate)
        return document if own >= level else concat("(", document, ")")

    def _expression(self, expr: Expr, annotate: bool) -> tuple[int, Document]:
        match expr:
            case Identifier(name):
                return ATOM, name
            case Literal():
                return _literal(expr)
            case Lambda():
                return ATOM, self._function(expr, annotate)
            case DependentLambda():
                return ATOM, self._dependent_function(expr, annotate)
            case _:
                return self._application(expr)

    # --- functions ---

    def _function(self, expr: Lambda, annotate: bool) -> Document:
        """Nested functions of one parameter as one function of several."""
        parameters: list[Identifier] = []
        body: Expr = expr
        while isinstance(body, Lambda):
            parameter, body = self._unhidden(body)
            parameters.append(parameter)
        return _abstraction("fun(", _parameters(parameters, annotate), self.expression(body))

    def _unhidden(self, expr: Lambda) -> tuple[Identifier, Expr]:
        """The parameter and the body, renamed if the parameter would hide a name in use."""
        parameter, body = expr.parameter, expr.body
        if parameter.name not in self.reserved:
            return parameter, body
        name = fresh_name(parameter.name, self.reserved | body.free)
        renamed = replace(parameter, name=name)
        return renamed, substitute(body, {parameter.name: renamed})

    def _dependent_function(self, expr: DependentLambda, annotate: bool) -> Document:
        parameters: list[str] = []
        body: Expr = expr
        while isinstance(body, DependentLambda):
            parameters.append(f"{body.name}: {body.kind.value}")
            body = body.body
        start = concat("(", ", ".join(parameters), ")")
        return _abstraction("depFun(", start, self.expression(body, annotate=annotate))

    # --- applications ---

    def _application(self, expr: Expr) -> tuple[int, Document]:
        head, given = _unfold(expr)
        values = [g for g in given if not isinstance(g, Given)]
        if isinstance(head, Primitive):
            special = self._special(head, values)
            if special is not None:
                return special
        if _flows(head, given):
            return PIPE, self._pipe(expr)
        return ATOM, self._call(head, given)

    def _special(self, head: Primitive, values: list[Expr]) -> tuple[int, Document] | None:
        """Primitives that have a notation of their own."""
        match head.name, values:
            case "let", _:
                return self._let(head, values)
            case "pair", [first, second]:
                return ATOM, self._pair(first, second)
            case "cast", [] | [_]:
                return self._cast(head, values)
            case _, [operand] if head.name in PREFIX:
                return UNARY, self._prefixed(PREFIX[head.name], operand)
            case _, [left, right] if (operator := head.declaration.infix) in BINARY:
                return self._infix(operator, left, right)
        return None

    def _let(self, head: Primitive, values: list[Expr]) -> tuple[int, Document]:
        match values:
            case [value, Lambda() as function]:
                parameter, body = self._unhidden(function)
                bound = concat(f"let {parameter.name} = ", indented(self.expression(value)), " in")
                return LOOSEST, group(bound, SPACE, self.expression(body))
            case _:
                return self._expression(_expanded_let(head, values), annotate=False)

    def _pair(self, first: Expr, second: Expr) -> Document:
        """`(a, b, c)` is `(a, (b, c))`."""
        parts = [first]
        while (rest := _components(second)) is not None:
            parts.append(rest[0])
            second = rest[1]
        documents = [self.expression(part) for part in (*parts, second)]
        return group("(", indented(join(concat(",", SPACE), documents), by=1), ")")

    def _cast(self, head: Primitive, values: list[Expr]) -> tuple[int, Document]:
        """A cast is named after its target; to other than scalars, it shows its type."""
        target = head.arguments[1]
        if not isinstance(target, Scalar):
            shown = head.type if not values else target
            called = concat("cast(", self.expression(values[0]), ")") if values else "cast"
            return ANNOTATED, concat(called, f": {show_type(shown)}")  # type: ignore[arg-type]  # a data type
        if not values:
            return ATOM, target.name
        return ATOM, concat(target.name, "(", self._cast_operand(values[0]), ")")

    def _cast_operand(self, operand: Expr) -> Document:
        """Nothing else says of which type a literal is that is cast."""
        document = self.expression(operand)
        if isinstance(operand, Literal) and not isinstance(operand.value, bool):
            usual = F32 if isinstance(operand.value, float) else I32
            if operand.type != usual:
                return concat(self.expression(operand, ATOM), f": {show_type(operand.type)}")
        return document

    def _prefixed(self, operator: str, operand: Expr) -> Document:
        """`-(1)` is a negation, `-1` a literal."""
        level = LOOSEST if isinstance(operand, Literal) else UNARY
        document = self.expression(operand, level)
        return concat(operator, "(", document, ")") if level == LOOSEST else concat(operator, document)

    def _infix(self, operator: str, left: Expr, right: Expr) -> tuple[int, Document]:
        level = BINARY[operator]
        before = self.expression(left, level + 1 if level in UNCHAINED else level)
        after = self.expression(right, level + 1)
        return level, group(before, f" {operator}", indented(SPACE, after))

    # --- calls and pipes ---

    def _call(self, head: Expr, given: Sequence[Expr | Given]) -> Document:
        """`f(32)(x, y)`: dependent arguments and values in parentheses of their own."""
        explicit = [Given(a) for a in _explicit(head)]
        document = self._head(head)
        for arguments_ in _runs([*explicit, *given]):
            document = concat(document, self._arguments(arguments_))
        return document

    def _head(self, head: Expr) -> Document:
        if isinstance(head, Primitive | Reference):
            return head.name
        return self.expression(head, ATOM)

    def _arguments(self, given: list[Expr | Given]) -> Document:
        """A function written in place stays behind its parenthesis: `map(fun(x =>`."""
        documents = [self._argument(g) for g in given]
        if any(isinstance(g, Lambda | DependentLambda) for g in given):
            return concat("(", join(", ", documents), ")")
        return group("(", indented(NOTHING, join(concat(",", SPACE), documents)), ")")

    def _argument(self, given: Expr | Given) -> Document:
        match given:
            case Given(argument):
                return show_argument(argument)
            case Primitive(declaration) if (operator := declaration.infix) in BINARY:
                return operator
            case _:
                return self.expression(given)

    def _pipe(self, expr: Expr) -> Document:
        """`x |> f |> g`, on one line or a line each."""
        stages: list[Document] = []
        in_place: list[bool] = []
        head, given = _unfold(expr)
        while _flows(head, given):
            stages.insert(0, concat("|> ", self._call(head, given[:-1])))
            in_place.insert(0, any(isinstance(g, Lambda) for g in (head, *given[:-1])))
            expr = given[-1]  # type: ignore[assignment]  # data flows through values only
            head, given = _unfold(expr)
        return _chain(self.expression(expr, ANNOTATED), stages, in_place)


def _chain(start: Document, stages: list[Document], in_place: list[bool]) -> Document:
    """A short chain that ends in a function written in place is broken inside that one only."""
    if in_place[-1] and not any(in_place[:-1]) and len(stages) <= 2:
        return concat(join(" ", [start, *stages]))
    return group(join(SPACE, [start, *stages]))


def _abstraction(start: str, parameters: Document, body: Document) -> Document:
    return group(start, parameters, " =>", indented(SPACE, body), ")")


def _parameters(parameters: list[Identifier], annotate: bool) -> Document:
    if not annotate:
        return ", ".join(p.name for p in parameters)
    annotated = [f"{p.name}: {show_type(p.type)}" for p in parameters]
    return group("(", indented(join(concat(",", SPACE), annotated), by=4), ")")


def _unfold(expr: Expr) -> tuple[Expr, list[Expr | Given]]:
    """What is applied, and to what, dependent arguments among it."""
    given: list[Expr | Given] = []
    while isinstance(expr, Apply | DependentApply):
        argument = expr.argument
        given.append(argument if isinstance(expr, Apply) else Given(argument))  # type: ignore[arg-type]
        expr = expr.function
    given.reverse()
    return expr, given


def _explicit(head: Expr) -> list[Argument]:
    """The dependent arguments that a program has to write."""
    if isinstance(head, Primitive):
        parameters: tuple[Parameter, ...] = head.declaration.scheme.parameters
    elif isinstance(head, Reference):
        parameters = head.definition.parameters
    else:
        return []
    pairs = zip(parameters, head.arguments, strict=True)
    return [argument for parameter, argument in pairs if not parameter.implicit]


def _runs(given: list[Expr | Given]) -> list[list[Expr | Given]]:
    """Neighbours of one sort together."""
    runs: list[list[Expr | Given]] = []
    for item in given:
        if runs and isinstance(runs[-1][-1], Given) == isinstance(item, Given):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _components(expr: Expr) -> tuple[Expr, Expr] | None:
    match expr:
        case Apply(Apply(Primitive(declaration), first), second) if declaration.name == "pair":
            return first, second
        case _:
            return None


def _expanded_let(head: Primitive, values: list[Expr]) -> Expr:
    """`let` is a keyword: where its function is not written in place, it is made so."""
    taken = frozenset[str]().union(*(v.free for v in values))
    bound = [
        Identifier(fresh_name(name, taken), type_)
        for name, type_ in zip("xf", arguments(head.type)[0], strict=True)
    ]
    operands: list[Expr] = [*values, *bound[len(values) :]]
    value, function = operands
    inner = Identifier(fresh_name("y", taken | {b.name for b in bound}), bound[0].type)
    result: Expr = apply(head, value, Lambda(inner, Apply(function, inner)))
    for parameter in reversed(bound[len(values) :]):
        result = Lambda(parameter, result)
    return result


# --- what is piped ------------------------------------------------------------------------------


def _flows(head: Expr, given: Sequence[Expr | Given]) -> bool:
    """Whether the last argument is printed in front: `xs |> map(f)`, `x |> fun(y => …)`."""
    if not given or isinstance(given[-1], Given):
        return False
    if isinstance(head, Lambda):
        return len(given) == 1
    if not isinstance(head, Primitive) or not _takes_flow(head.declaration):
        return False
    complete = len(given) == len(arguments(head.declaration.scheme.type)[0])
    return complete and not isinstance(given[-1], Literal | Lambda | Primitive)


def _takes_flow(declaration: Declaration) -> bool:
    """Of the parameters, only the last is data of some extent; `zip` has two of them, `fst` none.

    A value of any type flows through what only says where it is (`toMem`).
    """
    scheme = declaration.scheme
    parameters, result = arguments(scheme.type)
    if not parameters:
        return False
    *others, last = parameters
    if isinstance(last, Variable):
        return not others and last == result and any(not p.implicit for p in scheme.parameters)
    return _has_extent(last) and not any(_has_extent(other) for other in others)


def _has_extent(type_: Type) -> bool:
    return isinstance(type_, Array | Vector | Fragment)


# --- literals and dependent arguments -----------------------------------------------------------


def _literal(literal: Literal) -> tuple[int, Document]:
    """Numbers of a floating-point type have a point or an exponent, others have none."""
    value, type_ = literal.value, literal.type
    if isinstance(value, bool):
        return ATOM, "true" if value else "false"
    if isinstance(type_, Scalar):
        value = float(value) if type_.is_float else int(value)
    if isinstance(value, float) and isnan(value):
        return SUM, f"{INFINITY} - {INFINITY}"
    digits = INFINITY if isinstance(value, float) and isinf(value) else repr(abs(value))
    negative = str(value).startswith("-")
    return (UNARY, f"-{digits}") if negative else (ATOM, digits)


# no literal is infinite: this one is too large
INFINITY = "1e999"


def show_argument(argument: Argument) -> str:
    """A dependent argument as it is written in an application."""
    match argument:
        case Nat():
            return show_nat(argument)
        case NatFunction(parameter, body):
            return f"natFun({parameter} => {show_nat(body)})"
        case Array(size, element):
            return f"Array[{show_nat(size)}, {show_argument(element)}]"
        case Pair(first, second):
            return f"({show_argument(first)}, {show_argument(second)})"
        case Index() | Vector() | Fragment():
            return show_type(argument)
        case _:
            return str(argument)


# --- types and sizes ----------------------------------------------------------------------------


def show_type(type_: Type) -> str:
    """A type as it is written, `m.n.f32` for arrays."""
    match type_:
        case Array(size, element):
            return f"{_factor(size)}.{show_type(element)}"
        case Pair(first, second):
            return f"({show_type(first)}, {show_type(second)})"
        case Index(size):
            return f"Idx[{show_nat(size)}]"
        case Vector(size, element):
            return f"Vec[{show_nat(size)}, {show_type(element)}]"
        case Fragment(rows, columns, other, element, kind):
            sizes = ", ".join(show_nat(n) for n in (rows, columns, other))
            return f"Fragment[{sizes}, {show_type(element)}, {kind}]"
        case Function(parameter, result):
            left = show_type(parameter)
            return f"{left if is_data(parameter) else f'({left})'} -> {show_type(result)}"
        case Dependent():
            return _dependent_type(type_)
        case _:
            return str(type_)


def _dependent_type(type_: Dependent) -> str:
    """Neighbouring parameters of one sort share their parentheses."""
    parameters: list[Parameter] = []
    rest: Type = type_
    while isinstance(rest, Dependent) and rest.implicit == type_.implicit:
        parameters.append(Parameter(rest.name, rest.kind, rest.implicit))
        rest = rest.result
    return f"{_binders(parameters)}{show_type(rest)}"


def _scheme(scheme: Scheme) -> str:
    return "".join(_binders(run) for run in _sorts(scheme.parameters)) + show_type(scheme.type)


def _sorts(parameters: Iterable[Parameter]) -> list[list[Parameter]]:
    """Neighbouring implicit, and neighbouring explicit, parameters together."""
    runs: list[list[Parameter]] = []
    for parameter in parameters:
        if runs and runs[-1][-1].implicit == parameter.implicit:
            runs[-1].append(parameter)
        else:
            runs.append([parameter])
    return runs


def _binders(parameters: list[Parameter]) -> str:
    inside = ", ".join(f"{p.name}: {p.kind.value}" for p in parameters)
    return f"{{{inside}}} -> " if parameters[0].implicit else f"({inside}) -> "


def show_nat(size: Nat) -> str:
    """A size as it is written: no minus in front, for `0 - i` is hard to read."""
    if not size.terms:
        return "0"
    positive = [term for term in size.terms if term[1] > 0]
    first = positive[0] if positive else None
    text = _term(Nat((first,))) if first else "0"
    for term in size.terms:
        if term is not first:
            sign = "+" if term[1] > 0 else "-"
            text += f" {sign} {_term(Nat((term,)) * (1 if term[1] > 0 else -1))}"
    return text


def _term(size: Nat) -> str:
    """One product; a single operation needs no parentheses of its own."""
    [(monomial, coefficient)] = size.terms
    if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
        return str(monomial[0][0])
    return str(size)


def _factor(size: Nat) -> str:
    text = show_nat(size)
    return text if text.isalnum() or text.isidentifier() else f"({text})"
