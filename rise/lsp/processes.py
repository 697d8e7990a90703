"""Commands in processes of their own: they may take long, and the server answers meanwhile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """status: None where the time was up"""

    status: int | None
    output: str
    errors: str


async def finished(
    arguments: Sequence[str], folder: Path, seconds: float, given: str | None = None
) -> Finished:
    """Runs `python -m …` to its end, or until its time is up.

    `-P` keeps modules that lie in the folder from standing for others.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", *arguments, cwd=folder,
        stdin=asyncio.subprocess.DEVNULL if given is None else pipe, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    try:
        text = None if given is None else given.encode()
        output, errors = await asyncio.wait_for(process.communicate(text), seconds)
    except TimeoutError:
        return Finished(None, "", f"not done after {seconds:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Finished(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))
