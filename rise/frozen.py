"""Frozen dataclasses of which a compilation makes millions: how they are filled, and what they remember."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")
K = TypeVar("K")

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


class Memory(dict[K, T]):
    """What a function gives for each argument: less to make than what `functools.cache` makes."""

    def __init__(self, function: Callable[[K], T]) -> None:
        self.function = function

    def __missing__(self, key: K) -> T:
        value = self[key] = self.function(key)
        return value


class Remembers:
    """A node with room for what is computed of it once, beside fields that have slots.

    Reading a slot takes a sixth of the time of reading a dictionary, in which everything would be else.
    """

    __slots__ = ("__dict__", "__weakref__", "_hash")


def filled_at_once(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots whose constructor fills them, without looking up how for each."""
    own: Any = kind
    namespace: dict[str, Any] = {"MISSING": MISSING}
    parameters, lines = [], []
    for f in fields(own):
        namespace[f"fill_{f.name}"] = getattr(own, f.name).__set__
        value = f.name
        if f.default_factory is not MISSING:
            namespace[f"make_{f.name}"] = f.default_factory
            value = f"make_{f.name}() if {f.name} is MISSING else {f.name}"
            parameters.append(f"{f.name}=MISSING")
        elif f.default is not MISSING:
            namespace[f"default_{f.name}"] = f.default
            parameters.append(f"{f.name}=default_{f.name}")
        else:
            parameters.append(f.name)
        lines.append(f"    fill_{f.name}(self, {value})")
    lines.append("    self.__post_init__()" if hasattr(own, "__post_init__") else "    pass")
    exec("\n".join([f"def __init__(self, {', '.join(parameters)}):", *lines]), namespace)
    made = namespace["__init__"]
    made.__annotations__ = own.__init__.__annotations__  # as a signature shows them
    own.__init__ = made
    return kind


def changed(node: T, **new: Any) -> T:
    """What `dataclasses.replace` gives, of a node all of whose fields are filled by its constructor."""
    kind: Any = type(node)
    return _changing(kind, tuple(new))(node, *new.values())  # type: ignore[no-any-return]  # it is a T


@functools.cache
def _changing(kind: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    """A function of a node and of new values for the fields of these names, without a dictionary of all."""
    own = [f.name for f in fields(kind)]
    if unknown := set(names).difference(own):
        raise TypeError(f"{kind.__name__} has no field `{min(unknown)}`")
    given = ", ".join(name if name in names else f"_node.{name}" for name in own)
    change: Callable[..., Any] = eval(f"lambda _node, {', '.join(names)}: _kind({given})", {"_kind": kind})
    return change


def hashed_once(kind: type[T]) -> type[T]:
    """A node that `Remembers` its hash: its parts do not change. Another process computes it again."""
    own: Any = kind
    compute, keep = own.__hash__, own._hash.__set__

    def remembered(self: Any) -> int:
        try:
            return self._hash  # type: ignore[no-any-return]  # which `keep` has filled
        except AttributeError:
            keep(self, compute(self))
            return self._hash  # type: ignore[no-any-return]

    own.__hash__ = remembered
    return kind
