"""Nodes that exist once: equal trees are the same object, so what is built twice is stored once.

A program of n lines may have a type that takes 2^n characters to write out: a pair of a pair with itself,
and so on. Such a type is a small graph. Whoever walks it remembers what it has seen, by identity, and
takes time in proportion to the graph.
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakValueDictionary

from rise.frozen import cached_property

_NODES: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()


class Shared(type):
    """The metaclass of `Node`: a call gives the node that exists already, if there is one."""

    __match_args__: tuple[str, ...]  # dataclasses have it

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        made: Node | None = None
        if named or len(arguments) != len(cls.__match_args__):
            made = super().__call__(*arguments, **named)
            arguments = made.named_parts
        # nodes by identity: that equal ones are one object holds for them already
        key = (cls, *[id(part) if isinstance(part, Node) else part for part in arguments])
        found = _NODES.get(key)
        if found is None:
            found = made or super().__call__(*arguments)
            _fill_parts(found, arguments)
            _fill_hash(found, hash(found.compared))
            _NODES[key] = found
        return found


class Node(metaclass=Shared):
    """A frozen dataclass (with `eq=False`) whose objects are shared.

    parts: the values of its fields
    """

    __slots__ = ("__dict__", "__weakref__", "_hash", "parts")
    __match_args__: ClassVar[tuple[str, ...]]
    _hash: int
    parts: tuple[Any, ...]

    @property
    def named_parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    @property
    def compared(self) -> tuple[Any, ...]:
        """What is equal for equal nodes."""
        return type(self), *self.parts

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """By identity, but where what is inside has an equality of its own."""
        if self is other:
            return True
        if type(self) is not type(other) or self._hash != hash(other):
            return False
        return self.parts == other.parts

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), self.parts

    @cached_property
    def extent(self) -> int:
        """How many nodes and leaves there are where everything is written out."""
        return 1 + sum(part.extent if isinstance(part, Node) else 1 for part in self.parts)


# of slots, which are filled once
_SLOTS: Any = vars(Node)
_fill_parts, _fill_hash = _SLOTS["parts"].__set__, _SLOTS["_hash"].__set__
