"""What is known of rows of a batch, where no matrices are multiplied, and how many threads have each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewrites.result import Success
from rise.expr import Expr, Primitive, subterms
from rise.types import Type, shape
from strategies.batches.runs import are_read_at_once
from strategies.batches.stages import bytes_between, most_rows
from strategies.batches.threads import one_map
from strategies.memory_bound.blocks import MATRIX, WARP

# functions that take more instructions than it takes to read a number
COSTLY = frozenset({"exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "pow", "sqrt", "rsqrt", "div"})
EACH_OF_ROW = 160  # bytes that a thread reads and writes of a row, at most
THREADS = (1, 2, 4, 8, 16, 32)  # that have parts of a row
MOST_DEALT = 12  # elements that a thread computes of a row, at most


@dataclass(frozen=True)
class Rows:
    """What is known of them.

    count:   how many an element of the batch has
    length:  the elements of a row of the result
    between: the bytes of what takes loops and is read as a whole by others, which a block keeps
    in_matrices: whether an element, or its result, is a matrix, and not only a row
    results: whether they are computed, and not only numbers of them
    crowded: whether threads that each have one use the same few banks, unless they are padded
    costly:  whether functions are computed that take many instructions
    """

    count: int
    length: int
    between: int
    in_matrices: bool
    results: bool
    crowded: bool
    costly: bool

    @classmethod
    def of(cls, function: Expr, runs: Sequence[Type], result: Type) -> Rows:
        """Of the body of a map's function, the arrays that it is over, and the result. Sizes are known."""
        done = _in_one_map(function)
        _, *sizes = (size.value or 1 for size in shape(result)[0])
        in_matrices = len(sizes) == MATRIX or any(len(shape(run)[0]) > MATRIX for run in runs)
        results = len(sizes) == (MATRIX if in_matrices else 1)
        used = {part.declaration.name for part in subterms(function) if isinstance(part, Primitive)}
        return cls(
            count=most_rows(done) if in_matrices else 1,
            length=sizes[-1] if sizes else 1,
            between=bytes_between(done),
            in_matrices=in_matrices,
            results=results,
            crowded=any(map(are_read_at_once, (*runs, result) if results else runs)),
            costly=not used.isdisjoint(COSTLY),
        )

    @property
    def in_stages(self) -> bool:
        """Whether something that takes loops is read as a whole by what comes after it."""
        return self.between > 0

    def split(self, each: int) -> int:
        """Into how many parts a row is divided that is reduced: with a thread for each, there are too few.

        Sums of numbers take no longer than it takes to bring these.
        each: the bytes of a row, and of what is computed of it
        """
        if not (self.results or self.costly):
            return 1
        return next(n for n in THREADS if each <= n * EACH_OF_ROW or n == WARP)

    def dealt(self, each: int) -> int:
        """To how many threads the elements of a row are dealt: few of them have nothing in the last turn.

        Rows that start in the same bank are dealt to as many as can be.
        each: the bytes of a row, and of what is computed of it
        """
        if not self.results or (each <= EACH_OF_ROW and not self.crowded):
            return 1
        if self.crowded:
            return max(n for n in THREADS if n <= self.length)
        enough = [n for n in THREADS if -(-self.length // n) <= MOST_DEALT]
        return min(enough or THREADS[-1:], key=lambda n: -(-self.length // n) * n)


def _in_one_map(function: Expr) -> Expr:
    """All that is done with the rows of an element as one map over them."""
    fused = one_map(function)
    return fused.term if isinstance(fused, Success) else function
