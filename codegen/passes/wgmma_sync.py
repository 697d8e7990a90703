"""Products of warpgroups: when they start, and when they are waited for.

A product goes on while its warpgroup does something else. Those of one step of a pipeline are a group; the
step ends when the group before is complete, so that its operands can be overwritten, and what comes after
the loop uses the accumulators when all are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element, swizzle
from codegen.passes.analysis.dependences import target_of
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, constant, variable
from rise.source import Origin
from rise.types import Scalar

IN_FLIGHT = 1  # groups of products under way while the next is started


def group_products(function: i.Function) -> i.Function:
    """The pass."""
    news = {c.name: c for c in i.commands(function.body) if isinstance(c, i.New)}
    for command in i.commands(function.body):
        if isinstance(command, i.Wgmma):
            for operand in (command.a, command.b):
                if isinstance(operand, i.Tile) and (new := news.get(operand.buffer)) is not None:
                    along_k = operand.row_major == (operand is command.a)
                    _check_operand(operand, new, along_k, command.origin)
    return replace(function, body=_loops(function.body))


def _check_operand(tile: i.Tile, new: i.New, along_k: bool, origin: Origin) -> None:
    """A warpgroup reads rows that are as long as the pattern they are swizzled by: along k, or across it."""
    element, pattern = inner_element(new.type), swizzle(new.layout)
    size = element.bytes if isinstance(element, Scalar) else 1
    if not pattern or tile.leading != constant(pattern // size):
        raise TranslationError(
            "R0732",
            f"`{tile.buffer}` is no operand of a warpgroup: rows of 128, 64 or 32 bytes, swizzled by as many",
            origin,
            "copy it with `bulkCopy(swizzled(128))`, in panels of 128 bytes a row",
        )
    if not along_k and size != 2:
        raise TranslationError(
            "R0732",
            f"`{tile.buffer}` is no operand of a warpgroup: rows of `{element}` have to lie along k",
            origin,
            "store the matrix transposed; only elements of 16 bits can lie the other way",
        )


def _loops(command: i.Command) -> i.Command:
    if _is_pipeline(command):
        return _pipeline(command)
    if _of_warpgroups(command) and _products(command) and not any(map(_is_pipeline, i.commands(command))):
        return _around(command, _at_once)
    return i.with_inner(command, tuple(_loops(c) for c in i.inner(command)))


def _is_pipeline(command: i.Command) -> TypeGuard[i.For]:
    return isinstance(command, i.For) and command.role is i.Role.PIPELINE and _products(command)


def _of_warpgroups(command: i.Command) -> bool:
    return isinstance(command, i.ParallelFor) and command.level is i.Level.WARPGROUP


def _around(command: i.Command, change: Callable[[i.Command], i.Command]) -> i.Command:
    """A change of what each warpgroup does: of the body of a map over warpgroups, or inside of one."""
    return (
        replace(command, body=change(command.body)) if isinstance(command, i.ParallelFor) else change(command)
    )


def _products(command: i.Command) -> bool:
    return any(isinstance(c, i.Wgmma) for c in i.commands(command))


def _registers(command: i.Command) -> set[str]:
    """The buffers from which products take their first operand, if that is in registers."""
    products = (c for c in i.commands(command) if isinstance(c, i.Wgmma))
    return {product.a.buffer for product in products if isinstance(product.a, i.Access)}


def _fenced(command: i.Command, again: bool = False) -> i.Command:
    """Operands in registers are ready, once they are written, before the first product that they are in.

    again: a loop around writes them for every product, so each is waited for
    """
    if isinstance(command, i.Sequence):
        parts = command.commands
        first = next((n for n, part in enumerate(parts) if _registers(part)), 0)
        written = {getattr(target_of(c), "buffer", "") for part in parts[:first] for c in i.commands(part)}
        if _registers(command) & written:
            fence = _for_each(i.sequence(*parts[first:]), _ready)
            over = (i.WgmmaCommit(), i.WgmmaWait(0)) if again else ()
            return i.sequence(*parts[:first], fence, *parts[first:], *over)
    again = again or isinstance(command, i.For)
    return i.with_inner(command, tuple(_fenced(c, again) for c in i.inner(command)))


def _pipeline(loop: i.For) -> i.Command:
    """fence ; for k < n. (products ; commit ; wait for those of k - 1) ; wait"""
    found: list[i.Command] = []
    shared_out = any(map(_of_warpgroups, i.commands(loop)))

    def started(products: i.Command) -> i.Command:
        # operands in registers are written again in the next step
        pending = 0 if _registers(products) else IN_FLIGHT
        return i.sequence(i.WgmmaFence(), _fenced(products), i.WgmmaCommit(), i.WgmmaWait(pending))

    def step(command: i.Command) -> i.Command:
        one = _of_warpgroups(command) if shared_out else not isinstance(command, i.Sequence)
        if one and _products(command):
            found.append(command)
            return _around(command, started)
        return i.with_inner(command, tuple(step(c) for c in i.inner(command)))

    body, released = step(loop.body), i.sequence()
    if not _registers(loop):
        body, released = _released_late(body, loop)
    before = [_around(c, lambda b: _for_each(b, _fence)) for c in found]
    after = [_around(c, lambda b: _for_each(b, _wait)) for c in found]
    return i.sequence(*before, replace(loop, body=body), *after, released)


def _released_late(step: i.Command, loop: i.For) -> tuple[i.Command, i.Command]:
    """The slot of step k is empty when its products are over: after step k + 1 has started, or the loop."""
    k = NatVariable(loop.index)
    last: list[i.Command] = []

    def before(command: i.Command) -> i.Command:
        if isinstance(command, i.Arrive) and command.release:
            last.append(_at(command, {k: loop.count - 1}))
            return i.When(constant(0), variable(loop.index), _at(command, {k: variable(loop.index) - 1}))
        return i.with_inner(command, tuple(before(part) for part in i.inner(command)))

    return before(step), i.sequence(*last)


def _at(command: i.Command, values: dict[Atom, Nat]) -> i.Command:
    return i.rebuild(command, Nat, lambda n: n.substitute(values))


def _at_once(products: i.Command) -> i.Command:
    fence, wait = (_for_each(products, make) for make in (_fence, _wait))
    return i.sequence(fence, _fenced(products), i.WgmmaCommit(), wait)


def _fence(product: i.Wgmma) -> i.Command:
    return i.WgmmaFence((product.target,))


def _ready(product: i.Wgmma) -> i.Command:
    return i.WgmmaFence((product.a,)) if isinstance(product.a, i.Access) else i.Skip()


def _wait(product: i.Wgmma) -> i.Command:
    return i.WgmmaWait(0, (product.target,))


def _for_each(command: i.Command, make: Callable[[i.Wgmma], i.Command]) -> i.Command:
    """make(product) for the products of a command, in the loops that tell what it names apart."""
    match command:
        case i.Wgmma():
            return make(command)
        case i.For(index, _, body):
            inner = _for_each(body, make)
            used = {name for a in i.accesses_in(inner) for n in a.indices for name in n.variables}
            if index not in used:
                return inner
            return replace(command, body=inner, unroll=True, role=i.Role.SEQUENCE, label="accumulators")
        case _:
            return i.sequence(*(_for_each(c, make) for c in i.inner(command)))
