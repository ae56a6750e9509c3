import json
from pathlib import Path

import numpy as np
import pytest

from semindex.embedders import static
from semindex.embedders.static_table import StaticTable
from training.bm25 import BM25, stems
from training.evaluate import QUESTIONS, dense_scores, fused, lexical_scores, ranks, report, score_report, summary
from training.pairs import Pair
from training.tasks import Task, chunks, described, question_tasks, tasks

METHODS = ["BM25", "static", "static + 0.15 BM25", "static + 0.3 BM25"]
WORDS = ["socket", "template", "password", "archive", "polygon", "invoice", "calendar", "parser", "thread", "mailbox"]


def function(number: int, query: str | None = None, package: str = "pypi:demo") -> Pair:
    first, second = WORDS[number % 10], WORDS[number // 10 % 10]
    code = f"def {first}_{second}_{number}(value):\n    return load_{first}(value, into={second})\n"
    asked = f"Load the {first} into a {second} for case number {number}." if query is None else query
    return Pair("python", package, f"demo/{first}.py", f"{first}_{second}_{number}", asked, code)


@pytest.fixture(scope="module")
def table() -> StaticTable:
    return StaticTable.parse((static._DATA / static.TABLE_FILE).read_bytes())


def test_a_task_asks_unique_long_queries_and_leaves_types_out() -> None:
    pairs = [function(n) for n in range(25)]
    extra = [
        function(30, "Too short a query."),
        function(31, "One and the same query of many words."),
        function(32, "One and the same query of many words."),
        Pair("python", "pypi:demo", "a.py", "Box", "A class is no function but holds some.", "class Box:\n    pass"),
        Pair("go", "deb:few", "a.go", "F", "Too few queries make no task at all.", "func F() {}"),
    ]

    [task] = tasks([*pairs, *extra])

    assert (task.language, task.package) == ("python", "pypi:demo")
    assert task.functions == [*pairs, *extra[:3]]
    assert task.queries == [pair.query for pair in pairs]
    assert task.wanted == [{n} for n in range(25)]


def test_questions_want_every_function_whose_symbol_matches(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    entries = [
        {"package": "pypi:demo", "question": "where are sockets loaded", "symbols": "^socket_"},
        {"package": "pypi:absent", "question": "anything", "symbols": "."},
    ]
    path.write_text(json.dumps(entries))

    [task] = question_tasks(path, [function(n) for n in (0, 1, 10)])

    assert task.queries == ["where are sockets loaded"]
    assert task.wanted == [{0, 2}]


def test_the_projects_questions_are_forty_on_seven_packages() -> None:
    questions = json.loads(QUESTIONS.read_text())

    assert len({entry["question"] for entry in questions}) == 40
    assert len({entry["package"] for entry in questions}) == 7


@pytest.mark.parametrize(
    ("code", "sizes"),
    [
        ("x" * 3000, [1150, 1150, 700]),
        ("short", [5]),
        (("y" * 99 + "\n") * 12, [1099, 99]),
        (("y" * 99 + "\n") * 11 + "z" * 51, [1099, 51]),
        (("y" * 99 + "\n") * 11 + "z" * 60 + "\n" + "w" * 49, [1099, 110]),
    ],
)
def test_code_is_cut_at_line_ends_into_chunks_of_the_indexs_size(code: str, sizes: list[int]) -> None:
    assert [len(chunk) for chunk in chunks(code)] == sizes


def test_path_and_symbol_are_described_in_words() -> None:
    assert described(Pair("go", "p", "net/http-client.go", "Client.do_it", "", "")) == "net http client Client do it"


def test_bm25_prefers_rare_words_and_short_texts() -> None:
    index = BM25(["open the file", "open the socket", "open the socket and then wait for many other things to happen"])

    scores = index.scores("opening sockets")

    assert scores[1] > scores[2] > scores[0] > 0
    assert not index.scores("the unknown").any()


def test_stems_drop_stop_words_and_common_endings() -> None:
    assert stems("Where is parsedHeaders of the pings a") == ["pars", "header", "ping"]


def test_a_rank_is_that_of_the_best_wanted_function_and_ties_count_against_it() -> None:
    scores = np.array([[0.1, 0.9, 0.5, 0.9], [0.1, 0.9, 0.5, 0.9], [0.3, 0.2, 0.1, 0.0]], np.float32)

    assert ranks(scores, [{2}, {1}, {0, 3}]).tolist() == [3, 2, 1]


def test_the_summary_counts_nothing_beyond_the_tenth() -> None:
    assert summary(np.array([1, 2, 20, 10])) == "0.400 | 0.250 0.500 0.750"


def test_fusing_adds_z_scores() -> None:
    dense, lexical = np.array([[1, 2, 3]], np.float32), np.array([[10, 0, 5]], np.float32)

    z = np.array([-(1.5**0.5), 0, 1.5**0.5])
    np.testing.assert_allclose(fused(dense, lexical, 0.5)[0], z + 0.5 * np.array([z[2], z[0], 0]), atol=1e-5)


def test_a_functions_score_is_that_of_its_best_chunk(table: StaticTable) -> None:
    relevant = "def check_password(password, stored):\n    return compare_digest(hash(password), stored)\n"
    padding = "def draw(polygon):\n" + "    canvas.line(polygon.points, colour)\n" * 40
    alone = Pair("python", "p", "a.py", "f", "", relevant)
    buried = Pair("python", "p", "a.py", "f", "", padding + "\n" * 1000 + relevant)
    task = Task("python", "p", [alone, buried, function(4)], ["where is the password hash compared"], [set()])

    [scores] = dense_scores(table, task, prefix=False)

    assert scores[1] == pytest.approx(scores[0], abs=0.05)
    assert scores[1] > scores[2] + 0.1
    assert lexical_scores(task, prefix=True).shape == (1, 3)


def test_reports_cover_every_method_and_threshold(table: StaticTable, capsys: pytest.CaptureFixture[str]) -> None:
    group = tasks([function(n, package=package) for package in ("pypi:a", "pypi:b") for n in range(25)])

    report(table, group)
    score_report(table, group)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "python: 2 packages, 50 functions, 50 queries"
    methods = [f"{method}, {text}" for text in ("chunk alone", "with path and symbol") for method in METHODS]
    assert [line[2:42].strip() for line in lines[1:9]] == methods
    assert len(lines) == 1 + 8 + 6 + 11
