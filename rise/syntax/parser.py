"""Text to syntax. lark (LALR) does the work; none of its objects leaves this module.

lark is imported on the first parse, so that a command that parses nothing does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from rise.source import Source
from rise.syntax.build import build, span
from rise.syntax.surface import FileSyntax, KindedName, Surface, SurfaceType, TypeDependent
from rise.types import Argument, Kind, Parameter, Scheme

if TYPE_CHECKING:
    from lark import Lark, Token


def parse_file(source: Source) -> FileSyntax:
    """A whole file: imports and definitions."""
    return cast(FileSyntax, _parse(source, "file"))


def parse_expression(source: Source) -> Surface:
    return cast(Surface, _parse(source, "expression"))


def parse_type(source: Source) -> SurfaceType:
    return cast(SurfaceType, _parse(source, "type"))


def parse_scheme(signature: str, defaults: Mapping[str, Argument]) -> Scheme:
    """A primitive's signature: its leading dependent parameters, and the type in which they are free."""
    from rise.syntax.resolve import bind, resolve_type

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


# --- lark -------------------------------------------------------------------------------------------


class _Unclosed(Exception):
    """A comment or a string that never ends; the token is all the text from where it starts."""

    def __init__(self, token: Token) -> None:
        super().__init__(token.type)
        self.token = token


def _refuse(token: Token) -> NoReturn:
    raise _Unclosed(token)


@cache
def _lark() -> Lark:
    from lark import Lark

    return Lark(
        Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8"),
        start=["file", "expression", "type"],
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=False,
        lexer_callbacks={"UNCLOSED_COMMENT": _refuse, "UNCLOSED_STRING": _refuse},
    )


def _parse(source: Source, start: str) -> Any:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from rise.syntax import mistakes

    try:
        tree = _lark().parse(source.text, start=start)
    except _Unclosed as error:
        raise mistakes.unclosed(span(source, error.token), error.token.type) from None
    except UnexpectedCharacters as error:
        raise mistakes.unexpected_character(source, error.line, error.column) from None
    except UnexpectedToken as error:
        could_follow = frozenset(error.interactive_parser.accepts())
        if error.token.type == "$END":
            raise mistakes.unexpected_end(source, could_follow) from None
        raise mistakes.unexpected_token(
            span(source, error.token), error.token.type, could_follow
        ) from None
    return build(source, tree)
