"""How many registers of a thread the sums of products take, and their operands."""

from __future__ import annotations

from math import prod

from codegen.ir import imperative as i
from codegen.ir.fragments import registers_of
from rise.types import Data, Fragment, Scalar, Space, shape

REGISTER = 4  # bytes


def sums(body: i.Command, product: type[i.MmaFragment | i.Wgmma]) -> int:
    """The registers of a thread in which such products are added up: those of warps, or of warpgroups."""
    products = [c.target for c in i.commands(body) if isinstance(c, product)]
    targets = {target.buffer for target in products if isinstance(target, i.Access)}
    return sum(_registers(c.type) for c in i.commands(body) if isinstance(c, i.New) and c.name in targets)


def operands(body: i.Command) -> int:
    """The registers of a thread for operands of the products of a warp: of a and of b, the most of each."""
    found = list(i.commands(body))
    products = [c for c in found if isinstance(c, i.MmaFragment)]
    arrays = [c for c in found if isinstance(c, i.New)]

    def most(sides: list[i.Expression]) -> int:
        names = {side.buffer for side in sides if isinstance(side, i.Access)}
        return max((_registers(new.type) for new in arrays if new.name in names), default=0)

    return most([product.a for product in products]) + most([product.b for product in products])


def numbers(body: i.Command) -> int:
    """The registers of a thread for the numbers that it keeps by itself: those of its largest array."""
    arrays = [c.type for c in i.commands(body) if isinstance(c, i.New) and c.space is Space.LOCAL]
    return max(map(_numbers, arrays), default=0)


def _numbers(type_: Data) -> int:
    sizes, element = shape(type_)
    each = -(-element.bytes // REGISTER) if isinstance(element, Scalar) else 0
    return each * prod(size.value or 0 for size in sizes)


def _registers(type_: Data) -> int:
    sizes, fragment = shape(type_)
    if not isinstance(fragment, Fragment) or not isinstance(fragment.element, Scalar):
        return 0
    elements = prod(size.value or 0 for size in sizes) * registers_of(fragment)
    return elements * fragment.element.bytes // REGISTER
