import pytest

from semindex.core.collector import ChunkCollector
from semindex.core.markdown import chunk_markdown
from semindex.model.chunks import Chunk
from semindex.model.profiles import ChunkingProfile

BODY = "Some text that makes its section long enough to be kept."


def chunked(*lines: str) -> list[Chunk]:
    collector = ChunkCollector("/tree/a.md", ChunkingProfile.KILO)
    chunk_markdown(lines, collector)
    return collector.chunks


def sections(*lines: str) -> list[tuple[str, str | None, int, int]]:
    return [(chunk.type, chunk.identifier, chunk.start_line, chunk.end_line) for chunk in chunked(*lines)]


def test_a_section_runs_from_its_heading_to_the_line_before_the_next() -> None:
    assert sections(BODY, "# One", BODY, "", "### Two ##", BODY, "") == [
        ("markdown_content", None, 1, 1),
        ("markdown_header_h1", "One", 2, 4),
        ("markdown_header_h3", "Two ##", 5, 7),
    ]


def test_the_text_of_a_section_keeps_its_blank_lines() -> None:
    assert [chunk.text for chunk in chunked("# One", BODY, "", "", "# Two", BODY)] == [
        f"# One\n{BODY}\n\n",
        f"# Two\n{BODY}",
    ]


def test_a_section_too_short_without_its_blanks_is_dropped() -> None:
    assert sections("# One", "x" * 43, " " * 60) == []
    assert sections("# One", "x" * 44) == [("markdown_header_h1", "One", 1, 2)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("# text", "text"),
        ("###### \u00a0text\ufeff", "text"),
        ("#\ttext # #", "text # #"),
        ("# \t ", ""),
        ("#\u3000wide", "wide"),
        ("# \r\u2028blanks before", "blanks before"),
    ],
)
def test_an_atx_heading_is_hashes_blanks_and_text(line: str, text: str) -> None:
    ((_, identifier, start, _),) = sections(line, BODY)
    assert (identifier, start) == (text, 1)


@pytest.mark.parametrize(
    "line",
    [
        "#text",
        "####### seven",
        " # indented",
        "\ufeff# mark",
        "#",
        "# ",
        "# text\r",
        "# a\u2028b",
        "#\u0085text",
        "#\x1ctext",
    ],
)
def test_what_only_looks_like_an_atx_heading_is_none(line: str) -> None:
    assert sections(line, BODY) == [("markdown_content", None, 1, 2)]


@pytest.mark.parametrize(
    ("title", "underline", "level"),
    [
        ("Title", "===", 1),
        ("Title", "---------- \t", 2),
        ("Title\r", "---\r", 2),
        ("- item", "---", 2),
        ("ab", "===", 1),
        (" a", "===", 1),
        ("---", "===", 1),
        ("a | b", "---", 2),
        ("ends with <", "---", 2),
    ],
)
def test_a_setext_heading_is_a_plain_line_and_what_underlines_it(title: str, underline: str, level: int) -> None:
    assert sections(title, underline, BODY) == [(f"markdown_header_h{level}", title.strip(), 1, 3)]


@pytest.mark.parametrize(
    ("title", "underline"),
    [
        ("a", "==="),
        ("Title", "=="),
        ("Title", "=-="),
        ("Title", " ==="),
        ("Title", "=== x"),
        ("with `code`", "==="),
        ("[link]", "==="),
        ("a\tb", "==="),
        ("", "==="),
    ],
)
def test_what_only_looks_like_a_setext_heading_is_none(title: str, underline: str) -> None:
    assert sections(title, underline, BODY) == [("markdown_content", None, 1, 3)]


def test_fences_and_front_matter_mean_nothing() -> None:
    assert sections("---", "title: a page", "---", "```", "# comment", BODY, "```") == [
        ("markdown_header_h1", "comment", 5, 7)
    ]


def test_a_long_section_is_chunked_by_lines_under_its_heading() -> None:
    chunks = chunked("## Long", *["x" * 300] * 6)
    assert [(chunk.type, chunk.identifier) for chunk in chunks] == [("markdown_header_h2", "Long")] * 2
    assert [chunk.length for chunk in chunks] == [7 + 3 * 301, 3 * 301 - 1]


def test_a_line_that_is_too_long_by_its_line_feed_does_not_make_a_section_too_long() -> None:
    assert [chunk.type for chunk in chunked("x" * 1150)] == ["markdown_content"]
    assert [chunk.type for chunk in chunked("x" * 1150, "")] == ["markdown_content_segment"] * 2
