import pytest

from training.queries import first_sentence, query_of


@pytest.mark.parametrize(
    ("doc", "sentence"),
    [
        ("Return the size. In bytes.", "Return the size."),
        ("Return the size\nof it.\n\nMore.", "Return the size of it."),
        ("No full stop\n\n@param x the x", "No full stop"),
        ("Version 1.5 of it. Next", "Version 1.5 of it."),
        ("/** Parse a `header`. */", "Parse a header."),
        ("/**\n * Parse {@link Header}.\n * @returns it\n */", "Parse Header."),
        ("/// Opens a [`File`](std::fs::File) now.", "Opens a File now."),
        ("//! @brief Adds <b>two</b> numbers.", "Adds two numbers."),
        ("# Renders *it*.", "Renders it."),
        ("Wraps :class:`~io.Reader` nicely.", "Wraps io.Reader nicely."),
        ("/* one line\n * two */", "one line two"),
        (":param x: only parameters", ""),
        ("", ""),
    ],
)
def test_the_first_sentence_is_taken_without_mark_up(doc: str, sentence: str) -> None:
    assert first_sentence(doc) == sentence


@pytest.mark.parametrize(
    ("doc", "symbol", "query"),
    [
        ("Open opens the named file.", "Open", "opens the named file."),
        ("Open a file.", "Open", "Open a file."),
        ("Two words", "f", ""),
        ("word " * 41, "f", ""),
        ("Öffnet die benannte Datei.", "f", ""),
        ("Deprecated use the other one.", "f", ""),
        ("Copyright 2020 by someone else", "f", ""),
        ("", "f", ""),
    ],
)
def test_a_query_is_a_sentence_that_someone_could_type(doc: str, symbol: str, query: str) -> None:
    assert query_of(doc, symbol) == query
