"""`python -m bench TABLE …` is `rise bench TABLE …`."""

import sys

from rise.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
