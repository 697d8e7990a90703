"""How many registers of a thread the sums of products take."""

from __future__ import annotations

from math import prod

from codegen.ir import imperative as i
from codegen.ir.fragments import registers_of
from rise.types import Data, Fragment, shape


def sums(body: i.Command, product: type[i.MmaFragment | i.Wgmma]) -> int:
    """The registers of a thread in which such products are added up: those of warps, or of warpgroups."""
    products = [c.target for c in i.commands(body) if isinstance(c, product)]
    targets = {target.buffer for target in products if isinstance(target, i.Access)}
    return sum(_registers(c.type) for c in i.commands(body) if isinstance(c, i.New) and c.name in targets)


def _registers(type_: Data) -> int:
    sizes, fragment = shape(type_)
    if not isinstance(fragment, Fragment):
        return 0
    return prod(size.value or 0 for size in sizes) * registers_of(fragment)
