"""The chunker on mutated files for as long as one likes.

python -m qualification.fuzz_chunk [SECONDS] [--seed N]

Splices, cuts and repeats the files of the parity kit and the hostile ones until the time is over (default: 60 seconds)
and asserts what holds for any text; ends with 1 at the first that breaks it, after printing its seed. A parser that
hangs or crashes is no failure, since the pool can lose its processes: it is counted, and its seed printed. The tests of
every change do the same for a few seconds.
"""

import argparse
import itertools
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from tests.parsing import invariants
from tests.parsing.parity import KIT, goldens

HOSTILE = KIT.parent / "hostile"
FILES_PER_ROUND = 50
ROUND_CPU_SECONDS = 60.0
MOST_MUTATIONS = 12
LONGEST_SPLICE = 3000
"""Bytes."""

TOKENS = [
    *b"(){}[]<>\"'`;:,.=#/*\\\n\r\t \0",
    b"/*",
    b"*/",
    b"<!--",
    b'"""',
    b"```",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xf0\x9f\x98\x80",
]


def originals() -> list[Path]:
    """Return the files to mutate."""
    return [KIT / path for path in goldens()] + sorted(path for path in HOSTILE.iterdir() if path.suffix)


def mutate(data: bytes, others: list[Path], draw: random.Random) -> bytes:
    """Return the data with some of it cut, repeated, or replaced by tokens and pieces of other files."""
    for _ in range(draw.randint(1, MOST_MUTATIONS)):
        start = draw.randint(0, len(data))
        end = min(len(data), start + int(draw.expovariate(1 / 40)))
        match draw.randrange(4):
            case 0:
                piece = b""
            case 1:
                token = draw.choice(TOKENS)
                piece = token if isinstance(token, bytes) else bytes([token])
                piece *= int(draw.expovariate(1 / 4)) + 1
            case 2:
                other = draw.choice(others).read_bytes()
                at = draw.randint(0, len(other))
                piece = other[at : at + draw.randint(1, LONGEST_SPLICE)]
            case _:
                piece = data[start:end] * draw.randint(2, 30)
        data = data[:start] + piece + data[end:]
    return data


def run_round(seed: int) -> None:
    """Check some mutated files; raises AssertionError."""
    draw = random.Random(seed)
    files = originals()
    for _ in range(FILES_PER_ROUND):
        file, name = draw.choice(files), draw.choice(files).name
        if draw.random() < 0.8:
            name = file.name
        invariants.check(invariants.decoded(mutate(file.read_bytes(), files, draw)), f"/tree/{name}")


def run_apart(seed: int) -> int:
    """Run a round in a child process and return how it ended, as ``waitstatus_to_exitcode`` has it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.setitimer(signal.ITIMER_PROF, ROUND_CPU_SECONDS)
    try:
        run_round(seed)
    except AssertionError:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> int:
    """Check until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="seed of the first round")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    done = lost = 0
    for seed in itertools.count(arguments.seed):
        ending = run_apart(seed)
        if ending > 0:
            print(f"FAIL: seed {seed}")
            return 1
        if ending < 0:
            lost += 1
            print(f"seed {seed}: the process was ended by {signal.Signals(-ending).name}")
        done += 1
        if time.monotonic() > end:
            break
    print(f"PASS: {done * FILES_PER_ROUND:,} files; {lost} of {done} rounds lost to a parser")
    return 0


if __name__ == "__main__":
    sys.exit(main())
