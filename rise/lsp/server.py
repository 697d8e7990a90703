"""The server: requests of an editor in, answers out. What they say is found out by the other modules.

A change is checked when no further one came for some milliseconds; a request in between is answered for the
text as it is then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as t
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from rise import __version__
from rise.errors import RiseError
from rise.lsp import evaluate, lenses, navigation
from rise.lsp.actions import fixes
from rise.lsp.completion import completions, flows_into
from rise.lsp.diagnostics import diagnostics
from rise.lsp.documents import Analysis, Documents
from rise.lsp.hover import hover
from rise.lsp.inlays import inlays
from rise.lsp.panel import Panel
from rise.lsp.positions import Positions, whole
from rise.lsp.processes import finished
from rise.lsp.tokens import LEGEND, semantic_tokens
from rise.lsp.uris import folder_of, path_of, uri_of
from rise.reported import all_reported
from rise.requests import MALFORMED, Members
from rise.source import Source
from rise.syntax.format import format_text

DELAY = 0.02  # seconds without a change, after which a text is checked
EVALUATION_SECONDS = 15.0
PANEL = "rise/panel"


class Refused(JsonRpcException):
    """A request that cannot be fulfilled, with our message: LSP's `RequestFailed`."""

    CODE = -32803
    MESSAGE = "Request Failed"


class RiseServer(LanguageServer):
    """The state of a server: the open documents, and which changes are not checked yet.

    modules: those of the user's own that declare primitives; other processes have to import them, too
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        super().__init__("rise", __version__, text_document_sync_kind=t.TextDocumentSyncKind.Full)
        self.modules = modules
        self.documents = Documents()
        self.panel = Panel(self.documents, modules)
        self.uris: dict[Path, str] = {}
        self.changes: dict[str, int] = {}
        self.options: Any = None  # what the editor gives at the start

    def analysis(self, uri: str) -> tuple[Analysis, Positions]:
        analysis = self.documents.analysis(path_of(uri))
        return analysis, self.positions(analysis.source)

    def positions(self, source: Source) -> Positions:
        return Positions(source, self.workspace.position_encoding or t.PositionEncodingKind.Utf16)

    def put(self, document: t.TextDocumentItem | t.VersionedTextDocumentIdentifier) -> None:
        """The text that the editor now has."""
        text = self.workspace.get_text_document(document.uri).source
        path = path_of(document.uri)
        self.documents.put(path, text)
        self.uris[path] = document.uri

    def publish(self, uri: str) -> None:
        """The mistakes of a file, and of the open ones that import it."""
        for other in (path_of(uri), *self.documents.importing(path_of(uri))):
            self.publish_one(self.uris.get(other, uri_of(other)))

    def publish_one(self, uri: str) -> None:
        found = diagnostics(*self.analysis(uri))
        version = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(t.PublishDiagnosticsParams(uri, found, version))


def initialized(server: RiseServer, params: t.InitializeParams) -> None:
    server.options = params.initialization_options


# --- documents ----------------------------------------------------------------------------------------


def opened(server: RiseServer, params: t.DidOpenTextDocumentParams) -> None:
    server.put(params.text_document)
    server.publish(params.text_document.uri)


async def changed(server: RiseServer, params: t.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    server.put(params.text_document)
    number = server.changes[uri] = server.changes.get(uri, 0) + 1
    await asyncio.sleep(DELAY)
    if server.changes.get(uri) == number:
        server.publish(uri)


def closed(server: RiseServer, params: t.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    server.documents.close(path_of(uri))
    server.uris.pop(path_of(uri), None)
    server.changes.pop(uri, None)
    server.text_document_publish_diagnostics(t.PublishDiagnosticsParams(uri, []))


def changed_on_disk(server: RiseServer, _: Any) -> None:
    """A file was saved, here or by another program: any open one may import it."""
    server.documents.forget()
    for uri in list(server.uris.values()):
        server.publish_one(uri)


# --- questions ----------------------------------------------------------------------------------------


def hovered(server: RiseServer, params: t.HoverParams) -> t.Hover | None:
    analysis, positions = server.analysis(params.text_document.uri)
    return hover(analysis, positions.place(params.position), positions)


def definition(server: RiseServer, params: t.DefinitionParams) -> t.Location | None:
    analysis, positions = server.analysis(params.text_document.uri)
    return navigation.definition(analysis, positions.place(params.position), positions)


def references(server: RiseServer, params: t.ReferenceParams) -> list[t.Location]:
    analysis, positions = server.analysis(params.text_document.uri)
    at, declaration = positions.place(params.position), params.context.include_declaration
    return navigation.references(server.documents, analysis, at, positions, declaration)


def prepare_rename(server: RiseServer, params: t.PrepareRenameParams) -> t.Range | None:
    analysis, positions = server.analysis(params.text_document.uri)
    found = navigation.renamable(analysis, positions.place(params.position))
    return positions.range(found.span) if found else None


def rename(server: RiseServer, params: t.RenameParams) -> t.WorkspaceEdit:
    analysis, positions = server.analysis(params.text_document.uri)
    at = positions.place(params.position)
    try:
        edits = navigation.rename(server.documents, analysis, at, params.new_name, positions)
    except RiseError as error:
        raise Refused(f"{error.message} ({error.code})") from None
    return t.WorkspaceEdit(changes=edits)


def symbols(server: RiseServer, params: t.DocumentSymbolParams) -> list[t.DocumentSymbol]:
    return navigation.symbols(*server.analysis(params.text_document.uri))


def complete(server: RiseServer, params: t.CompletionParams) -> list[t.CompletionItem]:
    analysis, positions = server.analysis(params.text_document.uri)
    at = positions.place(params.position)
    typed = params.context.trigger_character if params.context else None
    if typed in (" ", ">") and not flows_into(analysis, at):
        return []  # of all blanks, only one behind a pipe asks what may follow
    found = completions(analysis, at)
    document = server.client_capabilities.text_document
    item = document.completion.completion_item if document and document.completion else None
    return [candidate.item(bool(item and item.snippet_support)) for candidate in found]


def hints(server: RiseServer, params: t.InlayHintParams) -> list[t.InlayHint]:
    analysis, positions = server.analysis(params.text_document.uri)
    return inlays(analysis, params.range.start.line + 1, params.range.end.line + 1, positions)


def tokens(server: RiseServer, params: t.SemanticTokensParams) -> t.SemanticTokens:
    return semantic_tokens(*server.analysis(params.text_document.uri))


def formatted(server: RiseServer, params: t.DocumentFormattingParams) -> list[t.TextEdit] | None:
    """The whole text, if it changes; nothing where it does not parse."""
    analysis, positions = server.analysis(params.text_document.uri)
    try:
        text = format_text(analysis.source)
    except RiseError:
        return None
    source = analysis.source
    return [] if text == source.text else [t.TextEdit(positions.range(whole(source)), text)]


def actions(server: RiseServer, params: t.CodeActionParams) -> list[t.CodeAction]:
    uri = params.text_document.uri
    analysis, positions = server.analysis(uri)
    first, last = params.range.start.line + 1, params.range.end.line + 1
    offered = []
    for fix in fixes(server.documents, analysis, first, last):
        edit = t.WorkspaceEdit(changes={uri: [t.TextEdit(positions.range(fix.span), fix.text)]})
        of = [d for d in params.context.diagnostics if d.code == fix.mistake.code]
        offered.append(t.CodeAction(fix.title, t.CodeActionKind.QuickFix, diagnostics=of, edit=edit))
    for comment in evaluate.comments(analysis.source.text):
        if first <= comment.line <= last:
            command = t.Command("Evaluate", lenses.EVALUATE, arguments=[uri, comment.line - 1])
            offered.append(t.CodeAction("Evaluate", command=command))
    return offered


def lens(server: RiseServer, params: t.CodeLensParams) -> list[t.CodeLens]:
    analysis, positions = server.analysis(params.text_document.uri)
    return lenses.lenses(analysis, params.text_document.uri, positions)


async def panel(server: RiseServer, params: Any) -> dict[str, Any]:
    """A section of the panel: `{"result": …}`, or `{"error": …}` with all mistakes and their places."""
    try:
        return dict(await server.panel.answer(Members(_plain(params)), server.positions))
    except RiseError as error:
        if error.code == MALFORMED:
            raise JsonRpcInvalidParams(f"{error.message} ({error.code})") from None
        return {"error": {"code": error.code, "message": error.message, "mistakes": all_reported(error)}}


def _plain(params: Any) -> Any:
    """A request of ours as JSON has it; pygls makes objects of it."""
    if hasattr(params, "_asdict"):
        return {name: _plain(value) for name, value in params._asdict().items()}
    return [_plain(each) for each in params] if isinstance(params, list) else params


async def ended(server: RiseServer, _: Any) -> None:
    await server.panel.close()


# --- commands -----------------------------------------------------------------------------------------


def performing(command: str) -> Callable[..., Any]:
    """Runs a command of the command line on a definition; shows what it prints, and returns it."""

    async def perform(server: RiseServer, uri: str, name: str, *sizes: str) -> dict[str, Any]:
        try:
            outcome = await lenses.perform(
                server.documents, path_of(uri), command, name, sizes, server.modules
            )
        except RiseError as error:
            raise Refused(f"{error.message} ({error.code})") from None
        server.window_log_message(t.LogMessageParams(t.MessageType.Log, outcome.text))
        if not _shows_results(server):
            kind = t.MessageType.Info if outcome.finished.status == 0 else t.MessageType.Error
            server.window_show_message(t.ShowMessageParams(kind, outcome.text))
        return outcome.as_json()

    return perform


def _shows_results(server: RiseServer) -> bool:
    """Whether the editor shows what a command returns, as our extension of VS Code does."""
    return isinstance(server.options, dict) and bool(server.options.get("showsResults"))


async def evaluated(server: RiseServer, uri: str, line: int) -> str | None:
    """Writes the value of the expression in a comment below it; returns the value."""
    analysis, _ = server.analysis(uri)
    asked = next((c for c in evaluate.comments(analysis.source.text) if c.line == line + 1), None)
    if asked is None:
        return None
    path, folder = analysis.path, folder_of(analysis.path)
    text = evaluate.request(path, folder, server.documents.texts, [asked.expression])
    done = await finished(["rise.cli.evaluate", *server.modules], folder, EVALUATION_SECONDS, text)
    value = json.loads(done.output)[0] if done.status == 0 else f"error: {_last_line(done.errors)}"
    # the text may have changed meanwhile: the comment is looked for again
    now, positions = server.analysis(uri)
    same = [c for c in evaluate.comments(now.source.text) if c.expression == asked.expression]
    if same:
        comment = min(same, key=lambda c: abs(c.line - asked.line))
        await _write(server, uri, comment, value, positions)
    return str(value)


async def _write(
    server: RiseServer, uri: str, comment: evaluate.Comment, value: str, positions: Positions
) -> None:
    lines = evaluate.answer(comment.indent, value)
    last_line = positions.source.text.count("\n") + 1
    if comment.line == last_line:  # the text ends in the comment
        end = positions.position(comment.line, len(positions.source.line(comment.line)) + 1)
        edit = t.TextEdit(t.Range(end, end), "\n" + lines)
    else:
        below = t.Position(comment.line, 0), t.Position(comment.line + comment.answers, 0)
        edit = t.TextEdit(t.Range(*below), lines)
    await server.workspace_apply_edit_async(
        t.ApplyWorkspaceEditParams(t.WorkspaceEdit(changes={uri: [edit]}), "evaluate")
    )


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2] or "no answer"


# --- all of it ----------------------------------------------------------------------------------------

FEATURES: dict[str, tuple[Callable[..., Any], Any]] = {
    t.INITIALIZE: (initialized, None),
    t.TEXT_DOCUMENT_DID_OPEN: (opened, None),
    t.TEXT_DOCUMENT_DID_CHANGE: (changed, None),
    t.TEXT_DOCUMENT_DID_CLOSE: (closed, None),
    t.TEXT_DOCUMENT_DID_SAVE: (changed_on_disk, None),
    t.WORKSPACE_DID_CHANGE_WATCHED_FILES: (changed_on_disk, None),
    t.TEXT_DOCUMENT_HOVER: (hovered, None),
    t.TEXT_DOCUMENT_DEFINITION: (definition, None),
    t.TEXT_DOCUMENT_REFERENCES: (references, None),
    t.TEXT_DOCUMENT_PREPARE_RENAME: (prepare_rename, None),
    t.TEXT_DOCUMENT_RENAME: (rename, t.RenameOptions(prepare_provider=True)),
    t.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (symbols, None),
    t.TEXT_DOCUMENT_COMPLETION: (complete, t.CompletionOptions(trigger_characters=[">", " ", '"', "/"])),
    t.TEXT_DOCUMENT_INLAY_HINT: (hints, None),
    t.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (tokens, LEGEND),
    t.TEXT_DOCUMENT_FORMATTING: (formatted, None),
    t.TEXT_DOCUMENT_CODE_ACTION: (actions, t.CodeActionOptions([t.CodeActionKind.QuickFix])),
    t.TEXT_DOCUMENT_CODE_LENS: (lens, None),
    PANEL: (panel, None),
    t.SHUTDOWN: (ended, None),
}


def make(modules: Sequence[str] = ()) -> RiseServer:
    """A server that is not started yet."""
    server = RiseServer(modules)
    for feature, (answer, options) in FEATURES.items():
        server.feature(feature, options)(answer)
    for command in lenses.COMMANDS:
        server.command(command)(performing(command))
    server.command(lenses.EVALUATE)(evaluated)
    return server
