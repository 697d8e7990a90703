"""What a program is made of, counted: the regression test for a schedule."""

from __future__ import annotations

from collections import Counter

from rise.expr import Expr, Primitive, subterms


def structure(term: Expr) -> Counter[str]:
    """How often each primitive occurs: `structure(term)["mapBlock"] == 2`."""
    return Counter(part.name for part in subterms(term) if isinstance(part, Primitive))


def assert_structure(term: Expr, **expected: int) -> None:
    """Each of the primitives occurs so often; others may occur as they like.

    `assert_structure(term, mapBlock=2, tensorMatMulAdd=1, reduce=0)`. Raises AssertionError with all that
    differ.
    """
    found = structure(term)
    wrong = [f"{name}: {found[name]}, not {n}" for name, n in expected.items() if found[name] != n]
    assert not wrong, "the program has another structure: " + "; ".join(wrong)
