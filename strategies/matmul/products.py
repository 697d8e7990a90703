"""Finding products of matrices in programs, and separating them from their epilogues and prologues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewrites import algorithmic as a
from rewrites import movement as m
from rewrites.conversions import CONVERSION_LAST, is_converted
from rewrites.folds import FACTOR_OF_SUM
from rewrites.lets import named_value
from rewrites.maps import BETA
from rewrites.members import MEMBERS_APART
from rewrites.pointwise import POINTWISE, RESULTS
from rewrites.prologue import (
    BLOCK_FUSION,
    BYTE_WIDENED,
    FIRST_INSIDE,
    INLINE,
    PIPELINE_FUSION,
    PROLOGUE,
    PROLOGUE_OF_BYTES,
    PROLOGUE_OF_COLUMNS,
    PROLOGUE_OF_COLUMNS_SAME,
    PROLOGUE_OF_ROWS,
    PROLOGUE_OF_ROWS_SAME,
    PROLOGUE_SAME,
    ZIP_MAP_OUT_FIRST,
    ZIP_MAP_OUT_SECOND,
)
from rewrites.result import Failure, Result, Success
from rewrites.typed import array_type
from rise.errors import RiseError
from rise.expr import Apply, Expr, Lambda, application, call, children
from rise.nat import Nat
from rise.types import shape
from strategies.abstraction import outermost_parts
from strategies.core import (
    FunctionStrategy,
    Predicate,
    Rewrite,
    Strategy,
    at_child,
    check,
    choice,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.evaluation import is_expression
from strategies.normal_forms import gentle_beta
from strategies.places import arguments, computes, outermost_part

NO_PRODUCT = (
    "there is no product of two matrices: a sum (reduce) of products under two maps, whose inner array "
    "does not depend on the outer element"
)
NOT_IN_BULK = (
    "an operand of a warpgroup's product is computed: bulk copies bring numbers as they are, and only the"
    " first operand can go through registers, by a function of each element; compute the transposed result"
    " if it is the second, or use fragments of 16×8×16"
)


def is_product(term: Expr) -> bool:
    """A map of maps of reductions over the same columns for each row: the matrix of all dot products."""
    match call(term):
        case "map", _, [Lambda(row, body), _] if a.is_map_of_reductions(body):
            columns = application(body)[2][-1]
            return row.name not in columns.free
        case _:
            return False


def contains(predicate: Callable[[Expr], bool]) -> Callable[[Expr], bool]:
    return lambda term: outermost_part(term, predicate) is not None


def rank(term: Expr) -> int:
    """How many array dimensions a term has."""
    return len(shape(term.type)[0])


@prints_as_call
def at_parts(predicate: Predicate, name: str, nothing: str, s: Rewrite) -> Strategy:
    """s at every outermost part for which the predicate holds; fails if s fails there, or there is none."""

    def run(term: Expr) -> Result:
        if predicate(term):
            return s(term)
        there = [i for i, child in enumerate(children(term)) if outermost_part(child, predicate) is not None]
        result = Success(term)
        for index in there:
            following = at_child(index, run, result.term)
            if isinstance(following, Failure):
                return following
            result = Success(following.term, result.steps + following.steps)
        return result if there else Failure(name, term, nothing)

    return FunctionStrategy(name, run)


@prints_as_call
def at_products(s: Rewrite) -> Strategy:
    """s at every outermost product."""
    return at_parts(is_product, "at_products", "no product of matrices", s)


@dataclass(frozen=True)
class Product:
    """The rows of A, the columns of B, and what `each` pair of them reduces by an operator."""

    rows: Expr
    columns: Expr
    each: Lambda
    operator: Expr
    products: Expr

    @classmethod
    def of(cls, term: Expr) -> Product:
        """The parts of a term for which `is_product` holds."""
        match call(term):
            case (_, _, [Lambda(_, body), rows]):
                match call(body):
                    case (_, _, [Lambda(_, reduction) as each, columns]):
                        match call(reduction):
                            case (_, _, [operator, _, products]):
                                return cls(rows, columns, each, operator, products)
        raise RiseError("R0699", "internal: expected a product of matrices", term.origin)

    @property
    def operands(self) -> tuple[Expr, Expr]:
        return self.rows, self.columns

    @property
    def length(self) -> Nat:
        """k: how many numbers are added for an element."""
        return array_type(self.products).size


def operands(term: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Both operands of every outermost product."""
    for product in outermost_parts(term, is_product):
        yield Product.of(product).operands


def computed_operands(term: Expr) -> list[Expr]:
    """The operands of products that are computed, not only rearranged."""
    return [matrix for both in operands(term) for matrix in both if computes(matrix)]


def in_one_matrix(term: Expr) -> bool:
    """Whether no operand of a product is an element of an array: a matrix, and not an array of matrices."""

    def holds(part: Expr, elements: frozenset[str]) -> bool:
        if is_product(part):
            return all(matrix.free.isdisjoint(elements) for matrix in Product.of(part).operands)
        match call(part):
            case "map", _, [Lambda(x, body), *arrays]:
                return holds(body, elements | {x.name}) and all(holds(xs, elements) for xs in arrays)
            case _:
                return all(holds(child, elements) for child in children(part))

    return holds(term, frozenset())


def reads_a_result(term: Expr) -> bool:
    """Whether an operand of a product is a name for what loops compute: it must be complete before."""

    def holds(part: Expr, computed: frozenset[str]) -> bool:
        if is_product(part) and not all(x.free.isdisjoint(computed) for x in Product.of(part).operands):
            return True
        match named_value(part):
            case value, Lambda(x, body) if not is_expression(value):
                return holds(value, computed) or holds(body, computed | {x.name})
            case _:
                return any(holds(child, computed) for child in children(part))

    return holds(term, frozenset())


def _names_a_conversion(term: Expr) -> bool:
    match term:
        case Apply(Lambda(), value):
            return is_converted(value)
        case _:
            return False


def _narrow_factor(term: Expr) -> Result:
    return _narrow(term)


# factors that are computed with numbers that are converted, also under names, converted last
_named = check(_names_a_conversion, "narrow_factor", "no conversion has a name")
_narrow: Strategy = choice(
    CONVERSION_LAST,
    seq(_named, BETA, FunctionStrategy("narrow_factor", _narrow_factor)),
    seq(_named, gentle_beta),
)
# products become matrices of their own; where an element is not a function of such, each sum becomes a map
_products = seq(
    normalize(FACTOR_OF_SUM),
    normalize(_narrow),
    normalize(BYTE_WIDENED),
    normalize(choice(a.SEPARATE_REDUCTION, m.DROP_UNUSED)),
    normalize(choice(a.SEPARATE_PRODUCT, m.DROP_UNUSED)),
    normalize(MEMBERS_APART),
    normalize(choice(PROLOGUE_OF_COLUMNS, PROLOGUE_OF_COLUMNS_SAME, PROLOGUE_OF_ROWS, PROLOGUE_OF_ROWS_SAME)),
)
# factors that a sum's terms share stand beside it before these are taken to be operands
_by_elements = seq(normalize(FACTOR_OF_SUM), POINTWISE)
# the epilogue becomes a map over them
outline_matrix = seq(try_(_by_elements), _products)
# the same of two matrices of one shape, as a matrix of pairs
outline = choice(seq(RESULTS, arguments(2, seq(_by_elements, _products))), outline_matrix)
# the prologue of operands becomes a map over them
separate_prologue = normalize(choice(PROLOGUE, PROLOGUE_OF_BYTES, PROLOGUE_SAME, a.MAP_IDENTITY))
# the prologue of the first operand moves into the product
first_inside = normalize(FIRST_INSIDE)


def bulk_operands(term: Expr) -> bool:
    """Whether the copying unit can bring the operands of all products: it brings numbers as they are.

    A function of single elements of the first operand is left to the product.
    """
    separated = separate_prologue(term)
    changed = separated.term if isinstance(separated, Success) else term
    return not computed_operands(term) and not any(computes(second) for _, second in operands(changed))


# point-wise prologues move to the loads of tiles
bring_prologue = normalize(
    choice(
        ZIP_MAP_OUT_FIRST,
        ZIP_MAP_OUT_SECOND,
        BLOCK_FUSION,
        PIPELINE_FUSION,
        INLINE,
        a.MAP_VIEW_FUSION,
        m.SPLIT_MAP,
        m.TRANSPOSE_MAP,
        m.DROP_UNUSED,
    )
)
