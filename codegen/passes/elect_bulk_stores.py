"""Elects the thread that starts bulk stores: one of the block, or one of each warpgroup or warp in a loop
over them. The same thread commits them and waits for them, because commit groups are per thread.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from rise.errors import TranslationError

SCOPES = {
    i.Level.CLUSTER: i.Scope.BLOCK,
    i.Level.BLOCK: i.Scope.BLOCK,
    i.Level.WARPGROUP: i.Scope.WARPGROUP,
    i.Level.WARP: i.Scope.WARP,
}


def elect_bulk_stores(function: i.Function) -> i.Function:
    """The pass. Raises TranslationError R0735 for a store in a map over threads."""
    return replace(function, body=_elect(function.body, i.Scope.BLOCK))


def _elect(command: i.Command, scope: i.Scope | None) -> i.Command:
    match command:
        case i.ParallelFor(level):
            scope = SCOPES.get(level)
        case i.Elected():
            if scope is None:
                raise _by_all(command)
            return replace(command, scope=scope)
    return i.with_inner(command, tuple(_elect(part, scope) for part in i.inner(command)))


def _by_all(command: i.Elected) -> TranslationError:
    origins = [c.origin for c in i.commands(command) if isinstance(c, i.BulkStore)]
    return TranslationError(
        "R0735",
        "every thread would start this bulk store; one thread must",
        origins[0] if origins else None,
        "use `bulkStore` outside maps over threads and lanes",
    )
