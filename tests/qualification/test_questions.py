import pytest

from qualification.questions import Outcome, Question, installed, packages, read_questions, recall

ACCEPTED = Question("where", ("core/run.py", "shrinking/"))


@pytest.mark.parametrize(
    ("found", "rank"),
    [
        (["core/run.py"], 1),
        (["a.py", "a.py", "b.py", "a.py", "core/run.py"], 3),
        (["a.py", "shrinking/integer.py", "core/run.py"], 2),
        (["core/run.pyi", "run.py", "shrinking.py", "other/shrinking/a.py"], None),
        ([], None),
    ],
)
def test_a_rank_counts_different_files_up_to_the_first_accepted_one(found: list[str], rank: int | None) -> None:
    assert ACCEPTED.rank(found) == rank


def test_recall_counts_questions_whose_answer_is_near_enough() -> None:
    outcomes = [Outcome("p", "q", rank) for rank in (1, 2, 3, 4, 10, 11, None)]

    assert recall(outcomes) == {1: 1, 3: 3, 10: 5}


def test_there_are_twenty_questions_on_three_trees() -> None:
    questions = [question for package in packages() for question in read_questions(package)]

    assert packages() == ["hypothesis", "trio", "werkzeug"]
    assert len({question.question for question in questions}) == 20
    assert all(question.files for question in questions)


@pytest.mark.parametrize("package", packages())
def test_every_accepted_file_exists_in_the_installed_package(package: str) -> None:
    root = installed(package)
    if root is None:
        pytest.skip(f"{package} is not installed here")

    for question in read_questions(package):
        for file in question.files:
            assert (root / file).is_dir() if file.endswith("/") else (root / file).is_file()
