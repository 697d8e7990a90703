"""Matching a typed pattern against a typed term.

A free identifier of a pattern matches any term of its type in which no variable bound by the pattern
occurs. Applied to variables that the pattern binds, or to projections from them, it matches any term
and is bound to the function that gives the term (Miller's patterns, extended to projections): so
`xs |> map((x, y) => g(y))` says by itself that the first component is not used. Sizes are matched
by solving: `m*n` against 96 with n = 32 gives m = 3; that 32 divides is checked, or recorded where the
size is not known. A function that another place determines may be applied to anything: once `w(q)` has bound
w, `w(g(p))` matches what w computes of a term that g(p) matches.

Most attempts fail, so what is cheap comes first: whether the primitives are in their places, then
whether terms fit, and the equations between types and sizes last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rise.errors import StrategyError
from rise.expr import (
    Apply,
    Constraint,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    children,
    fresh_name,
    renamed,
    spine,
    substitute,
    with_children,
)
from rise.nat import Atom, Nat, NatUnknown, at_least, divides, variable
from rise.primitives.declare import primitive
from rise.solve import division, solve
from rise.types import (
    Argument,
    Array,
    Dependent,
    Fragment,
    Function,
    Index,
    Layout,
    Pair,
    Type,
    Unknown,
    Variable,
    Vector,
    substitute_type,
    unknowns,
)

# rules are tried on the same sizes over and over
solved = lru_cache(maxsize=4096)(solve)


# whether a term may match, given the names of the variables that are bound around it
Test = Callable[[Expr, frozenset[str]], bool]


class Mismatch(Exception):
    """Why a pattern does not match: `part` is the part of the term that does not, `hint` what helps."""

    def __init__(self, reason: str, part: Expr | None = None, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.part = part
        self.hint = hint


@dataclass
class Match:
    """What a pattern's variables stand for: terms, sizes and types, and the names of its binders.

    parameters: the unknown sizes that have a name in the rule
    equations:  arguments of primitives, and types, that have to be equal, each with the part of the term
                that it is about; they are solved when everything else has matched
    pending:    equations between sizes that could not be solved when they were met
    applied:    applications of a variable to more than parameters, each with its term and what is bound there
    matched:    how many parts of the pattern did match: how close a mismatch came
    """

    parameters: Mapping[NatUnknown, str] = field(default_factory=dict)
    terms: dict[str, Expr] = field(default_factory=dict)
    types: dict[Atom | Variable | Unknown, Argument] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    constraints: list[Constraint] = field(default_factory=list)
    equations: list[tuple[Argument | Type, Argument | Type, Expr]] = field(default_factory=list)
    pending: list[tuple[Nat, Nat]] = field(default_factory=list)
    applied: list[tuple[Apply, Expr, dict[str, Identifier]]] = field(default_factory=list)
    matched: int = 0
    part: Expr | None = None

    def against(self, pattern: Expr, term: Expr) -> None:
        """Matches the whole pattern. Raises Mismatch."""
        self.heads(pattern, term)
        self.term(pattern, term, {})
        for application, part, bound in self.applied:
            self.application(application, part, bound)
        self.equations.append((pattern.type, term.type, term))
        met: set[tuple[Argument | Type, Argument | Type]] = set()  # most types of a term occur often
        for wanted, actual, part in self.equations:
            self.part = part
            if (wanted, actual) not in met:
                self.argument(wanted, actual)
                met.add((wanted, actual))
            self.matched += 1
        self.finish()

    def size_of(self, parameter: str) -> Nat:
        """The size that a parameter of the rule stands for, as side conditions ask for it.

        StrategyError R0603 where no size of that name has been matched.
        """
        for unknown, name in self.parameters.items():
            value = self.types.get(unknown)
            if name == parameter and isinstance(value, Nat):
                return value
        named = ", ".join(f"`{name}`" for name in self.parameters.values()) or "none"
        raise StrategyError("R0603", f"no parameter `{parameter}` was matched", hint=f"parameters: {named}")

    # --- primitives ---------------------------------------------------------------------------------

    def heads(self, pattern: Expr, term: Expr) -> None:
        """Every primitive that the pattern applies is applied in its place."""
        if isinstance(pattern, Apply):
            if pattern.head is None:
                return
            if not (isinstance(term, Apply) and term.head == pattern.head):
                raise Mismatch(f"expected {describe(pattern)}, found {describe(term)}", term)
            self.matched += 1
            self.heads(pattern.argument, term.argument)
            self.heads(pattern.function, term.function)
        elif isinstance(pattern, Lambda) and isinstance(term, Lambda):
            self.heads(pattern.body, term.body)

    # --- sizes and types ----------------------------------------------------------------------------

    def size(self, pattern: Nat, actual: Nat) -> None:
        wanted = pattern.substitute(self.types)  # type: ignore[arg-type, type-var]  # unknown sizes stand for sizes
        if not wanted.unknowns:
            if wanted != actual:
                raise Mismatch(f"the size {actual} is not {wanted}", self.part)
            return
        solution = solved(wanted, actual)
        if solution is None or solution[1].unknowns:  # other sizes are still to be met
            self.pending.append((pattern, actual))
            return
        unknown, value = solution
        if not value.is_whole:
            above, below = division(wanted, actual, unknown)
            if above.value is not None and below.value is not None:
                reason = f"{below} does not divide {above}"
                raise Mismatch(reason, self.part, self._instead_of(pattern, below.value, above.value))
            self.constraints.append(Constraint(above, below))
        elif not at_least(value, 0):
            if value.value is not None:
                raise Mismatch(f"a size would be negative: {value}", self.part)
            self.constraints.append(Constraint(value))
        self.types[unknown] = value

    def finish(self) -> None:
        """Decides the sizes that could not be decided when they were met."""
        for _ in range(len(self.pending) + 1):
            pending, self.pending = self.pending, []
            for pattern, actual in pending:
                self.size(pattern, actual)
            if len(self.pending) == len(pending):
                break
        if self.pending:
            raise self._undetermined(*self.pending[0])

    def _undetermined(self, pattern: Nat, actual: Nat) -> Mismatch:
        """An equation between sizes that has several solutions."""
        missing = pattern.unknowns & (self.parameters.keys() - self.types.keys())
        free = sorted(self.parameters[unknown] for unknown in missing)
        if not free:
            return Mismatch(f"the size {actual} does not determine {pattern}", self.part)
        hint = f"give the rule a value: `with_sizes({free[0]}=…)`"
        return Mismatch(f"the size {actual} does not determine `{free[0]}`", self.part, hint)

    def _instead_of(self, pattern: Nat, divisor: int, number: int) -> str | None:
        """What could be done where one number does not divide another: other values, or padding."""
        if divisor < 1 or not 0 < number <= 1 << 16:
            return None
        names = [
            self.parameters[u] for u in pattern.unknowns if u in self.parameters and self._is(u, divisor)
        ]
        sizes = [n for n in range(1, number + 1) if number % n == 0]
        near = ", ".join(map(str, sorted(sorted(sizes, key=lambda n: abs(n - divisor))[:4])))
        which = f"{names[0]} = {near}" if names else near
        padded = -(-number // divisor) * divisor
        return f"take {which} in place of {divisor}, or pad the array from {number} to {padded}"

    def _is(self, unknown: NatUnknown, number: int) -> bool:
        value = self.types.get(unknown)
        return isinstance(value, Nat) and value.value == number

    def type(self, pattern: Type, actual: Type) -> None:
        match pattern, actual:
            case Unknown(), _:
                self._type_variable(pattern, actual)
            case (Array(m, s), Array(n, t)) | (Vector(m, s), Vector(n, t)):
                self.size(m, n)
                self.type(s, t)
            case Index(m), Index(n):
                self.size(m, n)
            case Pair(s, t), Pair(u, v):
                self.type(s, u)
                self.type(t, v)
            case Function(s, t), Function(u, v):
                self.type(s, u)
                self.type(t, v)
            case Fragment(), Fragment():
                self.size(pattern.rows, actual.rows)
                self.size(pattern.columns, actual.columns)
                self.size(pattern.other, actual.other)
                self.type(pattern.element, actual.element)
                self.argument(pattern.kind, actual.kind)
            case _:
                if pattern != actual:
                    raise Mismatch(f"the type `{actual}` is not `{self._named(pattern)}`", self.part)

    def _named(self, pattern: Type) -> Type:
        """A type of the pattern with names for what any term may have: `m.n.t`."""
        names: dict[Atom | Variable | Unknown, Argument] = {}
        sizes, types = iter("mnkpqrsuvw" * 9), iter("tsabcdefgh" * 9)
        for unknown in sorted(unknowns(pattern), key=lambda u: u.identity):
            if isinstance(unknown, NatUnknown):
                names[unknown] = variable(self.parameters.get(unknown) or next(sizes))
            else:
                names[unknown] = Variable(next(types))
        return substitute_type(pattern, names)

    def _type_variable(self, pattern: Unknown, actual: Argument | Type) -> None:
        if isinstance(actual, Function | Dependent):
            raise Mismatch(f"`{actual}` is the type of a function, not of data", self.part)
        if self.types.setdefault(pattern, actual) != actual:
            raise Mismatch(f"the type `{actual}` is not `{self.types[pattern]}`", self.part)

    def argument(self, pattern: Argument | Type, actual: Argument | Type) -> None:
        if isinstance(pattern, Nat) and isinstance(actual, Nat):
            self.size(pattern, actual)
        elif isinstance(pattern, Unknown):
            self._type_variable(pattern, actual)
        elif isinstance(pattern, Layout) and isinstance(actual, Layout) and pattern.name == actual.name:
            if pattern.amount is not None and actual.amount is not None:
                self.size(pattern.amount, actual.amount)
        elif isinstance(pattern, Array | Pair | Index | Vector | Fragment | Function):
            self.type(pattern, actual)  # type: ignore[arg-type]
        elif pattern != actual:
            raise Mismatch(f"`{actual}` is not `{pattern}`", self.part)

    # --- terms --------------------------------------------------------------------------------------

    def term(self, pattern: Expr, term: Expr, bound: dict[str, Identifier]) -> None:
        """Binds the variables of the pattern and notes the equations."""
        if self._is_variable(pattern, bound):
            self._bind(pattern, (), term, bound)
            return
        if isinstance(pattern, Apply) and pattern.head is None:
            head, applications = spine(pattern)
            if self._is_variable(head, bound):
                if self._is_parameters(applications, bound):
                    self._bind(head, tuple(a.argument for a in applications), term, bound)
                else:
                    self.applied.append((pattern, term, bound))
                return
        self._node(pattern, term, bound)

    def application(self, pattern: Apply, term: Expr, bound: dict[str, Identifier]) -> None:
        """`w(e)` for a function w that has been matched elsewhere: what it computes of e."""
        head = pattern.function
        function = self.terms.get(head.name) if isinstance(head, Identifier) else None
        if not isinstance(function, Lambda) or function.free:
            raise Mismatch("the function is not determined, or uses what is bound around it", term)
        self.term(substitute(function.body, {function.parameter.name: pattern.argument}), term, bound)

    def _node(self, pattern: Expr, term: Expr, bound: dict[str, Identifier]) -> None:
        match pattern, term:
            case Identifier(name), Identifier(other) if bound[name].name == other:
                pass
            case Lambda(parameter, body), _:
                function = term if isinstance(term, Lambda) else _expand(term)
                function = renamed(function, {i.name for i in bound.values()})
                self.equations.append((parameter.type, function.parameter.type, term))
                self.names.setdefault(parameter.name, function.parameter.name)
                self.term(body, function.body, {**bound, parameter.name: function.parameter})
            case Apply(function, argument), Apply(other_function, other_argument):
                self.term(function, other_function, bound)
                self.term(argument, other_argument, bound)
            case Primitive(declaration, given), Primitive(other_declaration, actual):
                if declaration is not other_declaration:
                    reason = f"expected `{declaration.written}`, found `{other_declaration.written}`"
                    raise Mismatch(reason, term)
                self.equations += [(w, a, term) for w, a in zip(given, actual, strict=True)]
            case Literal(value, type_), Literal(other_value, other_type) if value == other_value:
                self.equations.append((type_, other_type, term))
            case _:
                raise Mismatch(f"expected {describe(pattern)}, found {describe(term)}", term)
        self.matched += 1

    def _is_variable(self, pattern: Expr, bound: dict[str, Identifier]) -> bool:
        return isinstance(pattern, Identifier) and pattern.name not in bound

    def _is_parameters(self, applications: list[Apply], bound: dict[str, Identifier]) -> bool:
        return all(projected(a.argument, bound) is not None for a in applications)

    def _bind(
        self, variable: Expr, parameters: tuple[Expr, ...], term: Expr, bound: dict[str, Identifier]
    ) -> None:
        if not isinstance(variable, Identifier):
            raise Mismatch("not a variable", term)
        value = abstract(term, parameters, bound)
        escaping = value.free & {i.name for i in bound.values()}
        if escaping:
            names = ", ".join(f"`{n}`" for n in sorted(escaping))
            hint = f"the rule is for terms in which `{variable.name}` is the same for every {names}"
            raise Mismatch(f"`{variable.name}` must not use {names}", term, hint)
        known = self.terms.setdefault(variable.name, value)
        if known is not value and not alpha_equal(known, value):
            raise Mismatch(f"`{variable.name}` would be two different terms", term)
        self.equations.append((variable.type, value.type, term))
        self.matched += 1


def form(pattern: Expr, bound: frozenset[str] = frozenset()) -> Test | None:
    """A quick test that every term passes which the pattern matches; None where no term can be told apart.

    The test is given the names that stand for the variables bound by the pattern.
    """
    match pattern:
        case Identifier(name) if name in bound:
            return lambda term, _: isinstance(term, Identifier)
        case Identifier():
            return (lambda term, names: names.isdisjoint(term.free)) if bound else None
        case Literal(value):
            return lambda term, _: isinstance(term, Literal) and term.value == value
        case Primitive(declaration):
            return lambda term, _: isinstance(term, Primitive) and term.declaration is declaration
        case Lambda(parameter, body):
            return _form_of_function(form(body, bound | {parameter.name}))
        case Apply() if pattern.head is not None:
            return _form_of_call(pattern.head, [form(a.argument, bound) for a in spine(pattern)[1]])
        case _:
            return None


def _form_of_function(body: Test | None) -> Test | None:
    if body is None:
        return None
    return lambda term, names: not isinstance(term, Lambda) or body(term.body, names | {term.parameter.name})


def _form_of_call(head: tuple[str, int], arguments: list[Test | None]) -> Test:
    tests = arguments[::-1]

    def test(term: Expr, names: frozenset[str]) -> bool:
        if not (isinstance(term, Apply) and term.head == head):
            return False
        for on_argument in tests:
            if not isinstance(term, Apply) or (on_argument and not on_argument(term.argument, names)):
                return False
            term = term.function
        return True

    return test


def _expand(term: Expr) -> Lambda:
    """η-expansion: f as (x => f(x))."""
    type_ = term.type
    if not isinstance(type_, Function):
        raise Mismatch(f"expected a function, found {describe(term)}")
    parameter = Identifier(fresh_name("x", term.free), type_.parameter, term.origin)
    return Lambda(parameter, Apply(term, parameter, term.origin), term.origin)


def projected(term: Expr, bound: dict[str, Identifier]) -> Expr | None:
    """The counterpart in the matched program of a bound variable of the pattern or a projection of one."""
    if isinstance(term, Identifier):
        return bound.get(term.name)
    if (
        isinstance(term, Apply)
        and isinstance(term.function, Primitive)
        and term.function.name in ("fst", "snd")
    ):
        whole = projected(term.argument, bound)
        return None if whole is None else project(term.function.name, whole)
    return None


def project(name: str, whole: Expr) -> Expr:
    """fst(whole) or snd(whole)."""
    type_ = whole.type
    if not isinstance(type_, Pair):
        raise Mismatch(f"`{type_}` is not a pair")
    return Apply(Primitive(primitive(name), (type_.first, type_.second), whole.origin), whole, whole.origin)


def abstract(term: Expr, parameters: tuple[Expr, ...], bound: dict[str, Identifier]) -> Expr:
    """(p1 => … => term with each parameter replaced): the function that gives the term."""
    names: list[Identifier] = []
    actuals = [_actual(parameter, bound) for parameter in parameters]
    # one after the other is replaced, so a new name must be none that is still to be replaced
    taken = set(term.free).union(*(actual.free for actual in actuals))
    body = term
    for actual in actuals:
        name = fresh_name(_name_of(actual), taken)
        taken.add(name)
        names.append(Identifier(name, actual.type, actual.origin))
        body = replace_term(body, actual, names[-1])
    for name_ in reversed(names):
        body = Lambda(name_, body, term.origin)
    return body


def _actual(parameter: Expr, bound: dict[str, Identifier]) -> Expr:
    actual = projected(parameter, bound)
    if actual is None:
        raise Mismatch("not a parameter")
    return actual


def _name_of(term: Expr) -> str:
    while isinstance(term, Apply):
        term = term.argument
    return term.name if isinstance(term, Identifier) else "x"


def replace_term(term: Expr, old: Expr, new: Identifier) -> Expr:
    """Replaces old wherever it occurs and none of its variables is bound around it."""
    if isinstance(old, Identifier):
        return substitute(term, {old.name: new})
    if not old.free <= term.free:
        return term
    if alpha_equal(term, old):
        return new
    if isinstance(term, Lambda):
        if term.parameter.name in old.free:
            return term
        term = renamed(term, {new.name})
    return with_children(term, tuple(replace_term(c, old, new) for c in children(term)))


def describe(term: Expr) -> str:
    """A term in a message: the primitive it applies, or its form."""
    head, applications = spine(term)
    match head:
        case Primitive():
            return f"`{head.name}`"
        case Lambda():
            return "an applied function" if applications else "a function"
        case Literal(value, _):
            return f"the literal {value}"
        case Identifier(name):
            return f"`{name}`"
        case _:
            return "another term"


def certain(constraint: Constraint) -> bool:
    """Whether a constraint holds whatever the sizes are."""
    value, divisor = constraint.value, constraint.divisor
    if divisor is not None:
        return divides(divisor, value)  # type: ignore[arg-type]
    return at_least(value, 0)  # type: ignore[arg-type]
