"""Text to syntax. lark (LALR) does the work; none of its objects leaves this module.

lark, and what is needed with it, is imported on the first parse: a command that parses nothing does
not pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rise.errors import together
from rise.kept import beside, checksum, keep, kept
from rise.source import Source, Span
from rise.types import Argument, Kind, Parameter, Scheme

if TYPE_CHECKING:
    from lark import Lark

    from rise.syntax.surface import FileSyntax, KindedName, Surface, SurfaceType


def parse_file(source: Source) -> FileSyntax:
    """A whole file: imports and definitions. A text that is none: all its ParseErrors as one error."""
    from rise.syntax.recover import recover

    found = recover(source)
    if found.mistakes:
        raise together(found.mistakes)
    return found.file


def parse_part(source: Source, part: Part) -> FileSyntax:
    """The imports and definitions of a part of a file, at their places in the file."""
    return cast("FileSyntax", _parse(source, "file", part))


def parse_expression(source: Source) -> Surface:
    return cast("Surface", _parse(source, "expression"))


def parse_type(source: Source) -> SurfaceType:
    return cast("SurfaceType", _parse(source, "type"))


def parse_scheme(signature: str, defaults: Mapping[str, Argument]) -> Scheme:
    """A primitive's signature: its leading dependent parameters, then the type below them."""
    from rise.syntax.resolve import bind, resolve_type
    from rise.syntax.surface import TypeDependent

    syntax = parse_type(Source("signature", signature))
    kinds: dict[str, Kind] = {}
    parameters: list[Parameter] = []
    while isinstance(syntax, TypeDependent):
        kinds = bind(syntax.parameters, kinds)
        parameters += [_parameter(p, kinds, syntax.implicit, defaults) for p in syntax.parameters]
        syntax = syntax.result
    return Scheme(tuple(parameters), resolve_type(syntax, kinds))


def _parameter(
    written: KindedName, kinds: Mapping[str, Kind], implicit: bool, defaults: Mapping[str, Argument]
) -> Parameter:
    return Parameter(written.name, kinds[written.name], implicit, defaults.get(written.name))


# --- lark ---------------------------------------------------------------------------------------

GRAMMAR = Path(__file__).with_name("grammar.lark")


@cache
def _lark() -> Lark:
    """The parser; its tables, which take far longer to make than to read, are kept between runs."""
    from lark import Lark

    grammar = GRAMMAR.read_text(encoding="utf-8")
    tables = _tables(grammar)
    known = kept(tables)
    if known is not None:
        # tables of another form than the library expects: new ones are the answer
        with suppress(Exception):
            return Lark.load(BytesIO(known))
    parser = Lark(
        grammar,
        start=["file", "expression", "type"],
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=False,
    )
    keep(tables, lambda: saved(parser))
    return parser


def saved(parser: Lark) -> bytes:
    """The tables of a parser."""
    made = BytesIO()
    parser.save(made)
    return made.getvalue()


def _tables(grammar: str) -> Path:
    """The name changes with all that they depend on."""
    import lark

    made_by = f"{grammar}{lark.__version__}{sys.version}"
    return beside(__file__, f"grammar-{checksum(made_by.encode()).hex()[:16]}.tables")


@dataclass(frozen=True)
class Part:
    """Some whole lines of a text, from a line (counted from 1) and an offset to another offset.

    follows: the keyword that stands behind it, if it is not the last part
    """

    line: int
    start: int
    end: int
    follows: str = ""


@lru_cache(maxsize=128)
def _parse(source: Source, start: str, part: Part | None = None) -> Any:
    """The nodes, which do not change: a text that is parsed again, as with each command, has the same."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from rise.syntax import mistakes
    from rise.syntax.build import build, span

    part = part or Part(1, 0, len(source.text))
    # messages look at what is around: brackets that are open above are none of this part's
    text = source.text[part.start : part.end]
    here = Source(source.name, text, part.line) if part.line > 1 or part.follows else source
    mistakes.check_closed(here)
    try:
        tree = _lark().parse(text, start=start)
    except UnexpectedCharacters as error:
        raise mistakes.unexpected_character(here, error.line + part.line - 1, error.column) from None
    except UnexpectedToken as error:
        could_follow = frozenset(error.interactive_parser.accepts())  # type: ignore[no-untyped-call]
        token = error.token
        if token.type != "$END":
            raise mistakes.unexpected_token(span(here, token), token.type, could_follow) from None
        if not part.follows:
            raise mistakes.unexpected_end(here, could_follow) from None
        line = part.line + text.count("\n")
        behind = Span(
            Source(source.name, text + part.follows, part.line), line, 1, line, 1 + len(part.follows)
        )
        raise mistakes.unexpected_token(behind, f"_{part.follows.upper()}", could_follow) from None
    return build(source, tree, part.line)
