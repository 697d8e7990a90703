"""`python -m rise`, where the console script is not installed."""

import sys

from rise.cli.main import main

sys.exit(main())
