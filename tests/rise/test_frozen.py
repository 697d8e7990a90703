"""Nodes that are filled at once behave as frozen dataclasses do, also in another process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from rise.frozen import Remembers, cached_property, changed, filled_at_once, hashed_once
from rise.nat import Nat, variable


@filled_at_once
@dataclass(frozen=True, slots=True)
class Node(Remembers):
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


def test_a_changed_node_has_the_other_fields() -> None:
    node = Node(1)
    assert changed(node) == node and changed(node, first=2) == Node(2)
    assert changed(node, second="c", first=3) == Node(3, "c") and node == Node(1)
    with pytest.raises(TypeError, match="`third`"):
        changed(node, third=3)


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


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Named(Remembers):
    name: str
    others: dict[str, int] = field(default_factory=dict, hash=False)


def test_a_hash_is_computed_once_and_again_in_another_process() -> None:
    node = Named("a")
    assert hash(node) == hash(Named("a")) and node in {Named("a")} and node != Named("b")
    text = (
        "import pickle, sys; from tests.rise.test_frozen import Named;"
        "print(pickle.loads(sys.stdin.buffer.read()) in {Named('a')})"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    result = subprocess.run(
        [sys.executable, "-c", text], input=pickle.dumps(node), capture_output=True, env=environment
    )
    assert result.stdout.decode().strip() == "True"


def test_what_is_changed_is_as_if_it_had_been_made_so() -> None:
    node = Node(1, "c")
    assert node.twice == 2
    new = changed(node, first=5)
    assert new == Node(5, "c") and new.twice == 10


def test_a_default_that_is_made_is_made_for_each() -> None:
    first, second = Named("a"), Named("b")
    first.others["x"] = 1
    assert (first.others, second.others, Named("c", {"y": 2}).others) == ({"x": 1}, {}, {"y": 2})
