import importlib
from importlib import resources

import pytest
from tree_sitter import Language

from semindex.core.filetypes import GRAMMARS
from semindex.core.utf16 import encode, to_units
from semindex.parsing import grammars
from semindex.parsing.grammars import Grammar, GrammarUnavailable, load, probe


def selected(grammar: str, text: str) -> list[tuple[str, str]]:
    units = to_units(text)
    nodes = load(grammar).select(encode(units))
    return [(node.type, units[node.start_byte // 2 : node.end_byte // 2]) for node in nodes]


def test_every_declared_grammar_loads_without_a_warning() -> None:
    assert probe() == {}
    assert len(GRAMMARS) == 24


def test_every_query_file_belongs_to_a_grammar() -> None:
    files = {file.name for file in (resources.files("semindex.parsing") / "selections").iterdir()}
    assert files == {f"{name}.scm" for name in GRAMMARS}


def test_a_grammar_is_loaded_once() -> None:
    assert load("python") is load("python")


@pytest.fixture
def unloaded() -> None:
    load.cache_clear()


@pytest.mark.usefixtures("unloaded")
def test_a_grammar_whose_package_is_missing_or_different_is_unavailable_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = grammars._SOURCES
    monkeypatch.setitem(sources, "go", grammars._Source("no_such_package"))
    monkeypatch.setitem(sources, "zig", grammars._Source("tree_sitter_c", "no_such_function"))
    monkeypatch.setitem(sources, "css", grammars._Source("tree_sitter_python"))
    assert probe().keys() == {"css", "go", "zig"}
    with pytest.raises(GrammarUnavailable, match=r"The grammar go cannot be loaded: .*no_such_package"):
        load("go")


def test_nodes_come_by_their_beginning_then_in_the_order_of_the_selection_then_the_longer_first() -> None:
    assert selected("python", "import a\n@b\nclass C:\n    d: e = 1\n") == [
        ("import_statement", "import a"),
        ("decorated_definition", "@b\nclass C:\n    d: e = 1"),
        ("class_definition", "class C:\n    d: e = 1"),
        ("identifier", "C"),
        ("expression_statement", "d: e = 1"),
        ("identifier", "d"),
    ]


def test_offsets_count_utf_16_units() -> None:
    assert selected("go", "// \U0001f600\nvar a = 1\n") == [("var_declaration", "var a = 1")]


def test_tests_of_a_selection_hold_for_what_they_name() -> None:
    method = "m() { return 1; }"
    assert ("method_definition", method) in selected("javascript", f"class A {{ {method} }}")
    names = [text for type_, text in selected("javascript", "class A { constructor() {} m() {} }") if "method" in type_]
    assert names == ["m() {}"]
    assert ("list", "(defgroup a nil)") in selected("elisp", "(defgroup a nil)\n(setq b 1)\n")
    assert ("list", "(setq b 1)") not in selected("elisp", "(defgroup a nil)\n(setq b 1)\n")


def language(module: str) -> Language:
    return Language(grammars._capsule(importlib.import_module(module).language()))


def test_a_label_with_a_suffix_ranks_with_its_pattern_and_one_for_tests_is_not_selected() -> None:
    selection = '(call function: (identifier) @call.name arguments: (_) @_test (#text-matches? @call.name "^f")) @call'
    nodes = Grammar(language("tree_sitter_python"), selection).select(encode("f(1)\ng(2)\n"))
    assert [(node.type, node.start_byte) for node in nodes] == [("call", 0), ("identifier", 0)]


def test_an_unknown_test_is_an_error_of_the_selection() -> None:
    grammar = Grammar(language("tree_sitter_python"), '((identifier) @a (#text-ends? @a "x"))')
    with pytest.raises(ValueError, match="unknown test text-ends"):
        grammar.select(encode("x"))
