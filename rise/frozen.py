"""Frozen dataclasses of which a compilation makes millions: how they are filled, and what they remember."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    cached_property = functools.cached_property
else:

    class cached_property:  # noqa: N801  # as in `functools`
        """That of Python 3.12: 3.11 takes a lock, although two threads would only compute the same value."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value


def filled_at_once(kind: type[T]) -> type[T]:
    """A frozen dataclass whose constructor writes the fields where they are kept, without a call for each.

    No field has a default factory.
    """
    own: Any = kind
    given = {f"default_{f.name}": f.default for f in fields(own) if f.default is not MISSING}
    parameters = [f"{f.name}=default_{f.name}" * (f.default is not MISSING) or f.name for f in fields(own)]
    lines = [f"def __init__(self, {', '.join(parameters)}):", "    kept = self.__dict__"]
    lines += [f"    kept[{f.name!r}] = {f.name}" for f in fields(own)]
    lines += ["    self.__post_init__()"] * hasattr(own, "__post_init__")
    namespace = dict(given)
    exec("\n".join(lines), namespace)
    own.__init__ = namespace["__init__"]
    return kind


def changed(node: T, **new: Any) -> T:
    """What `dataclasses.replace` gives, of a node all of whose fields are filled by its constructor."""
    for name in _names(type(node)):
        if name not in new:
            new[name] = getattr(node, name)
    return type(node)(**new)


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def hashed_once(kind: type[T]) -> type[T]:
    """A frozen dataclass that computes the hash of an object once: its parts do not change."""
    own: Any = kind
    compute = own.__hash__

    def remembered(self: Any) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = compute(self)
        return int(known)

    def kept(self: Any) -> dict[str, Any]:
        """What is copied to another process, where the same names have another hash."""
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    own.__hash__, own.__getstate__ = remembered, kept
    return kind
