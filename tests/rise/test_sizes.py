"""Sizes of instances: the search finds numbers wherever there are any, and all that it finds are right."""

from __future__ import annotations

from itertools import product

import pytest

from rise.nat import Nat, NatUnknown, atom
from rise.testing.choose import Drawn
from rise.testing.sizes import MOST, POOL, Sizes, largest

UNKNOWNS = tuple(NatUnknown(i) for i in range(3))
M, N, K = map(atom, UNKNOWNS)


def half(size: Nat) -> Nat:
    found = size.exact_quotient(2)
    assert found is not None
    return found


# naturals, positive, extents
PROBLEMS = (
    ((), (M, N, K), (M * N * K,)),
    ((M - N - K,), (M,), (M * 50,)),
    ((N * M - N * K,), (half(M) + half(N), K), (M * N * 9 + K,)),
    ((M - N * K, N - 6), (M, N, K), (M * N,)),
    ((M - N * K * 7, K - 1, N - 1), (), (M * N * K,)),
    ((M - N - 1,), (N - 3,), (M * 200 - N * 200,)),
    ((M - 8,), (), ()),
    ((half(M),), (M, N), (M * N * 100, K * 199)),
)


def fits(values: tuple[int, ...], problem: Sizes) -> bool:
    solution = {u: M * 0 + v for u, v in zip(UNKNOWNS, values, strict=True)}

    def within(sizes: tuple[Nat, ...], least: int, most: int) -> bool:
        numbers = [s.substitute(solution).value for s in sizes]
        return all(n is not None and least <= n <= most for n in numbers)

    return (
        within(problem.naturals, 0, 10**9)
        and within(problem.positive, 1, 10**9)
        and within(problem.extents, 1, MOST)
    )


@pytest.mark.parametrize("parts", PROBLEMS)
def test_numbers_are_found_where_there_are_any(parts: tuple[tuple[Nat, ...], ...]) -> None:
    problem = Sizes(UNKNOWNS, 3, *parts)
    right = {values for values in product(set(POOL), repeat=3) if fits(values, problem)}
    met = set()
    for seed in range(300):
        found = problem.found(Drawn(seed), {}, {})
        assert (found is not None) == bool(right)
        if found is not None:
            met.add(tuple(found[u].value for u in UNKNOWNS))
    assert met <= right
    assert len(met) >= min(len(right), 10) * 0.7


def test_what_is_fixed_may_be_large() -> None:
    problem = Sizes(UNKNOWNS, 3, (M - N,), (M, N, K), (N * K,))
    found = problem.found(Drawn(0), {UNKNOWNS[0]: 1000}, {})
    assert found is not None
    assert found[UNKNOWNS[0]].value == 1000


def test_extents_that_others_exceed_are_left_out() -> None:
    assert largest([M, M * N, M * N * 2 + K, K]) == (M, M * N * 2 + K)
