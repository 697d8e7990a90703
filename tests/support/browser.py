"""A page in a real browser, where one is installed: what a script sees there after keys were pressed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=20000", "--window-size=1600,950",
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


def seen(page: str, script: str, folder: Path) -> dict[str, Any]:
    """What a script puts into `seen` after the page is loaded; `press(key)` presses a key."""
    assert CHROMIUM is not None
    file = folder / "page.html"
    watched = page.replace("<body>", "<body>" + WATCHING).replace("</body>", REPORTING % script + "</body>")
    file.write_text(watched, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'browser'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    text = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    report: dict[str, Any] = json.loads(text)
    return report
