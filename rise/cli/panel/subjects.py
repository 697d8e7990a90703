"""The definition that a request is about: checked, at its sizes, derived. The last few are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rewrites.derivation import programs
from rewrites.result import Success
from rise.check.program import Checked, real_path
from rise.cli.options import TARGET
from rise.cli.panel.request import Asked
from rise.cli.stages import Subject, building, derived
from rise.errors import together
from rise.expr import Definition, Expr
from rise.lsp.incremental import Incremental
from rise.normal import data_flow
from rise.source import Source, without_mark
from strategies.auto import Plan, auto

KEPT = 4  # a cursor goes back and forth between few definitions


@dataclass(frozen=True)
class Derivation:
    """What `auto` makes of a definition.

    wholes: the program before the first step, and after each
    """

    subject: Subject
    target: str
    plan: Plan
    success: Success
    wholes: tuple[Expr, ...]


@lru_cache(KEPT)
def subject_of(asked: Asked) -> Subject:
    """The definition and its sizes. RiseError where it, or what it uses, is wrong."""
    return Subject(_definition(asked, checked(asked)), dict(asked.sizes))


def checked(asked: Asked) -> Checked:
    texts = dict(asked.texts)
    loader = Incremental(texts)
    text = texts.get(real_path(asked.path))
    source = loader.read(asked.path) if text is None else Source(str(asked.path), without_mark(text))
    return loader.check(source, asked.folder)


def _definition(asked: Asked, found: Checked) -> Definition:
    """The definition if it is right, whatever is wrong elsewhere; else all mistakes."""
    if asked.name in found.definitions:
        return found.definitions[asked.name]
    if found.mistakes:
        raise together(found.mistakes)
    return found.program[asked.name]


@lru_cache(KEPT)
def program_of(asked: Asked) -> Expr:
    """The definition at its sizes, in the normal form in which rules are applied."""
    return data_flow(subject_of(asked).program)


@lru_cache(KEPT)
def derivation_of(asked: Asked) -> Derivation:
    """RiseError where no strategy derives the program."""
    chosen, target = subject_of(asked), asked.target or _present()
    strategy = auto(target=target).first_that(building(chosen))
    success = derived(chosen.program, strategy)
    start = program_of(asked)
    plan = strategy.choice(start)
    return Derivation(chosen, target, plan, success, (start, *programs(start, success)))


def _present() -> str:
    from codegen.execute import present_target

    return present_target() or TARGET
