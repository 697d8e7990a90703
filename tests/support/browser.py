"""A page in a real browser, where one is installed: what a script sees there, and a picture of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from PIL import Image

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=20000",
)  # fmt: skip
# `seen` is what is to be reported; errors of the page's own script are, too
WATCHING = """<script>
const seen = {errors: []};
addEventListener("error", (event) => seen.errors.push(event.message));
const press = (key, where = document.body) =>
  where.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
</script>
"""
REPORTING = """<script>
addEventListener("load", async () => {
  try { %s } catch (error) { seen.errors.push(String(error.stack)); }
  const report = document.createElement("pre");
  report.id = "report";
  report.textContent = JSON.stringify(seen);
  document.body.append(report);
});
</script>
"""


def seen(page: str, script: str, folder: Path, nonce: str = "") -> dict[str, Any]:
    """What a script puts into `seen` after the page is loaded; `press(key)` presses a key.

    nonce: which scripts of the page have that may run
    """
    file = folder / "page.html"
    watching, reporting = _known(WATCHING, nonce), _known(REPORTING, nonce) % script
    watched = page.replace("<body>", "<body>" + watching).replace("</body>", reporting + "</body>")
    file.write_text(watched, encoding="utf-8")
    done = _started(file, folder, "--window-size=1600,950", "--dump-dom")
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    text = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    report: dict[str, Any] = json.loads(text)
    return report


def picture(
    page: str, script: str, folder: Path, dark: bool, nonce: str = "", size: str = "1280,720"
) -> Image.Image:
    """The page after a script has run, for somebody who prefers light or dark."""
    file, taken = folder / "page.html", folder / "page.png"
    ready = _known(f'<script>addEventListener("load", () => {{ {script} }});</script></body>', nonce)
    file.write_text(page.replace("</body>", ready), encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    _started(file, folder, f"--window-size={size}", "--hide-scrollbars", scheme, f"--screenshot={taken}")
    return Image.open(taken).convert("RGB").quantize(64)  # a quarter of the bytes


def _known(text: str, nonce: str) -> str:
    return text.replace("<script>", f'<script nonce="{nonce}">') if nonce else text


def _started(file: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'browser'}", *flags, file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
