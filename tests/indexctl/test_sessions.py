"""The shell sessions of the documents, run as their readers would run them: in a shell, on a terminal, in a home."""

import subprocess
from pathlib import Path

import pytest

from tests.architecture.checkout import ROOT
from tests.indexctl.sessions import Command, agrees, commands_of, masked, run

SHOP = {
    "src/sessions.py": '''"""Sessions of customers who have signed in."""

from datetime import datetime, timedelta

LIFETIME = timedelta(hours=12)


def remove_expired(sessions: dict[str, datetime], now: datetime) -> list[str]:
    """Delete the sessions that nobody has used within their lifetime, and return their ids."""
    expired = [key for key, used in sessions.items() if now - used > LIFETIME]
    for key in expired:
        del sessions[key]
    return expired
''',
    "src/payments/cards.py": '''"""Cards that customers pay with."""


def is_valid(number: str) -> bool:
    """Check the last digit of a card number by Luhn's formula."""
    digits = [int(digit) for digit in reversed(number)]
    doubled = [2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
''',
    "src/baskets.py": '''"""Baskets, and what is in them."""


def total(prices: dict[str, int], basket: dict[str, int]) -> int:
    """Add up what a basket costs, in cents."""
    return sum(prices[article] * count for article, count in basket.items())
''',
    "prices.json": '{"article": 1}\n' * 90_000,
    ".gitignore": "*.log\ndrafts/\n",
    "drafts/plan.py": "# Nothing to see yet.\n",
}
"""The shop of the documents."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the shop in ``~/src/shop``, a git repository."""
    shop = tmp_path.resolve() / "src" / "shop"
    for path, text in SHOP.items():
        file = shop / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git = [
        "git",
        "-c",
        "user.name=A Tester",
        "-c",
        "user.email=tester@example.invalid",
        "-c",
        "init.defaultBranch=main",
    ]
    for command in (["init"], ["add", "."], ["commit", "--message=A shop"]):
        subprocess.run([*git, *command], cwd=shop, check=True, capture_output=True)
    return tmp_path.resolve()


@pytest.mark.parametrize("document", ["README.md", "docs/indexctl.md"])
def test_every_command_of_a_session_prints_what_the_document_says(document: str, home: Path) -> None:
    commands = [each for each in commands_of(ROOT / document) if not each.text.startswith("scripts/")]

    done = 0
    for command, printed in run(commands, home):
        assert agrees(command, printed.replace(str(home), "/home/you")), f"$ {command.text}\n{masked(printed)}"
        done += 1
    assert done == len(commands) > 0


def test_a_document_that_says_something_else_is_found_out() -> None:
    command = Command("x", "shop  Indexed  3 files\ncreated 2026-11-30T19:43:06.832Z")

    assert agrees(command, "shop  Indexed  3 files\ncreated 2027-01-01T00:00:00.000Z\n")
    assert not agrees(command, "shop  Indexed  4 files\ncreated 2027-01-01T00:00:00.000Z\n")
    assert not agrees(command, "shop  Indexed  3 files\n")
    assert agrees(Command("x", "first\n…"), "first\nsecond\n")
    assert not agrees(Command("x", ""), "something\n")
