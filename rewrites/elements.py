"""Elements of arrays as terms: `e[i][j]` with the indices brought inward to the arrays that they select from.

    idx(i)(xs |> map(f)) = f(idx(i)(xs))      idx(i)(generate(f)) = f(i)
    idx(i)(zip(xs)(ys)) = (idx(i)(xs), idx(i)(ys))      idx(i)(idx(j)(xs |> transpose)) = idx(j)(idx(i)(xs))
    idx(i)(xs |> map(f) |> take(n)) = idx(i)(xs |> take(n) |> map(f))

This evaluates a program at an element that is left open. Each value that is computed gets a name, equal
values the same one; so nothing is computed twice, however often a program mentions it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rewrites import typed
from rewrites.algorithmic import is_reduction
from rewrites.match import project
from rewrites.result import Inapplicable
from rewrites.typed import array_type, instance, named
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    application,
    apply,
    call,
    fresh_name,
    map_children,
    substitute,
    subterms,
)
from rise.nat import Nat
from rise.normal import is_view, simplify
from rise.types import F32, I32, Array, Data, Index, Pair, Scalar, Type, as_data

# what has no elements of its own: an array under these is opened, where others are left as they are
EXACT = 1 << 24  # whole numbers below are floats of 32 bits
OPEN = frozenset({"zip", "pair", "generate", "idx", "unzip", "select", "let"})


class NotPointwise(Inapplicable):
    """A part of a program whose elements are not functions of elements of other arrays."""

    def __init__(self, reason: str, part: Expr) -> None:
        super().__init__(reason)
        self.part = part


def names(*terms: Expr) -> set[str]:
    """All names in terms, bound ones too."""
    found: set[str] = set()
    for term in terms:
        for part in subterms(term):
            if isinstance(part, Identifier):
                found.add(part.name)
            elif isinstance(part, Lambda):
                found.add(part.parameter.name)
    return found


def fresh(name: str, type_: Data, taken: set[str]) -> Identifier:
    """A variable by a name that is not taken, and from now on is."""
    found = Identifier(fresh_name(name, taken), type_)
    taken.add(found.name)
    return found


def holds_arrays(type_: Type) -> bool:
    match type_:
        case Array():
            return True
        case Pair(first, second):
            return holds_arrays(first) or holds_arrays(second)
        case _:
            return False


def at(index: Expr, xs: Expr) -> Expr:
    """idx(index)(xs)"""
    known = array_type(xs)
    return apply(instance("idx", (known.size, known.element), xs.origin), index, xs, origin=xs.origin)


def pair(first: Expr, second: Expr) -> Expr:
    return apply(instance("pair", (as_data(first.type), as_data(second.type)), first.origin), first, second)


def mapped(function: Lambda, xs: Expr) -> Expr:
    """xs |> map(function), in the place of the array"""
    return typed.mapped(function, xs, xs.origin)


def zipped(xs: Expr, ys: Expr) -> Expr:
    known = array_type(xs)
    return apply(instance("zip", (known.size, known.element, array_type(ys).element), xs.origin), xs, ys)


def all_zipped(arrays: Sequence[Expr]) -> Expr:
    """zip(xs)(zip(ys)(zs)) of xs, ys, zs"""
    *front, last = arrays
    for xs in reversed(front):
        last = zipped(xs, last)
    return last


def generated(index: Identifier, body: Expr) -> Expr:
    """generate(index => body)"""
    size = index.type.size if isinstance(index.type, Index) else None
    return apply(instance("generate", (size, body.type), body.origin), Lambda(index, body, body.origin))


def number(index: Expr) -> Expr:
    """indexToInt(index)"""
    size = index.type.size if isinstance(index.type, Index) else None
    return apply(instance("indexToInt", (size,), index.origin), index)


def are_numbers(xs: Expr) -> bool:
    """generate(i => indexToInt(i))"""
    match call(xs):
        case "generate", _, [Lambda(index, body)]:
            return body == number(index)
        case _:
            return False


def transposed(xs: Expr) -> Expr:
    """xs |> transpose, and what was transposed where xs is a transposition."""
    applied = call(xs)
    if applied is not None and applied[0] == "transpose":
        return applied[2][0]
    rows = array_type(xs)
    inner = rows.element
    size, element = (inner.size, inner.element) if isinstance(inner, Array) else (None, None)
    return apply(instance("transpose", (rows.size, size, element), xs.origin), xs)


def joined(xs: Expr) -> Expr:
    """xs |> join"""
    rows = array_type(xs)
    inner = array_type(Identifier("row", rows.element))
    return apply(named("join", {"n": rows.size, "m": inner.size, "t": inner.element}, xs), xs)


def divided(size: Nat, xs: Expr) -> Expr:
    """xs |> split(size)"""
    known = array_type(xs)
    rows = known.size.exact_quotient(size)
    if rows is None:
        raise NotPointwise(f"{size} does not divide {known.size}", xs)
    return apply(named("split", {"n": size, "m": rows, "t": known.element}, xs), xs)


def is_solid(xs: Expr) -> bool:
    """An array of numbers that exists, and is only rearranged: its elements are not looked into."""
    element = xs.type
    while isinstance(element, Array):
        element = element.element
    if isinstance(element, Pair) or not is_view(xs):
        return False
    return not any(isinstance(part, Primitive) and part.name in OPEN for part in subterms(xs))


@dataclass
class Elements:
    """Evaluates elements. values: what has been computed, in order, each with its name.

    taken: names that are in use
    atoms: names of arrays that are computed elsewhere
    """

    taken: set[str]
    values: dict[Expr, Identifier] = field(default_factory=dict)

    def fresh(self, name: str, type_: Data) -> Identifier:
        return fresh(name, type_, self.taken)

    def index(self, name: str, size: Nat) -> Identifier:
        return self.fresh(name, Index(size))

    def named(self, value: Expr) -> Expr:
        """A name for what is computed."""
        if is_view(value):
            return value
        known = self.values.get(value)
        if known is None and is_reduction(value):
            known = next((name for other, name in self.values.items() if alpha_equal(other, value)), None)
        if known is None:
            known = self.values[value] = self.fresh("v", as_data(value.type))
        return known

    def closed(self, result: Expr) -> Expr:
        """The result with all that it uses: values that are used once stand where they are used."""
        for value, name in reversed(self.values.items()):
            if name.name in result.free:
                result = Apply(Lambda(name, result, result.origin), value, result.origin)
        return simplify(result)

    # --- values: numbers, indices and pairs of them

    def value(self, term: Expr) -> Expr:
        """A term without arrays, as a view of names, or a pair of such."""
        match term:
            case Identifier() | Literal():
                return term
            case Apply(Lambda() as function, argument):
                return self.value(self.applied(function, argument))
        found = call(term)
        if found is None:
            raise NotPointwise("a value is not computed by a primitive", term)
        name, head, given = found
        match name, given:
            case "idx", [_, _]:
                inner = self.head(term)
                return inner if _is_element(inner) else self.value(inner)
            case (("fst" | "snd"), [_]):
                inner = self.head(term)
                return inner if _is_member(inner) else self.value(inner)
            case "id", [inner]:
                return self.value(inner)
            case "let", [bound, Lambda() as function]:
                return self.value(self.applied(function, bound))
            case "pair", [first, second]:
                return pair(self.value(first), self.value(second))
            case "reduce", [operator, start, xs]:
                return self.named(self.reduction(head, operator, start, xs))
            case _ if any(holds_arrays(x.type) or isinstance(x, Lambda) for x in given):
                raise NotPointwise(f"`{name}` takes more than an element", term)
            case _:
                made = apply(head, *(self.value(x) for x in given), origin=term.origin)
                return _length(term, made) or self.named(made)

    def reduction(self, head: Primitive, operator: Expr, start: Expr, xs: Expr) -> Expr:
        """A reduction of an array that is generated: its elements by an index."""
        known = array_type(xs)
        if holds_arrays(known.element):
            raise NotPointwise("a reduction of arrays", xs)
        inner = Elements(set(self.taken))
        index = inner.index("l", known.size)
        body = inner.closed(inner.value(at(index, xs)))
        return apply(head, operator, self.value(start), generated(index, body), origin=xs.origin)

    def applied(self, function: Lambda, argument: Expr) -> Expr:
        """The function's body: arrays are put in place, all else is computed before."""
        if not holds_arrays(argument.type):
            argument = self.value(argument)
        return substitute(function.body, {function.parameter.name: argument})

    # --- arrays and pairs of them

    def head(self, term: Expr) -> Expr:
        """The outermost pattern of an array or a pair: functions applied, elements and members selected."""
        if isinstance(term, Apply) and isinstance(term.function, Lambda):
            return self.head(self.applied(term.function, term.argument))
        match call(term):
            case "idx", _, [index, xs]:
                return self.element(self.value(index), xs)
            case ("fst" | "snd") as name, _, [whole]:
                return self.member(name, whole)
            case "let", _, [bound, Lambda() as function]:
                return self.head(self.applied(function, bound))
            case "id", _, [inner]:
                return self.head(inner)
            case _:
                return term

    def member(self, name: str, whole: Expr) -> Expr:
        whole = self.head(whole)
        match call(whole):
            case "pair", _, [first, second]:
                return self.head(first if name == "fst" else second)
            case "unzip", _, [xs]:
                x = self.fresh("x", array_type(xs).element)
                return mapped(Lambda(x, project(name, x)), xs)
            case "select", head, [condition, first, second]:
                parts = (project(name, first), project(name, second))
                chosen = Primitive(head.declaration, (as_data(parts[0].type),), head.origin)
                return self.head(apply(chosen, condition, *parts))
            case _:
                return project(name, whole)

    def element(self, index: Expr, xs: Expr) -> Expr:
        """The outermost pattern of xs[index]."""
        if not is_solid(xs):
            xs = self.head(xs)
        if is_solid(xs):
            return at(index, xs)
        match call(xs):
            case "map", _, [function, ys]:
                return self.head(Apply(function, at(index, ys), xs.origin))
            case "zip", _, [first, second]:
                return pair(at(index, first), at(index, second))
            case "generate", _, [Lambda() as function]:
                return self.head(Apply(function, index, xs.origin))
            case "transpose", _, [rows]:
                row = self.fresh("r", array_type(rows).element)
                return mapped(Lambda(row, at(index, row)), rows)
            case "select", head, [condition, first, second]:
                chosen = Primitive(head.declaration, (array_type(xs).element,), head.origin)
                return self.head(apply(chosen, condition, at(index, first), at(index, second)))
            case "drop", head, [ys] if isinstance(index, Literal) and (later := _later(index, head, ys)):
                return self.element(later, ys)
            case "take", _, [ys] if (earlier := self.taken_earlier(array_type(xs).size, ys)) is not None:
                return self.element(index, earlier)
            case _ if is_view(xs):
                return at(index, xs)
            case _:
                raise NotPointwise("an array is neither a map nor a view of others", xs)

    def taken_earlier(self, size: Nat, xs: Expr) -> Expr | None:
        """The first elements of an array, as a function of those of others; None where it is none."""
        xs = self.head(xs)
        match call(xs):
            case "map", _, [Lambda() as function, ys]:
                return mapped(function, first_of(size, ys))
            case "zip", _, [ys, zs]:
                return zipped(first_of(size, ys), first_of(size, zs))
            case "transpose", _, [rows]:
                row = self.fresh("r", array_type(rows).element)
                return transposed(mapped(Lambda(row, first_of(size, row)), rows))
            case _:
                return None


def first_of(size: Nat, xs: Expr) -> Expr:
    """xs |> take(size)"""
    known = array_type(xs)
    arguments = (size, known.size - size, known.element)
    return apply(instance("take", arguments, xs.origin), xs)


def _later(index: Literal, drop: Primitive, xs: Expr) -> Literal | None:
    """Where an element of `xs |> drop(n)` is in xs: `length` of the prelude is the last of all indices."""
    dropped = drop.arguments[0]
    known = dropped.value if isinstance(dropped, Nat) else None
    if known is None or not isinstance(index.value, int):
        return None
    return Literal(index.value + known, Index(array_type(xs).size), index.origin)


def _length(term: Expr, value: Expr) -> Expr | None:
    """`length` of the prelude, the last of all indices plus one, as a number; as a float, too.

    value: of the term, with the values of its parts
    """
    match call(term), call(value):
        case ("add", _, [selected, _]), (_, _, [last, Literal(int(one))]) if _is_element(selected):
            match call(last):
                case "indexToInt", _, [Literal(int(index))]:
                    return Literal(index + one, I32, term.origin)
        case ("cast", _, [inner]), (_, _, [Literal(int(length))]) if value.type == F32 and call(inner):
            return Literal(float(length), F32, term.origin) if length < EXACT else None
    return None


def _is_element(term: Expr) -> bool:
    found = call(term)
    return found is not None and found[0] == "idx"


def _is_member(term: Expr) -> bool:
    found = call(term)
    return found is not None and found[0] in ("fst", "snd")


# --- arrays of elements -----------------------------------------------------------------------------------


def over(index: Identifier, element: Expr) -> Expr:
    """The array whose elements a term gives: a view of an array that it selects from, where there is one."""
    name = index.name
    if name not in element.free:
        return generated(index, element)
    selected = [part for part in subterms(element) if selects(part, name) and part.free <= element.free]
    first = selected[0] if selected else None
    match call(first) if first is not None else None:
        case "idx", _, [_, xs] if first is element:
            return xs
        case "idx", _, [_, xs]:
            known = array_type(xs).element
            x = Identifier(fresh_name("x", names(element)), known, xs.origin)
            body = replaced(element, first, x) if first is not None else element
            if name not in body.free:
                return _rows(mapped(Lambda(x, body, xs.origin), xs))
    return generated(index, element)


def as_map(index: Identifier, body: Expr) -> Expr:
    """The array whose elements a term gives, as a map over the arrays that it selects from, and numbers."""
    parts = list(subterms(body))
    arrays = list(dict.fromkeys(application(part)[2][1] for part in parts if selects(part, index.name)))
    selected = [at(index, xs) for xs in arrays]
    if number(index) in parts:
        arrays, selected = [*arrays, generated(index, number(index))], [*selected, number(index)]
    if not arrays:
        return generated(index, body)
    together = all_zipped(arrays)
    x = fresh("x", array_type(together).element, names(body))
    inner = put(body, dict(zip(selected, members(x, len(arrays)), strict=True)))
    if index.name in inner.free:
        raise NotPointwise(f"`{index.name}` does more than select elements", body)
    return mapped(Lambda(x, inner), together)


def selects(term: Expr, name: str) -> bool:
    """Whether a term is `idx(i)(xs)` for the index of that name."""
    match call(term):
        case "idx", _, [Identifier(other), xs]:
            return other == name and name not in xs.free
        case _:
            return False


def _rows(xs: Expr) -> Expr:
    """xs |> map(x => x) is xs"""
    match call(xs):
        case "map", _, [Lambda(x, Identifier(name)), ys] if name == x.name:
            return ys
        case _:
            return xs


def matrix(row: Identifier, column: Identifier, element: Expr) -> Expr:
    """The matrix of elements, by rows and columns."""
    match call(element):
        case "idx", _, [Identifier(outer), inner] if outer == row.name and selects(inner, column.name):
            if row.name not in inner.free:
                return transposed(application(inner)[2][1])
        case "idx", _, [Identifier(outer), inner] if outer == row.name and row.name not in inner.free:
            match call(inner):
                case "take", _, [whole] if selects(whole, column.name):
                    return first_of(array_type(inner).size, transposed(application(whole)[2][1]))
    return over(row, over(column, element))


def replaced(term: Expr, old: Expr, new: Expr) -> Expr:
    """A term with another in the place of a part, whatever its bound variables are called."""
    if alpha_equal(term, old):
        return new
    return map_children(term, lambda child: replaced(child, old, new))


def leaves(term: Expr, indices: Iterable[Identifier]) -> list[Expr]:
    """The largest views of single numbers or indices that depend on indices, each once.

    A float of a whole number is one, too.
    """
    found: dict[Expr, None] = {}
    wanted = {index.name for index in indices}
    rest = [term]
    while rest:
        part = rest.pop()
        if part.free.isdisjoint(wanted):
            continue
        if isinstance(part.type, Scalar | Index) and (is_view(part) or _is_converted_number(part)):
            found.setdefault(part)
            continue
        rest += reversed([*_children(part)])
    return list(found)


def _is_converted_number(term: Expr) -> bool:
    match call(term):
        case "cast", _, [inner]:
            return inner.type == I32 and is_view(inner)
        case _:
            return False


def _children(term: Expr) -> Iterator[Expr]:
    match term:
        case Apply(function, argument):
            yield function
            yield argument
        case Lambda(_, body):
            yield body


def put(term: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """A term with other terms in the place of parts of it."""
    if term in values:
        return values[term]
    return map_children(term, lambda child: put(child, values))


def tuple_type(parts: list[Data]) -> Data:
    """(a, (b, c)) for a, b, c"""
    *front, result = parts
    for part in reversed(front):
        result = Pair(part, result)
    return result


def tupled(parts: Sequence[Expr]) -> Expr:
    """(a, (b, c)) of a, b, c"""
    *front, result = parts
    for part in reversed(front):
        result = pair(part, result)
    return result


def members(whole: Expr, count: int) -> list[Expr]:
    """The components of a tuple of so many."""
    found: list[Expr] = []
    for _ in range(count - 1):
        found.append(project("fst", whole))
        whole = project("snd", whole)
    return [*found, whole]
