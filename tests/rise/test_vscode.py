"""The extension in Visual Studio Code itself, in a browser: only where one is installed for this test.

editors/vscode/real/install.sh FOLDER
RISE_VSCODE=FOLDER python -m pytest tests/rise/test_vscode.py
RISE_VSCODE=FOLDER python -m tests.rise.test_vscode          # takes the pictures of the documentation again
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from PIL import Image

from tests.support.browser import CHROMIUM
from tests.support.node import NODE
from tests.support.pictures import LARGEST, PICTURES, SCHEMES, check_picture

DRIVE = Path(__file__).parents[2] / "editors" / "vscode" / "real" / "drive.mjs"
INSTALLED = os.environ.get("RISE_VSCODE", "")
ENTRY = "node_modules/code-server/out/node/entry.js"
THEMES = {"light": "Default Light Modern", "dark": "Default Dark Modern"}
SHOWN = {"light": ("Rules here", "reduceMap"), "dark": ("CUDA", "product_kernel")}
PATIENCE = 30  # seconds until the server answers
PROGRAM = """// the product of two matrices
def product(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16) =
  A |> map(row =>
    B |> transpose |> map(col =>
      zip(row)(col) |> map((a, b) => f32(a) * f32(b)) |>
        reduce(+, 0)))

// a·x + y for each pair, and 0 where that is negative
def blend(n: Nat)(a: f32, xs: n.f32, ys: n.f32) =
  zip(xs)(ys) |> map((x, y) => a * x + y) |> max(0)
"""


@contextmanager
def server(folder: Path, scheme: str) -> Iterator[str]:
    """The address of a Visual Studio Code with the extension, which is as new as this scheme of colours."""
    settings = {
        "rise.pythonPath": sys.executable, "rise.target": "sm_90a", "rise.askForSizes": False,
        "workbench.colorTheme": THEMES[scheme], "workbench.startupEditor": "none",
        "security.workspace.trust.enabled": False, "telemetry.telemetryLevel": "off",
        "editor.minimap.enabled": False, "files.autoSave": "off", "breadcrumbs.enabled": False,
        "window.commandCenter": False, "workbench.tips.enabled": False, "editor.autoClosingBrackets": "never",
        "editor.autoIndent": "none",
    }  # fmt: skip
    user = folder / "user" / "User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    entry, extensions = (f"{INSTALLED}/{part}" for part in (ENTRY, "extensions"))
    command: list[str | Path] = [
        NODE or "", entry, "--auth", "none", "--bind-addr", address, "--user-data-dir", folder / "user",
        "--extensions-dir", extensions, "--disable-telemetry", "--disable-update-check",
        "--disable-workspace-trust", "--config", folder / "config.yaml",
    ]  # fmt: skip
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError), urlopen(f"http://{address}/healthz"):
                break
            time.sleep(0.2)
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait()


def driven(folder: Path, scheme: str) -> tuple[dict[str, Any], Image.Image]:
    """What was seen there, and a picture of it."""
    program, taken = folder / "programs" / "product.rise", folder / "picture.png"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    with server(folder, scheme) as address:
        command: list[str | Path] = [
            NODE or "",
            DRIVE,
            CHROMIUM or "",
            address,
            program.parent,
            program.name,
            taken,
            *SHOWN[scheme],
        ]
        done = subprocess.run(
            command, cwd=INSTALLED, capture_output=True, text=True, timeout=180, check=False
        )
    assert done.returncode == 0, done.stderr
    assert program.read_text(encoding="utf-8") == PROGRAM, "the text was changed in the editor alone"
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen, Image.open(taken).convert("RGB").quantize(64)


@pytest.mark.skipif(not (INSTALLED and NODE and CHROMIUM), reason="no Visual Studio Code in RISE_VSCODE")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_extension_in_visual_studio_code(tmp_path: Path, scheme: str) -> None:
    seen, image = driven(tmp_path, scheme)
    assert "the number 0 is no `n.f32`" in seen["problems"] and "product.rise" in seen["problems"]
    assert "R0305" not in seen["mended"]
    assert [text.split() for text in seen["lenses"]] == [
        ["run", "|", "check", "|", "derive", "|", "compile"]
    ] * 2
    text = seen["text"].replace("\xa0", " ")
    assert "row: k.f16 =>" in text and "B: k.n.f16): m.n.f32 =" in text, "types that are not in the file"
    for shown in ("product.rise:2:5", "at the cursor: reduce", SHOWN[scheme][1]):
        assert shown in seen["panel"].replace("\n", " "), shown
    check_picture(image, scheme)


@pytest.mark.skipif(not INSTALLED, reason="no Visual Studio Code in RISE_VSCODE")
def test_pictures_are_small() -> None:
    assert all((PICTURES / f"vscode-{scheme}.png").stat().st_size < LARGEST for scheme in SCHEMES)


def main() -> None:
    for scheme in SCHEMES:
        with tempfile.TemporaryDirectory() as folder:
            driven(Path(folder), scheme)[1].save(PICTURES / f"vscode-{scheme}.png", optimize=True)


if __name__ == "__main__":
    main()
