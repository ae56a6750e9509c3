"""``python -m semindex``: the same as the console script."""

import sys

from semindex.cli import main

sys.exit(main())
