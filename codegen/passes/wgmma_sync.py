"""Synchronises wgmma instructions: inserts fences, commits and waits.

A wgmma is asynchronous. The products of one pipeline step are a commit group. A step ends when the previous
group is complete, so that its operands can be overwritten; after the loop, all groups are waited for before
the accumulators are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element, swizzle
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, constant, variable
from rise.source import Origin
from rise.types import Scalar

IN_FLIGHT = 1  # commit groups that may be pending when the next one starts


def wgmma_sync(function: i.Function) -> i.Function:
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
    """An operand in shared memory has rows, along k or across it, of exactly one swizzle width."""
    element, pattern = inner_element(new.type), swizzle(new.layout)
    size = element.bytes if isinstance(element, Scalar) else 1
    if not pattern or tile.leading != constant(pattern // size):
        raise TranslationError(
            "R0732",
            f"`{tile.buffer}` is not an operand of wgmma: its rows must be swizzled, of 128, 64 or 32 bytes",
            origin,
            "copy it with `bulkCopy(swizzled(128))`, in panels of 128 bytes a row",
        )
    if not along_k and size != 2:
        raise TranslationError(
            "R0732",
            f"`{tile.buffer}` is not an operand of wgmma: rows of `{element}` must be contiguous along k",
            origin,
            "store the matrix transposed; only 16-bit elements may be contiguous along the other dimension",
        )


def _loops(command: i.Command) -> i.Command:
    if _is_pipeline(command):
        return _pipeline(command)
    if _is_warpgroup_loop(command) and _products(command) and not any(map(_is_pipeline, i.commands(command))):
        return _around(command, _synchronous)
    return i.with_inner(command, tuple(_loops(c) for c in i.inner(command)))


def _is_pipeline(command: i.Command) -> TypeGuard[i.For]:
    return isinstance(command, i.For) and command.role is i.Role.PIPELINE and _products(command)


def _is_warpgroup_loop(command: i.Command) -> bool:
    return isinstance(command, i.ParallelFor) and command.level is i.Level.WARPGROUP


def _around(command: i.Command, change: Callable[[i.Command], i.Command]) -> i.Command:
    """Applies a change to what each warpgroup executes: the body of a map over warpgroups, or the command."""
    return (
        replace(command, body=change(command.body)) if isinstance(command, i.ParallelFor) else change(command)
    )


def _products(command: i.Command) -> bool:
    return any(isinstance(c, i.Wgmma) for c in i.commands(command))


def _registers(command: i.Command) -> set[str]:
    """The buffers from which products take their first operand, if it is in registers."""
    products = (c for c in i.commands(command) if isinstance(c, i.Wgmma))
    return {product.a.buffer for product in products if isinstance(product.a, i.Access)}


def _fenced(command: i.Command, again: bool = False) -> i.Command:
    """Inserts a fence between the writes of register operands and the first product that reads them.

    again: an enclosing loop overwrites the operands for every product, so each product is waited for
    """
    if isinstance(command, i.Sequence):
        parts = command.commands
        first = next((n for n, part in enumerate(parts) if _registers(part)), 0)
        written = {getattr(i.target_of(c), "buffer", "") for part in parts[:first] for c in i.commands(part)}
        if _registers(command) & written:
            fence = _for_each(i.sequence(*parts[first:]), _ready)
            over = (i.WgmmaCommit(), i.WgmmaWait(0)) if again else ()
            return i.sequence(*parts[:first], fence, *parts[first:], *over)
    again = again or isinstance(command, i.For)
    return i.with_inner(command, tuple(_fenced(c, again) for c in i.inner(command)))


def _pipeline(loop: i.For) -> i.Command:
    """fence ; for k < n. (products ; commit ; wait for those of k - 1) ; wait"""
    found: list[i.Command] = []
    shared_out = any(map(_is_warpgroup_loop, i.commands(loop)))

    def started(products: i.Command) -> i.Command:
        # the next step overwrites operands in registers
        pending = 0 if _registers(products) else IN_FLIGHT
        return i.sequence(i.WgmmaFence(), _fenced(products), i.WgmmaCommit(), i.WgmmaWait(pending))

    def step(command: i.Command) -> i.Command:
        one = _is_warpgroup_loop(command) if shared_out else not isinstance(command, i.Sequence)
        if one and _products(command):
            found.append(command)
            return _around(command, started)
        return i.with_inner(command, tuple(step(c) for c in i.inner(command)))

    body, released = step(loop.body), i.sequence()
    if not _registers(loop):
        body, released = _release_late(body, loop)
    before = [_around(c, lambda b: _for_each(b, _fence)) for c in found]
    after = [_around(c, lambda b: _for_each(b, _wait)) for c in found]
    return i.sequence(*before, replace(loop, body=body), *after, released)


def _release_late(step: i.Command, loop: i.For) -> tuple[i.Command, i.Command]:
    """Releases the slot of step k when its products are complete: after step k + 1 starts, or at the end."""
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


def _synchronous(products: i.Command) -> i.Command:
    fence, wait = (_for_each(products, make) for make in (_fence, _wait))
    return i.sequence(fence, _fenced(products), i.WgmmaCommit(), wait)


def _fence(product: i.Wgmma) -> i.Command:
    return i.WgmmaFence((product.target,))


def _ready(product: i.Wgmma) -> i.Command:
    return i.WgmmaFence((product.a,)) if isinstance(product.a, i.Access) else i.Skip()


def _wait(product: i.Wgmma) -> i.Command:
    return i.WgmmaWait(0, (product.target,))


def _for_each(command: i.Command, make: Callable[[i.Wgmma], i.Command]) -> i.Command:
    """make(product) for each product, inside the loops whose indices `make` refers to."""
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
