"""Tiles of which data say how many rows are needed, so that a copy may leave the others out.

The number is in the program already, around the results: `prefixes` says how many rows of them are defined.
Here it comes to the rows that these are computed from, where `codegen.lower.box` finds it.
"""

from __future__ import annotations

from rewrites.algorithmic import MAP_FUSION
from rewrites.padding import PREFIXES_FIRST, PREFIXES_INWARD, PREFIXES_SECOND
from strategies.core import Strategy, applies, check, choice, contains, normalize, seq, sometd

NO_NUMBERS = "no `prefixes` says how many rows of a tile are needed"
_inward = choice(PREFIXES_FIRST, PREFIXES_SECOND, PREFIXES_INWARD)
needed_rows: Strategy = seq(
    contains(check(applies("prefixes"), "needed_rows", NO_NUMBERS)),
    # a function of the rows may be a map of its own, which is fused with the products' first
    sometd(choice(_inward, seq(check(applies("prefixes"), "needed_rows"), normalize(MAP_FUSION), _inward))),
)
