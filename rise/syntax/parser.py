"""Text to syntax. lark (LALR) does the work; none of its objects leaves this module.

lark, and what is needed with it, is imported on the first parse: a command that parses nothing does
not pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rise.source import Source
from rise.types import Argument, Kind, Parameter, Scheme

if TYPE_CHECKING:
    from lark import Lark

    from rise.syntax.surface import FileSyntax, KindedName, Surface, SurfaceType


def parse_file(source: Source) -> FileSyntax:
    """A whole file: imports and definitions."""
    return cast("FileSyntax", _parse(source, "file"))


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
    # absent, unreadable or damaged: whatever it is, new tables are the answer
    with suppress(Exception), tables.open("rb") as file:
        return Lark.load(file)
    parser = Lark(
        grammar,
        start=["file", "expression", "type"],
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=False,
    )
    _keep(parser, tables)
    return parser


def _tables(grammar: str) -> Path:
    """Beside the bytecode, as far to be trusted; the name changes with all that they depend on."""
    import hashlib

    import lark

    made_by = f"{grammar}{lark.__version__}{sys.version}"
    digest = hashlib.sha256(made_by.encode()).hexdigest()[:16]
    return Path(cache_from_source(__file__)).with_name(f"grammar-{digest}.tables")


def _keep(parser: Lark, tables: Path) -> None:
    """Writes the tables where bytecode is written, whole or not at all; if it cannot, no matter."""
    from tempfile import NamedTemporaryFile

    if sys.dont_write_bytecode:
        return
    with suppress(OSError):
        tables.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=tables.parent, delete=False) as file:
            parser.save(file)
        Path(file.name).replace(tables)


def _parse(source: Source, start: str) -> Any:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from rise.syntax import mistakes
    from rise.syntax.build import build, span

    mistakes.check_closed(source)
    try:
        tree = _lark().parse(source.text, start=start)
    except UnexpectedCharacters as error:
        raise mistakes.unexpected_character(source, error.line, error.column) from None
    except UnexpectedToken as error:
        could_follow = frozenset(error.interactive_parser.accepts())  # type: ignore[no-untyped-call]
        if error.token.type == "$END":
            raise mistakes.unexpected_end(source, could_follow) from None
        extent = span(source, error.token)
        raise mistakes.unexpected_token(extent, error.token.type, could_follow) from None
    return build(source, tree)
