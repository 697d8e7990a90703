"""Nodes that are filled at once behave as frozen dataclasses do, also in another process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from rise.frozen import cached_property, filled_at_once
from rise.nat import Nat, variable


@filled_at_once
@dataclass(frozen=True)
class Node:
    first: int
    second: str = "b"

    @cached_property
    def twice(self) -> int:
        made.append(self.first)
        return 2 * self.first


made: list[int] = []


def test_a_node_is_a_frozen_dataclass() -> None:
    node = Node(1)
    assert node == Node(first=1, second="b") and hash(node) == hash(Node(1))
    assert repr(node) == "Node(first=1, second='b')" and replace(node, second="c") == Node(1, "c")
    assert pickle.loads(pickle.dumps(node)) == node
    with pytest.raises(FrozenInstanceError):
        node.first = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Node()  # type: ignore[call-arg]


def test_a_property_is_computed_once() -> None:
    made.clear()
    node = Node(3)
    assert (node.twice, node.twice, made) == (6, 6, [3])


def test_a_size_is_found_by_its_hash_in_another_process() -> None:
    """Strings have other hashes there."""
    size = variable("n") * variable("m") + 1
    assert isinstance(size, Nat) and hash(size) == hash(variable("m") * variable("n") + 1)
    text = (
        "import pickle, sys; from rise.nat import variable;"
        "found = pickle.loads(sys.stdin.buffer.read());"
        "print({variable('n') * variable('m') + 1: 'found'}.get(found))"
    )
    result = subprocess.run(
        [sys.executable, "-c", text],
        input=pickle.dumps(size),
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=True,
    )
    assert result.stdout.decode().strip() == "found"
