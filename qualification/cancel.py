"""The cancel sweep over a cell of real parts: SQLite, the embedded store, the model, the chunkers, real files.

python -m qualification.cancel [PLACES]

A cell starts, registers two trees, takes in edits, answers, releases one tree with purge, and ends; then once more
for each of 100 places, spread over the scheduler's steps of that life, cancelled there. After each, no process and no
descriptor may be left, what was acknowledged holds, and the next start ends with ledger, store and disk in agreement.
Stops at the first fault.
"""

import sys
import tempfile
from pathlib import Path

from semindex.testing.sweep import cancel_at_spread_steps
from tests.cell.life import lives_below

if __name__ == "__main__":
    places = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as scratch:
        steps = cancel_at_spread_steps(lives_below(Path(scratch)), places)
    print(f"cancelled at {len(steps)} steps from {steps[0]} to {steps[-1]}: nothing left, nothing lost")
