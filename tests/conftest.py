"""What all tests share: how properties are explored, and real git repositories that no one's configuration reaches."""

import os
import signal
import subprocess
from pathlib import Path

import hypothesis
import pytest

# No deadlines: a test that is slow once, on a busy machine, is no failure. CI must fail for the change alone, so it
# draws the same examples every time; people draw new ones.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def git_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository, whose git (run by the test or by the code) sees this environment and nothing else."""
    home = tmp_path / "home"
    repository = tmp_path / "repository"
    home.mkdir()
    repository.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "A Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.invalid",
        "GIT_COMMITTER_NAME": "A Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.invalid",
    }.items():
        monkeypatch.setenv(name, value)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=repository, check=True)
    return repository
