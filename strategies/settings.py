"""Parameters of strategies, declared once: name, type, default, meaning, what they may be and what they ask.

A dataclass of `Parameters` declares its fields by `parameter`, and `LAWS` between them. What takes such an
object becomes a strategy with these parameters by `parameters_from`: the registry, pages, refusals and the
search read the declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache, wraps
from operator import attrgetter
from textwrap import fill
from typing import Any, ClassVar, ParamSpec, Self, TypeVar, get_type_hints

from rise.errors import StrategyError, UsageError
from rise.frozen import Remembers
from strategies.core import Strategy, prints_as_call

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound="Parameters")
S = TypeVar("S", bound=Callable[..., Strategy])
WIDTH = 104  # of a docstring's lines
# where a parameter changes nothing, and why
Idle = tuple[Callable[[Any], bool], str]


def parameter(
    default: T,
    meaning: str,
    *,
    least: int | None = None,
    values: Sequence[T] = (),
    idle: Sequence[Idle] = (),
    always: bool = False,
) -> T:
    """A field of `Parameters`.

    least:  the smallest number that it may be
    values: all that it may be, where that is not every value of its type
    idle:   where it changes nothing: there a value other than the default is refused
    always: whether what is changed names it also at its default
    """
    declared = {"meaning": meaning, "least": least, "values": values, "idle": idle, "always": always}
    made: T = field(default=default, metadata=declared)
    return made


@dataclass(frozen=True)
class Law:
    """What parameters ask of each other.

    holds:  whether parameters are legal
    reason: why they are not; `{name}` in it stands for the value of a parameter
    hint:   what helps
    """

    holds: Callable[[Any], bool]
    reason: str
    hint: str | None = None
    code: str = "R0609"


class Parameters(Remembers):
    """The parameters of a strategy: the fields of a frozen dataclass."""

    __slots__ = ()
    LAWS: ClassVar[tuple[Law, ...]] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """With these values; those of other names are left out."""
        kind: Any = cls
        return cls(**{name: values[name] for name in declarations(kind) if name in values})

    @property
    def values(self) -> dict[str, Any]:
        kind: Any = type(self)
        return {name: getattr(self, name) for name in declarations(kind)}

    @property
    def changes(self) -> dict[str, Any]:
        """By name, what is not left at its default, and what is always named."""
        kind: Any = type(self)
        values = ((f, getattr(self, name)) for name, f in declarations(kind).items())
        return {f.name: v for f, v in values if v != f.default or f.metadata.get("always")}

    def refuse(self, strategy: str) -> None:
        """StrategyError for the first law that does not hold; UsageError for a value of another type."""
        kind: Any = type(self)
        for name, f in declarations(kind).items():
            if not _is_like(getattr(self, name), f.default):
                message = f"{strategy}: {name}={getattr(self, name)!r} is not like {f.default!r}"
                raise UsageError("R0012", message, hint=f"for example `{name}={f.default!r}`")
        for law in laws(kind):
            if not law.holds(self):
                message = f"{strategy}: {law.reason.format_map(self.values)}"
                raise StrategyError(law.code, message, hint=law.hint)

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in self.changes.items())
        return f"{type(self).__name__}({named})"


def _is_like(value: Any, default: Any) -> bool:
    """Whether a parameter is of its default's type, a tuple of as many values as the default."""
    if isinstance(default, tuple):
        return isinstance(value, tuple) and [*map(type, value)] == [*map(type, default)]
    return type(value) is type(default)


@cache
def declarations(kind: Any) -> Mapping[str, Field[Any]]:
    """The fields of `Parameters`, by name."""
    return {f.name: f for f in fields(kind)}


@cache
def laws(kind: Any) -> tuple[Law, ...]:
    """Of each parameter alone; between them; and of what changes nothing."""
    declared = declarations(kind).values()
    alone = (law for f in declared for law in _alone(f, attrgetter(f.name)))
    idle = (_of_idle(f, attrgetter(f.name), *each) for f in declared for each in f.metadata.get("idle", ()))
    return (*alone, *kind.LAWS, *idle)


def _alone(f: Field[Any], read: Callable[[Any], Any]) -> Iterator[Law]:
    least, values = f.metadata.get("least"), f.metadata.get("values")
    if least is not None:
        yield Law(lambda p: read(p) >= least, f"{f.name} is {{{f.name}}}, and must be at least {least}")
    if values:
        *most, last = (f"`{value}`" for value in values)
        reason = f"{f.name} is `{{{f.name}}}`; it can be {', '.join(most)} or {last}"
        yield Law(lambda p: read(p) in values, reason)


def _of_idle(f: Field[Any], read: Callable[[Any], Any], where: Callable[[Any], bool], why: str) -> Law:
    reason, hint = f"{f.name} changes nothing: {why}", f"leave `{f.name}` out"
    return Law(lambda p: read(p) == f.default or not where(p), reason, hint)


def documented(kind: Any) -> str:
    """What each parameter means, as a docstring lists it."""
    column = max(map(len, declarations(kind))) + 2
    lines = (
        fill(
            f.metadata.get("meaning", ""), WIDTH, initial_indent=f"{name}:".ljust(column),
            subsequent_indent=" " * column, break_on_hyphens=False, break_long_words=False,
        )
        for name, f in declarations(kind).items()
    )  # fmt: skip
    return "\n".join(lines)


def parameters_from(kind: Callable[P, K]) -> Callable[[Callable[[K], Strategy]], Callable[P, Strategy]]:
    """Makes of a function that takes such an object one that takes its fields, as `registry` reads them.

    It refuses what is not legal, and its docstring says what they mean.
    """

    def decorate(make: Callable[[K], Strategy]) -> Callable[P, Strategy]:
        @prints_as_call
        @wraps(make)
        def factory(*given: P.args, **named: P.kwargs) -> Strategy:
            parameters = kind(*given, **named)
            parameters.refuse(make.__name__)
            return make(parameters)

        made: Any = factory
        made.parameters = kind
        made.__doc__ = f"{inspect.getdoc(make)}\n\n{documented(kind)}"
        made.__signature__ = inspect.signature(kind).replace(return_annotation=Strategy)
        made.__annotations__ = {**get_type_hints(kind), "return": Strategy}
        return factory

    return decorate


def searched(**values: Sequence[Any]) -> Callable[[S], S]:
    """Declares the values of its parameters that a search tries a strategy with; the registry reads them.

    A parameter that is not named keeps its default. The strategy itself refuses values that do not fit each
    other, or a program.
    """

    def declare(make: S) -> S:
        make.searched = values  # type: ignore[attr-defined]  # what `registry.entry` looks at
        return make

    return declare
