"""Each adaptation on a text where it matters: nodes too long for a chunk, split as the reference splits them."""

from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_text


def chunks(name: str, text: str) -> list[tuple[str, str]]:
    """Return type and text of each chunk that the reference makes."""
    return [(chunk.type, chunk.text) for chunk in chunk_text(text, f"/tree/{name}", ChunkingProfile.KILO).chunks]


def types(name: str, text: str) -> list[str]:
    return [type_ for type_, _ in chunks(name, text)]


def repeated(line: str, times: int = 40) -> str:
    return "\n".join([line] * times)


def test_a_raw_string_of_rust_is_cut_by_its_lines_with_its_quotes() -> None:
    raw = 'r#"' + repeated("a line of a raw string that goes on for a while") + '"#'
    pieces = chunks("a.rs", f"const A: &str = {raw};\n")
    assert {type_ for type_, _ in pieces} == {"raw_string_literal"}
    assert "\n".join(text for _, text in pieces) == raw


def test_the_text_of_a_long_plain_string_of_rust_is_lost() -> None:
    assert chunks("a.rs", f'const A: &str = "{"x" * 1200}";\n') == []


def test_a_block_comment_of_rust_is_cut_by_its_lines() -> None:
    comment = "/** " + repeated("documentation of a function that needs a lot of it") + " */"
    pieces = chunks("a.rs", f"mod a {{\n{comment}\nfn f() {{}}\n}}\n")
    assert {type_ for type_, _ in pieces} == {"block_comment"}
    assert "\n".join(text for _, text in pieces) == comment


def test_a_line_comment_of_rust_ends_before_its_line_feed() -> None:
    comment = "/// documentation of a function, a little longer than fifty units"
    text = f"mod a {{\n{comment}\nfn f() {{}}\n{repeated('    // filler', 100)}\n}}\n"
    (chunk,) = chunk_text(text, "/tree/a.rs", ChunkingProfile.KILO).chunks
    assert (chunk.text, chunk.start_line, chunk.end_line) == (comment, 2, 2)


def c_sharp(body: str) -> str:
    return f"class C {{\n void M(int a) {{\n  switch (a) {{\n{body}\n  }}\n }}\n}}\n"


def test_a_switch_section_without_statements_is_joined_with_the_next() -> None:
    sections = "\n".join(f'   case {n}:\n   case {n + 1}:\n    return "{"x" * 60}";' for n in range(0, 40, 2))
    pieces = [text for type_, text in chunks("a.cs", c_sharp(sections)) if type_ == "switch_section"]
    assert len(pieces) == 20
    assert pieces[0] == f'case 0:\n   case 1:\n    return "{"x" * 60}";'


def test_labels_at_the_end_of_a_switch_stay_together() -> None:
    labels = "\n".join(f"   case {n}:" for n in range(100))
    assert types("a.cs", c_sharp(labels)) == []
    few = c_sharp(f'   case 0:\n    return "{"x" * 1100}";\n   case {"1" * 40}:\n   case {"2" * 40}:')
    assert chunks("a.cs", few)[-1] == ("switch_section", f"case {'1' * 40}:\n   case {'2' * 40}:")


def test_a_label_of_a_long_switch_section_is_one_node() -> None:
    label = f'case "{"x" * 60}" when a > 1:'
    section = f"   {label}\n" + repeated("    Call(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);")
    assert ("switch_label", label) in chunks("a.cs", c_sharp(section))


def test_members_within_conditional_compilation_are_as_if_it_were_not_there() -> None:
    method = f'void M() {{ var a = "{"x" * 60}"; }}'
    pieces = chunks(
        "a.cs", f"class C {{\n#if A\n{repeated(method, 20)}\n#region R\n#endregion\n#else\n{method}\n#endif\n}}\n"
    )
    assert {type_ for type_, _ in pieces} == {"method_declaration"}
    assert len(pieces) == 21


def test_a_file_scoped_namespace_reaches_to_the_end_of_the_file() -> None:
    text = "namespace A.B;\n\nclass C { int first; }\n\nclass D { int second; }"
    assert chunks("a.cs", text)[0] == ("file_scoped_namespace_declaration", text)


def test_a_functional_interface_of_kotlin_is_left_out_and_its_members_are_not() -> None:
    member = "fun compareTheTwoOfThemAndTellWhichIsTheGreaterOne(a: Int, b: Int): Int"
    assert chunks("a.kt", f"fun interface Comparing {{\n    {member}\n}}\n")[0] == ("function_declaration", member)


def test_a_long_string_or_comment_of_lua_is_cut_by_its_lines() -> None:
    string = "[[" + repeated("a line of a string that goes on for quite a while") + "]]"
    assert set(types("a.lua", f"local s = {string}\n")) == {"string"}
    comment = "--[[" + repeated("a line of a comment that goes on for quite a while") + "]]"
    assert set(types("a.lua", f"local function f()\n{comment}\nend\n")) == {"comment"}


def test_the_fields_of_a_table_of_lua_are_one_node() -> None:
    fields = ",\n".join(f'field_{n} = "{"x" * 20}"' for n in range(20))
    blanks = " " * 600
    assert chunks("a.lua", f"local t = {{{blanks}{fields}{blanks}}}\n") == [("field_list", fields)]


def test_the_parameters_of_a_function_of_lua_are_one_node_without_their_parentheses() -> None:
    parameters = ", ".join(f"parameter_{n}" for n in range(6))
    text = f"local function f({parameters})\n{repeated('  call(1, 2, 3)', 100)}\nend\n"
    assert ("parameter_list", parameters) in chunks("a.lua", text)


def test_an_assignment_of_lua_is_not_taken_for_itself_within_a_local_declaration() -> None:
    value = "x" * 60
    assert types("a.lua", f'local first = "{value}"\nsecond = "{value}"\n') == [
        "variable_declaration",
        "assignment_statement",
    ]


def test_a_long_local_declaration_of_lua_has_no_assignment_among_its_parts() -> None:
    text = f'local s = "{"x" * 1140}"'
    assert len(text) > 1150 > len(text) - len("local ")
    assert types("a.lua", text) == ["expression_list"]


def test_all_between_two_children_of_an_element_of_vue_is_one_text() -> None:
    between = "\n    some words and more words that stand between two elements\n    "
    rest = repeated('    <span class="something">word</span>', 40)
    pieces = chunks("a.vue", f"<template>\n  <div><b>x</b>{between}<i>y</i>\n{rest}\n  </div>\n</template>\n")
    assert ("text", between) in pieces
