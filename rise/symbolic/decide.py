"""Whether two programs compute the same: for all sizes, not at some, or neither is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rise.constraint import Constraint
from rise.expr import Expr
from rise.interpret.evaluate import free_identifiers
from rise.nat import Nat
from rise.symbolic.context import Context
from rise.symbolic.evaluate import Evaluator
from rise.symbolic.monoids import Operators, contract_operators, neutral_of, operators
from rise.symbolic.prove import GaveUp, Prover
from rise.symbolic.refute import Compared, Difference, compare
from rise.symbolic.unknowns import Unknowns
from rise.symbolic.values import Condition, Contract, Element, Unmodelled, Value, dimensions
from rise.types import Function, Pair, Type


@dataclass(frozen=True)
class Problem:
    """Two terms of one type, which have the same free names, and what is asked of their sizes."""

    left: Expr
    right: Expr
    asks: tuple[Constraint, ...] = ()


@dataclass(frozen=True)
class Proved:
    """Equal for all sizes, types and functions.

    reordered: sums were reordered or rounded less often, so that floats may differ in their last bits
    goals:     how many elements were compared: one for each leaf of the result
    """

    goals: int
    reordered: bool = False


@dataclass(frozen=True)
class Refuted:
    """Different at some sizes."""

    difference: Difference


@dataclass(frozen=True)
class Open:
    """Neither was found."""

    reason: str
    compared: Compared = field(default_factory=Compared)


Verdict = Proved | Refuted | Open


def problem(left: Expr, right: Expr, asks: Sequence[Constraint] = ()) -> Problem:
    return Problem(left, right, tuple(asks))


def decide(of: Problem) -> Verdict:
    """A counterexample at small sizes, else a proof. UsageError R0517 where z3 is not installed."""
    found = examined(of)
    if isinstance(found, Refuted):
        return found
    made = prove(of)
    return made if isinstance(made, Proved) else Open(made.reason, found.compared)


def examined(of: Problem) -> Refuted | Open:
    """The programs at small sizes only, which needs no z3."""
    try:
        compared = compare(of.left, of.right, of.asks)
    except Unmodelled as missing:
        return Open(f"{missing} is not modelled")
    if compared.difference is not None:
        return Refuted(compared.difference)
    return Open("no difference at small sizes", compared)


def prove(of: Problem) -> Proved | Open:
    """First with all sums in their order; then with those reordered that may be."""
    reason = ""
    for reorder in (False, True):
        try:
            goals, reason = _Proof(of, reorder).run()
        except Unmodelled as missing:
            return Open(f"{missing} is not modelled")
        except GaveUp:
            return Open("the proof takes too long")
        if not reason:
            return Proved(goals, reorder)
    return Open(reason)


@dataclass
class _Proof:
    of: Problem
    reorder: bool

    def run(self) -> tuple[int, str]:
        """How many goals there are, and why one of them is not proved."""
        world = Unknowns()
        left, right = (Evaluator(world, rounds=not self.reorder) for _ in range(2))
        names = {i.name: i for side in (self.of.left, self.of.right) for i in free_identifiers(side)}
        environment = {n: left.opaque(n, i.type) for n, i in names.items()}
        context = Context(world, tuple(_asked(world, self.of.asks)))
        values = left.value(self.of.left, environment), right.value(self.of.right, environment)
        reached = list(self._leaves(left, self.of.left.type, *values, context))
        for first, second, inside in reached:
            if inside.is_impossible():
                return len(reached), "no sizes satisfy what the programs ask for"
            # a function is evaluated when it is applied: this meets all reductions
            for side in (first, second):
                Prover(world, left).occurs((), side)
        reorderable = [c for c in left.contracts if c.commutative]
        given = operators(reorderable, left, lambda size: world.fresh("i"))
        prover = Prover(world, left, given if self.reorder else None)
        if not all(_is_justified(c, left.contracts, given, prover, context) for c in right.contracts):
            return len(reached), "nothing says that the operator of a `reduce` on the right may be reordered"
        if all(prover.equal(first, second, inside) for first, second, inside in reached):
            return len(reached), ""
        return len(reached), "no lemma applies"

    def _leaves(
        self, evaluator: Evaluator, type_: Type, left: Value, right: Value, context: Context, inputs: int = 0
    ) -> Iterator[tuple[Element, Element, Context]]:
        """Each element of two values. inputs: how many arguments they have been given"""
        indexed = dimensions(type_)
        if indexed is not None:
            i, inside = context.index(evaluator.world.size(indexed[0]))
            yield from self._leaves(evaluator, indexed[1], left.at(i), right.at(i), inside, inputs)
        elif isinstance(type_, Pair):
            for place, part in enumerate((type_.first, type_.second)):
                yield from self._leaves(evaluator, part, left[place], right[place], context, inputs)
        elif isinstance(type_, Function):
            argument = evaluator.argument(inputs + 1, type_.parameter)
            results = left(argument), right(argument)
            yield from self._leaves(evaluator, type_.result, *results, context, inputs + 1)
        else:
            yield left, right, context


def _asked(world: Unknowns, asks: Sequence[Constraint]) -> Iterator[Condition]:
    for ask in asks:
        if isinstance(ask.value, Nat):
            value = world.size(ask.value)
            if ask.divisor is None:
                yield value >= 0
            else:
                divisor = world.size(ask.divisor)
                yield world.both(divisor > 0, world.remainder(value, divisor) == 0)


def _is_justified(
    contract: Contract,
    given: Sequence[Contract],
    known: Operators,
    prover: Prover,
    context: Context,
) -> bool:
    """Whether an operator is one of the left side's, or of arithmetic, with what is neutral for it."""
    for other in given:
        if other.type == contract.type and (other.commutative or not contract.commutative):
            a, b = prover.unknown(contract.type), prover.unknown(contract.type)
            same = prover.equal(other.operator(a)(b), contract.operator(a)(b), context)
            if same and prover.equal(other.neutral, contract.neutral, context):
                return True
    found = contract_operators(prover.evaluator, contract, lambda size: prover.fresh())
    pairs = [(neutral_of(symbol, known), neutral) for symbol, neutral in found]
    return bool(pairs) and all(
        wanted is not None and neutral is not None and prover.equal(wanted, neutral, context)
        for wanted, neutral in pairs
    )
