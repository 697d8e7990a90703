"""An editor for tests: pygls' client, which talks to `rise lsp` through pipes, as plain functions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as t
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
LIMIT = 60  # seconds for an answer, so that a test ends


class Editor:
    """What an editor does and sees.

    mistakes: the last diagnostics of each file, with the version of the text that they are about
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.offers = t.ServerCapabilities()
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("editor", "1")
        self.mistakes: dict[str, t.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.edits: list[t.WorkspaceEdit] = []
        self.versions: dict[str, int] = {}
        # functions, since pygls keeps marks on what it is given
        self.client.feature(t.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda found: self._published(found))
        self.client.feature(t.WINDOW_SHOW_MESSAGE)(lambda shown: self.messages.append(shown.message))
        self.client.feature(t.WINDOW_LOG_MESSAGE)(lambda shown: None)
        self.client.feature(t.WORKSPACE_APPLY_EDIT)(lambda asked: self._edited(asked))

    def _published(self, found: t.PublishDiagnosticsParams) -> None:
        self.mistakes[found.uri] = found

    def _edited(self, asked: t.ApplyWorkspaceEditParams) -> t.ApplyWorkspaceEditResult:
        self.edits.append(asked.edit)
        return t.ApplyWorkspaceEditResult(applied=True)

    def wait(self, answer: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(answer, LIMIT))

    def start(self, *options: str) -> None:
        async def start() -> t.InitializeResult:
            await self.client.start_io(sys.executable, "-m", "rise.cli", "lsp", *options)
            item = t.ClientCompletionItemOptions(snippet_support=True)
            document = t.TextDocumentClientCapabilities(
                completion=t.CompletionClientCapabilities(completion_item=item)
            )
            result = await self.client.initialize_async(
                t.InitializeParams(
                    t.ClientCapabilities(text_document=document),
                    root_uri=self.folder.as_uri(),
                )
            )
            self.client.initialized(t.InitializedParams())
            return result

        self.offers = self.wait(start()).capabilities

    def stop(self) -> int:
        async def stop() -> int:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            server = self.client._server
            assert server is not None
            status = await server.wait()
            await self.client.stop()  # type: ignore[no-untyped-call]
            return status

        status = self.wait(stop())
        self.loop.close()
        return status

    # --- texts ---

    def open(self, text: str, name: str = "program.rise") -> str:
        """Opens a text, which need not be on disk; its URI."""
        uri = (self.folder / name).as_uri()
        self.versions[uri] = 1
        self.mistakes.pop(uri, None)
        document = t.TextDocumentItem(uri, "rise", 1, text)
        self.client.text_document_did_open(t.DidOpenTextDocumentParams(document))
        return uri

    def change(self, uri: str, text: str) -> None:
        self.versions[uri] += 1
        document = t.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        whole = t.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(t.DidChangeTextDocumentParams(document, [whole]))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(t.DidCloseTextDocumentParams(t.TextDocumentIdentifier(uri)))

    def diagnostics(self, uri: str) -> list[t.Diagnostic]:
        """Those of the text as it is now."""

        async def published() -> list[t.Diagnostic]:
            while uri not in self.mistakes or self.mistakes[uri].version != self.versions[uri]:
                await asyncio.sleep(0.002)
            return list(self.mistakes[uri].diagnostics)

        return self.wait(published())

    # --- questions ---

    def ask(self, method: str, params: Any) -> Any:
        async def answer() -> Any:
            return await self.client.protocol.send_request_async(method, params)

        return self.wait(answer())

    def at(self, method: str, uri: str, position: t.Position) -> Any:
        """A question about a place."""
        make = {
            t.TEXT_DOCUMENT_HOVER: t.HoverParams,
            t.TEXT_DOCUMENT_DEFINITION: t.DefinitionParams,
            t.TEXT_DOCUMENT_COMPLETION: t.CompletionParams,
            t.TEXT_DOCUMENT_PREPARE_RENAME: t.PrepareRenameParams,
        }[method]
        return self.ask(method, make(t.TextDocumentIdentifier(uri), position))


def position(text: str, mark: str, behind: bool = False) -> t.Position:
    """Where a mark first stands in a text, as editors count: in units of UTF-16."""
    offset = text.index(mark) + (len(mark) if behind else 0)
    before = text[:offset]
    line = before.rpartition("\n")[2]
    return t.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)


def covered(text: str, where: t.Range) -> str:
    """What an editor marks."""
    line = text.split("\n")[where.start.line].encode("utf-16-le")
    assert where.start.line == where.end.line
    return line[2 * where.start.character : 2 * where.end.character].decode("utf-16-le")
