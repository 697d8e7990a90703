"""A process that answers lines as the panel's worker does, and can be slow, silent, or end."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

began = []
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked["params"]
    began.append(params.get("name", method))
    if "started" in params:
        Path(params["started"]).touch()
    match method:
        case "end":
            sys.exit(3)
        case "noise":
            print("this is no JSON")
        case "until":
            while not Path(params["file"]).exists():
                time.sleep(0.005)
        case "never":
            time.sleep(10_000)
    if method != "noise":
        print(json.dumps({"id": asked["id"], "result": {"process": os.getpid(), "began": began}}))
    sys.stdout.flush()
