"""The panel's page in a browser, where one is installed, with what the server answers for an example.

`python -m tests.rise.panel.test_page` takes the pictures of docs/editors.md again.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from PIL import Image

from rise.cli.viewer.page import embedded
from rise.lsp.server import PANEL, _plain
from tests.rise.lsp.client import Editor, position
from tests.support.browser import CHROMIUM, picture, seen
from tests.support.node import NODE, REASON
from tests.support.pages import assert_printed, blocks
from tests.support.pictures import LARGEST, PICTURES, SCHEMES, check_picture

ROOT = Path(__file__).parents[3]
VSCODE = ROOT / "editors" / "vscode"
NONCE = "abc"
# the program of docs/editors.md
PRODUCT = """\
// the product of two matrices
def product(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16) =
  A |> map(row =>
    B |> transpose |> map(col =>
      zip(row)(col) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)))
"""
STEP = 12
# of the themes that VS Code begins with
COLOURS = {
    "light": {
        "foreground": "#3b3b3b", "editor-background": "#ffffff", "descriptionForeground": "#717171",
        "textPreformat-foreground": "#1e3a6e", "textCodeBlock-background": "#f3f3f3",
        "panel-border": "#e5e5e5", "button-background": "#005fb8", "button-foreground": "#ffffff",
        "button-hoverBackground": "#0258a8", "input-background": "#ffffff", "input-foreground": "#3b3b3b",
        "input-border": "#cecece", "focusBorder": "#005fb8", "textLink-foreground": "#005fb8",
        "list-hoverBackground": "#f2f2f2", "list-activeSelectionBackground": "#e8e8e8",
        "list-activeSelectionForeground": "#000000", "editorLineNumber-foreground": "#6e7681",
        "editor-selectionBackground": "#add6ff", "editorError-foreground": "#e51400",
        "inputValidation-errorBackground": "#f2dede", "diffEditor-insertedTextBackground": "#9ccc2c55",
        "diffEditor-removedTextBackground": "#ff000033",
    },
    "dark": {
        "foreground": "#cccccc", "editor-background": "#1f1f1f", "descriptionForeground": "#9d9d9d",
        "textPreformat-foreground": "#a5c8ff", "textCodeBlock-background": "#2b2b2b",
        "panel-border": "#2b2b2b", "button-background": "#0078d4", "button-foreground": "#ffffff",
        "button-hoverBackground": "#026ec1", "input-background": "#313131", "input-foreground": "#cccccc",
        "input-border": "#3c3c3c", "focusBorder": "#0078d4", "textLink-foreground": "#4daafc",
        "list-hoverBackground": "#2a2d2e", "list-activeSelectionBackground": "#04395e",
        "list-activeSelectionForeground": "#ffffff", "editorLineNumber-foreground": "#6e7681",
        "editor-selectionBackground": "#264f78", "editorError-foreground": "#f14c4c",
        "inputValidation-errorBackground": "#5a1d1d", "diffEditor-insertedTextBackground": "#9ccc2c33",
        "diffEditor-removedTextBackground": "#ff000033",
    },
}  # fmt: skip


@cache
def answers() -> Mapping[str, Any]:
    """What the server says of a small program, section by section."""
    with TemporaryDirectory() as folder:
        editor = Editor(Path(folder))
        editor.start()
        uri = editor.open(PRODUCT, "product.rise")
        at = position(PRODUCT, "reduce")
        where = {"line": at.line, "character": at.character}
        common = {
            "textDocument": {"uri": uri},
            "position": where,
            "sizes": "m=128 n=128 k=64",
            "target": "sm_90a",
        }
        asked: dict[str, dict[str, Any]] = {
            "type": {}, "rules": {}, "derivation": {}, "kernel": {},
            "rule": {"rule": "blockReduce"}, "step": {"number": STEP},
        }  # fmt: skip
        found = {
            name: _plain(editor.ask(PANEL, {**common, "section": name, **more}))
            for name, more in asked.items()
        }
        assert editor.stop() == 0
        return {**found, "cursor": {"uri": uri, "position": where}}


@cache
def document() -> str:
    """The page as the extension makes it, with an editor that keeps what the page says."""
    assert NODE is not None
    media = (VSCODE / "media").as_uri()
    given = {
        "source": "file:", "nonce": NONCE, "style": f"{media}/panel.css",
        "scripts": [f"{media}/render.js", f"{media}/panel.js"],
    }  # fmt: skip
    script = f"process.stdout.write(require('./src/page.js').page({json.dumps(given)}))"
    done = subprocess.run([NODE, "-e", script], cwd=VSCODE, capture_output=True, text=True, check=True)
    stub = "const said = []; window.acquireVsCodeApi = () => ({postMessage: (one) => said.push(one)});"
    return done.stdout.replace("<body>", f'<body><script nonce="{NONCE}">{stub}</script>')


def received(sections: tuple[str, ...], scheme: str) -> str:
    """A script that sends answers to the page, which has the colours of a theme."""
    colours = embedded({f"--vscode-{name}": colour for name, colour in COLOURS[scheme].items()})
    return f"""
    const answers = {embedded(dict(answers()))};
    const root = document.documentElement.style;
    for (const [name, colour] of Object.entries({colours})) root.setProperty(name, colour);
    root.setProperty("--vscode-editor-font-family", "DejaVu Sans Mono, monospace");
    const tell = (data) => dispatchEvent(new MessageEvent("message", {{data}}));
    tell({{kind: "cursor", cursor: answers.cursor}});
    for (const section of {json.dumps(sections)}) {{
      const details = document.querySelector(`[data-section=${{section}}]`);
      if (details) details.open = true;
      tell({{kind: "answer", section, answer: answers[section]}});
    }}
    """


ALL = ("type", "rules", "derivation", "kernel")
USED = """
const $ = (id) => document.getElementById(id);
const focus = () => document.activeElement;
seen.text = $("type").innerText; seen.sizes = $("sizes").value;
seen.groups = [...document.querySelectorAll("#rules h2")].map((title) => title.innerText);
const rules = [...document.querySelectorAll("#rules .list")][0].querySelectorAll("button");
seen.stops = [...rules].map((rule) => rule.tabIndex);
rules[0].focus(); press("ArrowDown", focus()); seen.second = focus() === rules[1];
press("End", focus()); seen.last = focus() === rules[rules.length - 1];
press("Home", focus()); focus().click();
tell({kind: "rule", rule: focus().dataset.rule, answer: answers.rule});
seen.kept = focus().dataset.rule; seen.card = document.querySelector("#rules .card").innerText;
const steps = document.querySelector("#derivation .list");
steps.querySelector("button").focus(); press("ArrowDown", focus()); press("ArrowDown", focus());
seen.asked = said.filter((one) => one.kind === "step").map((one) => one.number);
tell({kind: "step", answer: answers.step});
seen.current = document.querySelector("[aria-current=true]").innerText;
seen.marked = document.querySelectorAll("#derivation del, #derivation ins").length;
seen.lines = document.querySelectorAll("#kernel .l").length;
seen.cuda = document.querySelectorAll("#kernel .marked").length;
const line = document.querySelector("#kernel button.l"); line.focus(); line.click();
seen.revealed = said.filter((one) => one.kind === "reveal").at(-1);
$("sizes").value = "n=3"; $("form").requestSubmit();
seen.given = said.filter((one) => one.kind === "sizes");
seen.ready = said[0];
tell({kind: "asked", section: "rules"}); seen.busy = $("rules").getAttribute("aria-busy");
tell({kind: "nonsense"}); tell(null);
const blocked = [];
addEventListener("securitypolicyviolation", (event) => blocked.push(event.violatedDirective));
const added = (name, more) => document.body.append(Object.assign(document.createElement(name), more));
added("script", {textContent: "window.broken = true"}); added("img", {src: "https://example.org/x.png"});
await new Promise((done) => setTimeout(done, 200));
seen.blocked = blocked.sort(); seen.broken = window.broken === true;
seen.sections = said.filter((one) => one.kind === "section").map((one) => one.section).sort();
seen.ground = getComputedStyle(document.body).backgroundColor;
seen.unnamed = [...document.querySelectorAll("button, input, summary")].filter((one) =>
  !(one.innerText || one.title || one.ariaLabel || one.labels?.length)).length;
"""
BROWSER = pytest.mark.skipif(CHROMIUM is None or NODE is None, reason=f"no Chromium, or {REASON}")


@BROWSER
def test_the_page_is_used_by_keys_and_clicks_alone(tmp_path: Path) -> None:
    found = seen(document(), received(ALL, "dark") + USED, tmp_path, NONCE)
    assert found["errors"] == []
    assert "-> m.k.f16 -> k.n.f16 -> m.n.f32" in found["text"]
    assert found["sizes"] == "m=128 n=128 k=64"
    assert [group.split(" ")[0] for group in found["groups"]] == ["Rules", "General"]
    assert found["stops"].count(0) == 1
    assert (found["second"], found["last"]) == (True, True)
    assert found["kept"]
    assert "becomes" in found["card"]
    assert found["asked"] == [1, 2]
    assert found["current"].startswith(str(STEP))
    assert found["marked"] == 2
    assert found["lines"] == len(answers()["kernel"]["result"]["text"])
    assert 0.2 < found["cuda"] / found["lines"] < 0.8  # those of the sum, at which the cursor is
    place = found["revealed"]["place"]
    assert place["uri"] == answers()["cursor"]["uri"]
    assert found["given"] == [{"kind": "sizes", "sizes": "n=3"}]
    assert found["ready"] == {"kind": "ready"}
    assert found["busy"] == "true"
    assert found["sections"] == ["derivation", "kernel", "rules"]
    assert found["ground"] == "rgb(31, 31, 31)"
    assert found["unnamed"] == 0


@BROWSER
def test_nothing_but_its_own_scripts_runs_and_nothing_is_loaded(tmp_path: Path) -> None:
    found = seen(document(), received(ALL, "light") + USED, tmp_path, NONCE)
    assert found["broken"] is False
    assert [each.split("-")[0] for each in found["blocked"]] == ["img", "script"]


# --- the documentation ------------------------------------------------------------------------------------

PRESSED = {
    "panel-rules": 'tell({kind: "rule", rule: "blockReduce", answer: answers.rule});',
    "panel-derivation": """tell({kind: "step", answer: answers.step});
      document.querySelector("[aria-current=true]").scrollIntoView({block: "center"}); scrollTo(0, 0);""",
}
# what is shown, as text: a line for each row, and for each line of CUDA the place that it leads to
AS_TEXT = """
const render = require("./media/render.js"), answers = JSON.parse(require("fs").readFileSync(0, "utf8"));
const signs = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'"};
const text = (html) => html
  .replace(/<button[^>]*class="l[^>]*title="([^:]*:\\d+:\\d+)[^>]*>(.*?)<\\/button>/g, "<div>$2  ← $1</div>")
  .replace(/<(button|div)/g, "\\n<$1")
  .replace(/<span class="n">(\\d+)<\\/span>/g, (_, number) => number.padStart(3) + " ")
  .replace(/<\\/(p|li|tr|h\\d|div|pre|nav)>/g, "\\n").replace(/<\\/t[dh]>/g, "  ").replace(/<[^>]*>/g, "")
  .replace(/&(amp|lt|gt|quot|#39);/g, (sign) => signs[sign])
  .split("\\n").map((line) => line.trimEnd()).filter((line) => line.trim()).join("\\n");
const opened = {blockReduce: answers.rule};
const shown = [render.type(answers.type), render.rules(answers.rules, opened),
  render.derivation(answers.derivation, answers.step), render.kernel(answers.kernel)];
process.stdout.write(shown.map(text).join("\\n") + "\\n");
"""


def transcript() -> str:
    assert NODE is not None
    script, given = AS_TEXT, json.dumps(dict(answers()))
    done = subprocess.run([NODE, "-e", script], cwd=VSCODE, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(NODE is None, reason=REASON)
def test_the_text_of_the_documentation_is_what_the_panel_shows() -> None:
    [expected] = blocks(ROOT / "docs" / "editors.md", "text")
    assert_printed(expected, transcript())


VIEWS = {
    "panel-rules": ("type", "rules"),
    "panel-derivation": ("type", "derivation"),
    "panel-kernel": ("kernel",),
}


def taken(view: str, scheme: str, folder: Path) -> Image.Image:
    script = received(VIEWS[view], scheme) + PRESSED.get(view, "")
    height = 1400 if view == "panel-kernel" else 900  # down to its products
    return picture(document(), script, folder, scheme == "dark", NONCE, f"760,{height}")


@BROWSER
@pytest.mark.parametrize("view", VIEWS)
def test_the_panel_has_the_colours_of_its_editor(tmp_path: Path, view: str) -> None:
    for scheme in SCHEMES:
        check_picture(taken(view, scheme, tmp_path), scheme)


def test_the_pictures_of_the_documentation_are_small_and_show_the_panel() -> None:
    text = (PICTURES.parent / "editors.md").read_text(encoding="utf-8")
    names = {f"{view}-{scheme}.png" for view in VIEWS for scheme in SCHEMES}
    assert {path.name for path in PICTURES.glob("panel-*.png")} == names
    for name in names:
        assert f"(pictures/{name})" in text
        assert (PICTURES / name).stat().st_size < LARGEST
        check_picture(Image.open(PICTURES / name), "dark" if "dark" in name else "light")


def take_pictures() -> None:
    for view in VIEWS:
        for scheme in SCHEMES:
            with TemporaryDirectory() as folder:
                taken(view, scheme, Path(folder)).save(PICTURES / f"{view}-{scheme}.png", optimize=True)


if __name__ == "__main__":
    take_pictures()
