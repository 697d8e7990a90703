"""The process that evaluates a comment for the language server, after it has imported the modules given."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from rise.lsp.evaluate import main

if __name__ == "__main__":
    with redirect_stdout(sys.stderr):  # what they print is no answer
        for module in sys.argv[1:]:
            from strategies.user_defined import imported  # late: few have any

            imported(module)
    main()
