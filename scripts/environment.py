"""The virtual environments of this checkout: one below ``.venv`` for each lock file and Python version.

Run as ``python environment.py SET``, it makes sure that ``.venv/SET-VERSION`` holds exactly what
``requirements/SET.txt`` pins, and prints its ``bin`` directory; everything it has to say goes to standard error.
An environment that is right already costs a few file reads. It is made under a lock and stamped last, so that
runs at the same time and runs that were killed leave no half-made one behind. Standard library only: it runs
before anything is installed.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
TOOLS_ONLY = "lock"
"""The one set that serves to make the others; it does without the project itself."""


class SetupFailed(Exception):
    """A step failed; the message says which, with what the tool printed."""


def main(arguments: Sequence[str]) -> int:
    """Prepare the environment of one set; return the exit code."""
    sets = sorted(lock.stem for lock in LOCKS.glob("*.txt"))
    if len(arguments) != 1 or arguments[0] not in sets:
        say(f"usage: environment.py {{{','.join(sets)}}}")
        return 2
    try:
        sys.stdout.write(f"{prepare(arguments[0])}\n")
    except SetupFailed as failure:
        say(str(failure))
        return 1
    except OSError as error:
        say(f"cannot set up the environment: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def prepare(name: str) -> Path:
    """Make the environment of a set right, and return its ``bin`` directory."""
    home = ROOT / ".venv" / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    home.parent.mkdir(exist_ok=True)
    lock = LOCKS / f"{name}.txt"
    packages = digest(lock.read_bytes(), sys.version.encode(), os.fsencode(sys.base_prefix), os.fsencode(home))
    project = digest(packages.encode(), (ROOT / "pyproject.toml").read_bytes())
    stamp = home / "stamp.json"
    with exclusive(home.with_name(f"{home.name}.lock")):
        done = read_stamp(stamp)
        if done.get("packages") != packages:
            shutil.rmtree(home, ignore_errors=True)
            install_packages(home, lock)
            write_stamp(stamp, packages=packages)
        if name != TOOLS_ONLY and done.get("project") != project:
            install_project(home)
            write_stamp(stamp, packages=packages, project=project)
    return home / "bin"


def install_packages(home: Path, lock: Path) -> None:
    """Create an empty environment, and install what the lock file pins, checking every hash."""
    say(f"making {home.relative_to(ROOT)} with Python {sys.version.split()[0]}")
    run([sys.executable, "-I", "-m", "venv", str(home)])
    say(f"installing what {lock.relative_to(ROOT)} pins")
    # A wheel is unpacked; a source distribution would run build tools that no lock pins.
    pip(home, "--require-hashes", "--only-binary=:all:", "-r", str(lock))


def install_project(home: Path) -> None:
    """Install this checkout as it stands, so that edits take effect at once."""
    say("installing semindex from this checkout")
    pip(home, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def pip(home: Path, *arguments: str) -> None:
    """Run ``pip install`` of an environment."""
    run([str(home / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check", "install", "-q", *arguments])


def run(command: Sequence[str]) -> None:
    """Run a step silently; raise SetupFailed with all it printed if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace").rstrip()
        raise SetupFailed(f"{output}\nsemindex: this step failed: {' '.join(command)}")


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file; the kernel frees it when the holder ends, however it ends."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run that sets up the same environment")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read_stamp(path: Path) -> dict[str, str]:
    """Return what an environment says it holds; nothing if it was never finished."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_stamp(path: Path, **digests: str) -> None:
    """Record what an environment holds from now on, in one step."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(digests))
    draft.replace(path)


def digest(*parts: bytes) -> str:
    """Return one digest of several byte strings."""
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def say(message: str) -> None:
    """Tell the person who waits."""
    sys.stderr.write(f"semindex: {message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
