"""What the cost model needs to know of a program: the sizes of its products, and the layout of operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod

from rewrites.beside import beside
from rewrites.exponentials import ROUNDED
from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Failure, Success
from rise.canonical import canonical
from rise.expr import Expr, Identifier, Lambda, Primitive, call, children, subterms
from rise.frozen import Remembers, cached_property, filled_at_once, hashed_once
from rise.nat import Nat
from rise.types import Pair, Scalar, Type, as_data, shape
from strategies.abstraction import outermost_parts
from strategies.contiguity import WHOLE, Contiguity, contiguity_of
from strategies.core import Strategy, choice, seq, try_
from strategies.matmul.alignment import copied_along_k
from strategies.matmul.columns import columns_of, is_of_rows
from strategies.matmul.products import (
    Product,
    computed_operands,
    contains,
    in_one_matrix,
    is_product,
    operands,
    outline,
    rank,
    separate_prologue,
)
from strategies.matmul.schedule import Schedule
from strategies.matmul.separate import ACROSS, in_boxes
from strategies.matmul.sums import in_one_sum
from strategies.normal_forms import view_inward
from strategies.places import as_one_array, in_inputs, mapped
from strategies.result_views import computed_in

# functions that take a special unit or a sequence of instructions, and how many operations one is worth
SPECIAL_FUNCTIONS = ROUNDED | {"reciprocal", "div"}
SPECIAL = 8

# how many products, and how many first and second operands these have
Products = tuple[int, tuple[int, int]]


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Problem(Remembers):
    """Products of an m.k and a k.n matrix, `batch` of them, finished into an m.n matrix.

    k:       of all products whose sum is the result, together
    along_k: whether rows of A and columns of B are contiguous along k
    operand: the type of an element of A and B
    computed: whether an operand is computed from what is in memory, on the way to its product, and is not
              computed by a kernel that copies it to longer rows
    operand_bytes, result_bytes: of an element
    beside: of the matrices like the result that are read for it, the bytes of an element of each
    products: how many there are for a matrix of the result, each of which has sums of its own
    work:     operations on each element of the result after its products, as many as special functions take
    row_work: the same on each element of the first operand, where its rows are reduced beside the product
    operands: how many first and second operands these have, of which products that share one load it once
    swapped:  whether this is the transposed result, of transposed operands in the other order
    in_one_sum: products and operands where tiles come in bulk, if sums of products are one product there
    reduced:  whether rows are reduced where they are computed, besides what is stored of them
    turned:   whether these are columns
    in_boxes: whether tiles of operands are boxes of arrays, which bulk copies bring
    scattered: whether data say at which place each row of the result is, and so how many matrices have any:
              `batch` is then in the middle between as few as rows need and all
    elsewhere: whether views put elements of the result elsewhere, so that its tiles may be no boxes
    input_bytes: of all inputs, fewer than of operands where some are multiplied several times; 0: not known
    missing:  which part of the rows of all matrices is undefined where data say so for each, in the mean
    open:     whether sizes are known at launch only, and these are what is expected
    in_front: bytes that a small kernel reads for the epilogue, which may run beside the first products
    """

    m: int
    n: int
    k: int
    batch: int = 1
    operand_bytes: int = 2
    result_bytes: int = 4
    along_k: tuple[bool, bool] = (True, False)
    operand: str = "f16"
    computed: bool = False
    beside: tuple[int, ...] = ()
    products: int = 1
    operands: tuple[int, int] = (1, 1)
    work: int = 0
    row_work: int = 0
    swapped: bool = False
    in_one_sum: Products | None = None
    reduced: bool = False
    turned: bool = False
    in_boxes: bool = True
    scattered: bool = False
    elsewhere: bool = False
    input_bytes: int = 0
    missing: float = 0.0
    open: bool = False
    in_front: int = 0

    @property
    def added_bytes(self) -> int:
        """Of the elements of all matrices that are read for an element of the result."""
        return sum(self.beside)

    @property
    def result_row(self) -> int:
        """How long the rows of the result are in memory."""
        return self.m if self.swapped else self.n

    @property
    def of_each(self) -> float:
        """Where data choose second operands: how many products have the same one, in the mean."""
        first = self.batch * self.m * self.k * self.operand_bytes
        seconds = (self.input_bytes - first) / (self.n * self.k * self.operand_bytes)
        return self.batch / max(seconds, 1)

    @property
    def by_elements(self) -> bool:
        """Whether results are stored one by one: in rows of an odd number, pairs of them do not lie at their
        multiples.
        """
        return self.result_bytes in (2, 4) and self.result_row % 2 == 1

    @property
    def in_order(self) -> bool:
        """Whether warpgroups multiply operands as they lie: only those of 16 bits may lie across k."""
        return self.operand_bytes == ACROSS or all(self.along_k)

    @property
    def ready(self) -> bool:
        """Whether bulk copies bring operands for warpgroups."""
        return not self.computed and self.in_boxes and self.in_order

    @property
    def stored(self) -> Problem:
        """The problem whose operands kernels before it have stored as bulk copies bring them."""
        along_k = self.along_k if self.operand_bytes == ACROSS else (True, True)
        return replace(self, computed=False, in_boxes=True, along_k=along_k)

    def seen_by(self, schedule: Schedule) -> Problem:
        """The problem that a schedule solves: with `swap_operands`, the transposed one."""
        seen = self.in_bulk if schedule.uses_wgmma else self
        return seen if schedule.swap_operands == seen.swapped else seen.transposed

    @cached_property
    def transposed(self) -> Problem:
        """The same with operands in the other order."""
        (first, second), (along_first, along_second) = self.operands, self.along_k
        return replace(
            self, m=self.n, n=self.m, along_k=(along_second, along_first), operands=(second, first),
            swapped=not self.swapped,
        )  # fmt: skip

    @cached_property
    def in_bulk(self) -> Problem:
        """The problem where the copying unit brings tiles."""
        if self.in_one_sum is None or self.products == self.in_one_sum[0]:
            return self
        count, operands = self.in_one_sum
        return replace(self, products=count, operands=operands)

    @property
    def rows(self) -> tuple[int, int]:
        """How long the rows of A and of B are in memory."""
        return self.k if self.along_k[0] else self.m, self.k if self.along_k[1] else self.n

    @property
    def folds(self) -> int:
        """How many loops over k compute the products: those that share an operand are in one."""
        return min(self.operands)

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"m": self.m, "n": self.n, "k": self.k}

    @classmethod
    @lru_cache(maxsize=16)  # whoever chooses a kernel asks again
    def of(cls, program: Expr) -> Problem | None:
        """Of a program in normal form; None where it has no product, or its sizes are not all numbers."""
        reduced = beside(body_of(program))
        if reduced is not None:
            pairs = reduced.longer(None)
            matrix = cls.of(_after(in_inputs(lambda _: Success(pairs)), program))
            stored = 0 if reduced.stored is None else _bytes(reduced.stored.type)
            return matrix and replace(matrix, result_bytes=stored, reduced=True, turned=reduced.turned)
        inner = computed_in(body_of(program)) or body_of(program)
        elsewhere = inner is not as_one_array(body_of(program))
        if rank(inner) > 3:
            listed = cls._nested(_after(in_inputs(lambda _: Success(inner)), program))
            return listed and replace(listed, elsewhere=elsewhere)
        found, scattered = outlined(program), False
        if inner is not body_of(program) and not _is_of_one_matrix(found):
            scattered = any(_is(part, "scatterBy") for part in subterms(body_of(program)))
            found = outlined(inner)
        products = outermost_parts(found, is_product) if found is not None else []
        if not products or found is None:
            return None
        if any(len(shape(matrix.type)[0]) != 2 for part in products for matrix in Product.of(part).operands):
            return None
        parts = [_operands(product) for product in products]
        result, element = _result(body_of(found).type)
        sizes = [_number(n) for n in (*result, *(k for _, _, k in parts))]
        if len(result) not in (2, 3) or any(s is None for s in sizes):
            return None
        known = [s for s in sizes if s is not None]
        rows, columns = known[len(result) - 2 : len(result)]
        batch = prod(known[: len(result) - 2])
        missing = 0.0
        if scattered:
            there = prod(_number(size) or 0 for size in shape(body_of(program).type)[0])
            least = ceil(there / max(rows * columns, 1))
            batch = (batch + least + 1) // 2
            if any(_is(part, "prefixes") for part in subterms(body_of(program))):
                missing = max(0.0, 1 - least / batch)
        apart = _after(separate_prologue, found)
        multiplied = next((a for a, _ in operands(apart)), parts[0][0])
        computed = any(copied_along_k(matrix) is None for matrix in computed_operands(apart))
        operand = shape(multiplied.type)[1]
        along_k = all(_along(a) for a, _, _ in parts), all(_along(b) for _, b, _ in parts)
        return cls(
            rows, columns, sum(known[len(result) :]), batch,
            _bytes(operand), _bytes(element), along_k, str(operand),
            computed, _added(found, result),
            *_counted(products), _work(found), sum(map(_operations, columns_of(found))),
            in_one_sum=_in_one_sum(found if computed else apart, len(products), not computed),
            scattered=scattered, elsewhere=elsewhere,
            input_bytes=_input_bytes(program), missing=missing,
            in_boxes=all(in_boxes(matrix) for both in operands(found) for matrix in both),
        )  # fmt: skip

    @classmethod
    def _nested(cls, program: Expr) -> Problem | None:
        """Of arrays of matrices in arrays, which are computed as one array."""
        flat = in_inputs(seq(POINTWISE_EACH, lambda term: Success(as_one_array(term))))(program)
        return cls.of(flat.term) if isinstance(flat, Success) else None


def _is(part: Expr, name: str) -> bool:
    return isinstance(part, Primitive) and part.name == name


def _input_bytes(program: Expr) -> int:
    total = 0
    while isinstance(program, Lambda):
        sizes, element = shape(program.parameter.type)
        total += prod(_number(size) or 0 for size in sizes) * _bytes(element)
        program = program.body
    return total


def _work(term: Expr) -> int:
    """Operations on each element of the result, as what is done with products says."""
    if is_product(term) or is_of_rows(term):
        return 0
    return _operations(term, _work)


def _operations(term: Expr, inside: Callable[[Expr], int] | None = None) -> int:
    if isinstance(term, Primitive) and term.declaration.elementwise:
        return SPECIAL if term.name in SPECIAL_FUNCTIONS else 1
    return sum(map(inside or _operations, children(term)))


def _counted(products: list[Expr]) -> Products:
    return len(products), _loaded(products)


def _in_one_sum(found: Expr, products: int, copied: bool) -> Products | None:
    """The products that are left where sums of products are one; None where they are as many.

    copied: whether kernels copy operands, which may be computed then
    """
    if products == 1:
        return None
    joined = outermost_parts(_after(in_inputs(in_one_sum(WHOLE, copied)), found), is_product)
    return _counted(joined) if len(joined) < products else None


def _loaded(products: list[Expr]) -> tuple[int, int]:
    """How many tiles of first and of second operands a step loads, for all products."""
    sides = zip(*(Product.of(part).operands for part in products), strict=True)
    distinct, all_ = [len(set(map(canonical, side))) for side in sides], len(products)
    return (distinct[0], all_) if distinct[0] <= distinct[1] else (all_, distinct[1])


def outlined(program: Expr) -> Expr | None:
    """The program with each product a matrix of its own, of one matrix or of an array of them."""
    matrix = seq(view_inward, outline)
    single = len(shape(body_of(program).type)[0]) == 2
    result = in_inputs(matrix if single else choice(seq(try_(POINTWISE_EACH), mapped(matrix)), matrix))(
        program
    )
    return None if isinstance(result, Failure) else result.term


def separated(program: Expr) -> Expr | None:
    """The same with functions of operands' elements in maps over these."""
    found = outlined(program)
    return found and _after(separate_prologue, found)


def _is_of_one_matrix(found: Expr | None) -> bool:
    """Whether there are products, and no operand of these is an element of an array."""
    return found is not None and contains(is_product)(found) and in_one_matrix(body_of(found))


def _after(s: Strategy, program: Expr) -> Expr:
    result = s(program)
    return program if isinstance(result, Failure) else result.term


def body_of(program: Expr) -> Expr:
    while isinstance(program, Lambda):
        program = program.body
    return program


def _operands(product: Expr) -> tuple[Expr, Expr, Nat]:
    """The rows of A, the columns of B, and how long both are."""
    rows, columns = Product.of(product).operands
    return rows, columns, shape(rows.type)[0][1]


def _along(matrix: Expr) -> bool:
    known = contiguity_of(matrix, {})
    return isinstance(known, Contiguity) and known.dimensions[-1:] == (True,)


def _number(size: Nat) -> int | None:
    return size.value


def _added(program: Expr, result: tuple[Nat, ...]) -> tuple[int, ...]:
    """Of the inputs like the result that are read beside products: not those of square products."""
    read = _beside_products(body_of(program))
    found: list[int] = []
    while isinstance(program, Lambda):
        sizes, element = shape(program.parameter.type)
        if tuple(sizes) == tuple(result) and program.parameter.name in read:
            found.append(_bytes(element))
        program = program.body
    return tuple(found)


def _beside_products(term: Expr) -> set[str]:
    """The names outside of products, `x.fst` for a part of x. Arrays count if the elements of a map do."""
    if (name := _path(term)) is not None:
        return {name}
    if is_product(term):
        return set()
    match call(term):
        case ("map", _, [Lambda(x, body), xs]):
            read = _beside_products(body)
            own = {name for name in read if name.partition(".")[0] == x.name}
            return read - own | _elements(xs, {name.removeprefix(x.name) for name in own})
    return {name for child in children(term) for name in _beside_products(child)}


def _path(term: Expr) -> str | None:
    """The path to a part of a variable: `x.fst.snd` for snd(fst(x)). None for any other term."""
    if isinstance(term, Identifier):
        return term.name
    match call(term):
        case ("fst" | "snd" as part, _, [pair]) if (name := _path(pair)) is not None:
            return f"{name}.{part}"
    return None


def _elements(xs: Expr, parts: set[str]) -> set[str]:
    """The names outside of products in an array of whose elements these parts are read."""
    match call(xs):
        case ("zip", _, [first, second]) if "" not in parts:
            by_part = ((first, ".fst"), (second, ".snd"))
            return {
                name
                for array, part in by_part
                for name in _elements(array, {p.removeprefix(part) for p in parts if p.startswith(part)})
            }
    return _beside_products(xs) if parts else set()


def _result(type_: Type) -> tuple[tuple[Nat, ...], Type]:
    """The shape of a result and what it consists of; two matrices of one shape are a matrix of pairs."""
    if not isinstance(type_, Pair):
        sizes, element = shape(type_)
        return tuple(sizes), element
    (sizes, first), (others, second) = _result(type_.first), _result(type_.second)
    return (sizes, Pair(as_data(first), as_data(second))) if sizes == others else ((), type_)


def _bytes(type_: Type) -> int:
    match type_:
        case Scalar():
            return type_.bytes
        case Pair(first, second):
            return _bytes(first) + _bytes(second)
        case _:
            return 4
