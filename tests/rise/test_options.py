"""The command line as a language: an option of one name means one thing, and everything has help."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

import pytest

from rise.cli import options
from rise.cli.arguments import parser

Action = argparse.Action
FACTS = ("help", "metavar", "type", "default", "nargs", "dest", "choices")
# what differs between commands, and why
EXCEPTIONS: Mapping[str, tuple[set[str], str]] = {
    "--strategy": ({"default"}, "`tune` needs parameters, and `derive` is for single strategies"),
    "--top": ({"default"}, "`tune` searches one program, `bench` many"),
    "--check": ({"help", "default"}, "`fmt --check` is what other formatters call it"),
    "--plot": ({"help", "metavar", "type", "default", "nargs"}, "`bench` draws several, with its results"),
}  # fmt: skip


def parsers() -> dict[str, argparse.ArgumentParser]:
    top = parser()
    commands = next(a.choices for a in top._actions if isinstance(a, argparse._SubParsersAction))
    return {"rise": top, **commands}


def options_of(made: argparse.ArgumentParser) -> Iterator[tuple[str, Action]]:
    yield from ((option, action) for action in made._actions for option in action.option_strings)


def named() -> dict[str, dict[str, Action]]:
    """For each option the commands that have it."""
    found: dict[str, dict[str, Action]] = {}
    for command, made in parsers().items():
        for option, action in options_of(made):
            found.setdefault(option, {})[command] = action
    return found


def differing() -> set[tuple[str, str]]:
    return {
        (option, fact)
        for option, actions in named().items()
        for fact in FACTS
        if len({repr(getattr(action, fact)) for action in actions.values()}) > 1
    }


def test_an_option_of_one_name_is_the_same_in_all_commands() -> None:
    assert sum(len(actions) > 1 for actions in named().values()) > 20
    assert differing() == {(option, fact) for option, (facts, _) in EXCEPTIONS.items() for fact in facts}


def test_a_second_meaning_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = iter(["of inputs", *["another"] * 20])

    class Different(dict[str, Mapping[str, object]]):
        def __getitem__(self, name: str) -> Mapping[str, object]:
            given = super().__getitem__(name)
            return {**given, "help": next(texts)} if name == "--seed" else given

    monkeypatch.setattr(options, "OPTIONS", Different(options.OPTIONS))
    assert ("--seed", "help") in differing()


def test_every_argument_has_help() -> None:
    for command, made in parsers().items():
        for action in made._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help and action.help != argparse.SUPPRESS, f"{command}: {action.dest}"


def test_every_declared_option_is_of_some_command_and_few_are_short() -> None:
    assert options.OPTIONS.keys() <= named().keys()
    assert {option for option in named() if len(option) == 2} == {"-h", "-o"}


def test_helps_are_written_out() -> None:
    """As argparse does: a wrong placeholder would be an error."""
    for made in parsers().values():
        assert "%(" not in made.format_help()
