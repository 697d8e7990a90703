"""What is done with the fragments of a tile, point by point, as one function of the elements of a lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import reduce

from rewrites.elements import NotPointwise, divided, fresh, joined, matrix, members, names, put, zipped
from rewrites.match import project
from rewrites.pointwise import Pointwise, pointwise
from rewrites.rule import computed
from rewrites.tensor import accumulator_family
from rewrites.typed import array_type, instance
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    apply,
    call,
    children,
    fresh_name,
    map_children,
    subterms,
)
from rise.instructions import Family
from rise.normal import is_view, simplify
from rise.types import ROW_MAJOR, Array, Data, Fragment, FragmentKind, Pair, Scalar, Space, as_data

# the fragments of these have elements at known places, which do not depend on what the elements are
ANY_ELEMENT = (Family.MMA, Family.WGMMA)


def _hidden(term: Expr, fragments: dict[str, Expr], taken: set[str]) -> Expr:
    """A term with names in place of the matrices of fragments, and of the numbers of columns."""
    fragment = _shown(term)
    if fragment is None:
        return map_children(term, lambda child: _hidden(child, fragments, taken))
    name = fresh_name("tile", taken)
    taken.add(name)
    fragments[name] = fragment
    return Identifier(name, term.type, term.origin)


def _shown(term: Expr) -> Expr | None:
    """f of asMatrix(f), and of asColumn(f) |> join; None for other terms."""
    match call(term):
        case "asMatrix", _, [fragment]:
            return fragment
        case "join", _, [inner] if (column := call(inner)) is not None and column[0] == "asColumn":
            return column[2][0]
        case _:
            return None


def _epilogue(term: Expr) -> tuple[Pointwise, dict[str, Expr]]:
    """What is done with the fragments whose matrices are in a term, by their names. Raises NotPointwise."""
    fragments: dict[str, Expr] = {}
    hidden = _hidden(term, fragments, names(term))
    if not fragments or isinstance(hidden, Identifier):
        raise NotPointwise("expected a map over the matrix of a fragment", term)
    found = pointwise(hidden)
    if not any(_of_fragment(found, leaf, fragments) for leaf in found.leaves):
        raise NotPointwise("no fragment is used", term)
    if strange := found.element.free & fragments.keys() - {
        name for leaf in found.leaves for name in leaf.free
    }:
        raise NotPointwise(f"the fragment `{min(strange)}` is not used element by element", term)
    for leaf in found.leaves:
        if not leaf.free.isdisjoint(fragments) and not _of_fragment(found, leaf, fragments):
            raise NotPointwise("a fragment is used at another place than the result's", leaf)
    return found, fragments


def _of_fragment(p: Pointwise, leaf: Expr, fragments: dict[str, Expr]) -> bool:
    """Whether a leaf is the fragment's element at the same place."""
    made = p.leaves[leaf]
    return isinstance(made, Identifier) and made.name in fragments


def fragment_type(term: Expr) -> Fragment:
    if not isinstance(term.type, Fragment):
        raise NotPointwise("expected a fragment", term)
    return term.type


def stored(term: Expr, space: Space) -> Expr:
    """term |> toMem(space)"""
    return apply(instance("toMem", (space, ROW_MAJOR, term.type), term.origin), term)


def loaded(term: Expr, like: Fragment) -> Expr:
    """A matrix as a fragment, which each lane loads."""
    element = array_type(term).element
    inner = element.element if isinstance(element, Array) else element
    given = (like.rows, like.columns, like.other, inner, like.kind)
    return stored(apply(instance("asFragment", given, term.origin), term), Space.LOCAL)


def zip_fragments(first: Expr, second: Expr) -> Expr:
    one, other = fragment_type(first), fragment_type(second)
    given = (one.rows, one.columns, one.other, one.element, other.element, one.kind)
    return apply(instance("zipFragment", given, first.origin), first, second)


def map_fragment(function: Lambda, fragment: Expr) -> Expr:
    one = fragment_type(fragment)
    given = (one.rows, one.columns, one.other, one.element, function.body.type, one.kind)
    return apply(instance("mapFragment", given, fragment.origin), function, fragment)


def as_matrix(fragment: Expr) -> Expr:
    one = fragment_type(fragment)
    given = (one.rows, one.columns, one.other, one.element)
    return apply(instance("asMatrix", given, fragment.origin), fragment)


def _each_result(element: Expr, make: Callable[[Expr], Expr]) -> Expr:
    """A matrix for each number that an element consists of, beside each other."""
    match call(element):
        case "pair", _, [first, second]:
            return _beside(_each_result(first, make), _each_result(second, make))
        case _ if isinstance(element.type, Pair):
            parts = [_each_result(project(name, element), make) for name in ("fst", "snd")]
            return _beside(*parts)
        case _:
            return make(element)


def _beside(first: Expr, second: Expr) -> Expr:
    """zip2D(first, second), as lists of elements: these are written through."""
    columns = array_type(Identifier("row", array_type(first).element)).size
    return divided(columns, zipped(joined(first), joined(second)))


def same_places(like: Fragment, types: list[Data], computed_tiles: bool) -> str | None:
    """Why the lanes that hold elements of one fragment do not hold those of the others; None if they do."""
    family = accumulator_family(like)
    if family in ANY_ELEMENT:
        return None
    if family is Family.VOLTA:
        sizes = {type_.bytes if isinstance(type_, Scalar) else 0 for type_ in types}
        return None if len(sizes) == 1 else "elements of other sizes are in other lanes"
    if computed_tiles:
        return "which elements of the fragment a lane holds is not known"
    different = next((type_ for type_ in types if type_ != like.element), None)
    return None if different is None else f"the elements would change from `{like.element}` to `{different}`"


@computed(
    "pointwise on fragments",
    "e → zipFragment(f)(… c |> asFragment |> toMem(Local)) |> mapFragment(g) |> toMem(Local) |> asMatrix,"
    " where e[i][j] = g(asMatrix(f)[i][j], …, c[i][j])",
    (
        "fun((a: 16.8.f32, b: 8.f32, c: 16.f32) => a |> asFragment"
        " |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f) |> toMem(Local) |> asMatrix |> fun(t =>"
        " zip(t)(c) |> map(fun((r, x) => zip(b)(r) |> map(fun((y, z) => y * z + x))))))",
        "fun((a: 64.16.f32, b: 16.64.f16) => a |> asFragment"
        " |> fun((f: Fragment[64, 16, 16, f32, Accum]) => f) |> toMem(Local) |> asMatrix |> fun(t =>"
        " zip(transpose(b))(t) |> map(fun((s, r) => zip(s)(r) |> map("
        "fun((y, z) => (y * f16(z), f32(y))))))))",
    ),
    "What is done with a fragment's matrix is done with the elements that a lane holds.",
)
def ON_FRAGMENTS(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    p, fragments = _epilogue(term)
    shown = {
        leaf: fragments[made.name]  # type: ignore[union-attr]  # it is the name of a fragment
        for leaf, made in p.leaves.items()
        if _of_fragment(p, leaf, fragments)
    }
    like = next((t for t in map(fragment_type, shown.values()) if not _is_column(t)), None)
    if like is None:
        return "no accumulator is used"
    element, operands = _columns_repeated(p, shown, like)
    computed_tiles = False
    for leaf, made in p.leaves.items():
        if leaf not in shown:
            computed_tiles |= p.depends(leaf) != (True, True) or not in_memory(made)
            operands[leaf] = loaded(matrix(p.row, p.column, leaf), like)
    types = [*(fragment_type(f).element for f in operands.values()), *_numbers(as_data(element.type))]
    if (refused := same_places(like, types, computed_tiles)) is not None:
        return refused
    together = reduce(lambda ys, x: zip_fragments(x, ys), reversed(operands.values()))
    x = Identifier(fresh_name("x", names(element)), fragment_type(together).element)
    values = dict(zip(operands, members(x, len(operands)), strict=True))

    def make(element: Expr) -> Expr:
        body = put(element, values)
        if body == x:
            return as_matrix(together)
        return as_matrix(stored(map_fragment(Lambda(x, body), together), Space.LOCAL))

    return simplify(_each_result(element, make))


def _is_column(fragment: Fragment) -> bool:
    return fragment.kind is FragmentKind.COLUMN


def _columns_repeated(
    p: Pointwise, shown: Mapping[Expr, Expr], like: Fragment
) -> tuple[Expr, dict[Expr, Expr]]:
    """The element, and fragments in the place of its parts: columns beside each element of their rows.

    What is computed of columns alone is computed once for each row.
    """
    operands = {leaf: f for leaf, f in shown.items() if not _is_column(fragment_type(f))}
    columns = {leaf: f for leaf, f in shown.items() if leaf not in operands}
    element, taken = p.element, names(p.element)
    for part in dict.fromkeys(_of_rows(element, columns, {p.row.name, p.column.name})):
        used = {leaf: f for leaf, f in columns.items() if any(leaf == inner for inner in subterms(part))}
        column, place = used.get(part), part
        if column is None:
            together = reduce(lambda ys, x: zip_fragments(x, ys), reversed(used.values()))
            x = Identifier(fresh_name("x", names(part)), fragment_type(together).element)
            values = dict(zip(used, members(x, len(used)), strict=True))
            column = stored(map_fragment(Lambda(x, put(part, values)), together), Space.LOCAL)
            place = fresh("number", as_data(part.type), taken)
            element = put(element, {part: place})
        given = (like.rows, like.columns, like.other, fragment_type(column).element)
        operands[place] = apply(instance("repeatColumn", given, part.origin), column)
    return element, operands


def _of_rows(term: Expr, columns: Mapping[Expr, Expr], indices: Set[str]) -> Iterator[Expr]:
    """The largest numbers that are functions of columns, and of nothing else that differs by element."""
    rest = put(term, {leaf: Literal(0.0, leaf.type) for leaf in columns})
    if rest != term and isinstance(term.type, Scalar) and rest.free.isdisjoint(indices):
        yield term
        return
    bound = {term.parameter.name} if isinstance(term, Lambda) else set()
    for child in children(term):
        yield from _of_rows(child, columns, indices | bound)


def in_memory(made: Expr) -> bool:
    """Whether a matrix is a view of one array, of whose memory tiles can be loaded as a whole."""
    return is_view(made) and not any(name in ("zip", "generate", "pair") for name in _primitives(made))


def _primitives(term: Expr) -> set[str]:
    return {part.name for part in subterms(term) if isinstance(part, Primitive)}


def _numbers(type_: Data) -> list[Data]:
    match type_:
        case Pair(first, second):
            return [*_numbers(first), *_numbers(second)]
        case _:
            return [type_]


@computed(
    "pointwise through Shared",
    "e → zip(asMatrix(f) |> toMem(Shared) |> join)(… c |> join) |> mapLane(g) |> split(n),"
    " where e[i][j] = g(asMatrix(f)[i][j], …, c[i][j])",
    (
        "fun((a: 16.16.f32, b: 16.f32, c: 16.f32) => a |> asFragment"
        " |> fun((f: Fragment[16, 16, 16, f32, Accum]) => f) |> toMem(Local) |> asMatrix |> fun(t =>"
        " zip(t)(c) |> map(fun((r, x) => zip(b)(r) |> map(fun((y, z) => f16(y * z + x)))))))",
    ),
    "The same by the lanes of a warp through shared memory, where nobody knows who holds which element.",
)
def THROUGH_SHARED(term: Expr) -> Expr | str:  # noqa: N802
    p, fragments = _epilogue(term)
    flat: dict[Expr, Expr] = {}
    for leaf, made in p.leaves.items():
        if _of_fragment(p, leaf, fragments):
            if _is_column(fragment_type(fragments[made.name])):  # type: ignore[union-attr]
                return "a column stays with the lanes that hold its rows"
            whole = stored(as_matrix(fragments[made.name]), Space.SHARED)  # type: ignore[union-attr]
        else:
            whole = matrix(p.row, p.column, leaf)
        flat[leaf] = joined(whole)
    together = reduce(lambda ys, xs: zipped(xs, ys), reversed(flat.values()))
    x = Identifier(fresh_name("x", names(p.element)), array_type(together).element)
    values = dict(zip(flat, members(x, len(flat)), strict=True))
    function = Lambda(x, put(p.element, values))
    known = array_type(together)
    by_lanes = instance("mapLane", (known.size, known.element, function.body.type), term.origin)
    columns = array_type(Identifier("row", array_type(term).element)).size
    return simplify(divided(columns, apply(by_lanes, function, together)))
