from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.declarations import MAX_CODE, Declaration, declarations
from training.languages import GRAMMARS
from training.queries import first_sentence

SOURCES = {
    "python": '''
        class Reader:
            """Reads lines."""

            @property
            def size(self) -> int:
                """Return the size.

                In bytes.
                """
                return self._size

        if True:
            async def bare(): ...
        ''',
    "javascript": """
        /** Parse a header. */
        export function parseHeader(line) {
          return line.split("}"); // }
        }

        // Adds two numbers,
        // slowly.
        const add = async (a, b) => {
          return `${a} {`;
        };

        class Box {
          /** Open the box. */
          open(key) { return key }
        }
        """,
    "typescript": """
        /** A shape. */
        export interface Shape { area(): number; }
        export class Circle {
          /** Compute the area. */
          public async area<T>(unit: T): Promise<number> { if (unit) { return 1 } return 2 }
        }
        """,
    "go": """
        // Open opens the file.
        func (f *File) Open(name string) error {
        \treturn open(name, '{')
        }

        type Mode struct {
        \tbits int
        }
        """,
    "rust": """
        /// Returns the width.
        #[inline]
        pub(crate) async fn width(&self) -> usize {
            let c = '{'; let r = r#"}"#;
            self.0
        }
        struct Bare;
        """,
    "java": """
        /**
         * Closes the stream.
         * @param now at once
         */
        @Override
        public void close(boolean now) throws IOException {
            if (now) { stream.close(); }
        }
        """,
    "c": """
        /* Frees the list. */
        static void list_free(struct list *l)
        {
        \tif (l) { free(l); }
        }
        """,
    "ruby": """
        # Renders the page.
        def render!(page)
          if page
            page.html
          end
        end
        """,
    "php": """
        /** Sends the mail. */
        #[Pure]
        public static function send($mail) { return "}"; }
        """,
}
EXPECTED = {
    "python": [("Reader", "Reads lines."), ("Reader.size", "Return the size."), ("bare", "")],
    "javascript": [
        ("parseHeader", "Parse a header."),
        ("add", "Adds two numbers, slowly."),
        ("Box", ""),
        ("open", "Open the box."),
    ],
    "typescript": [("Shape", "A shape."), ("Circle", ""), ("area", "Compute the area.")],
    "go": [("Open", "Open opens the file."), ("Mode", "")],
    "rust": [("width", "Returns the width."), ("Bare", "")],
    "java": [("close", "Closes the stream.")],
    "c": [("list_free", "Frees the list.")],
    "ruby": [("render!", "Renders the page.")],
    "php": [("send", "Sends the mail.")],
}


def found_in(language: str) -> list[Declaration]:
    return list(declarations(dedent(SOURCES[language]), language))


@pytest.mark.parametrize("language", SOURCES)
def test_each_language_gives_its_declarations_with_their_documentation(language: str) -> None:
    assert [(found.symbol, first_sentence(found.doc)) for found in found_in(language)] == EXPECTED[language]


@pytest.mark.parametrize(
    ("language", "symbol", "code"),
    [
        ("python", "Reader.size", "@property\ndef size(self) -> int:\n    return self._size"),
        ("javascript", "parseHeader", 'export function parseHeader(line) {\n  return line.split("}"); // }\n}'),
        ("go", "Open", "func (f *File) Open(name string) error {\n\treturn open(name, '{')\n}"),
        ("ruby", "render!", "def render!(page)\n  if page\n    page.html\n  end\nend"),
        ("c", "list_free", "static void list_free(struct list *l)\n{\n\tif (l) { free(l); }\n}"),
    ],
)
def test_code_is_the_whole_declaration_without_its_documentation(language: str, symbol: str, code: str) -> None:
    assert [found.code for found in found_in(language) if found.symbol == symbol] == [code]


def test_every_language_is_tried() -> None:
    assert SOURCES.keys() == GRAMMARS.keys() | {"python"}


@pytest.mark.parametrize(
    "source",
    [
        "/* About the file. */\n\n\nint far(void) { return 1; }\n",
        "int x; /* about x */\nint far(void) { return 1; }\n",
        "/* about other */\nint other;\nint far(void) { return 1; }\n",
    ],
)
def test_a_comment_that_belongs_to_something_else_is_no_documentation(source: str) -> None:
    assert [(found.symbol, found.doc) for found in declarations(source, "c")] == [("far", "")]


def test_braces_and_declarations_in_comments_and_strings_are_not_seen() -> None:
    source = 'func a() {\n\t// }\n\ts := "}"\n\t_ = `\nfunc no() {}\n`\n}\n/*\nfunc never() {}\n*/\n'

    [found] = declarations(source, "go")

    assert found.code == source[: source.index("\n/*")]


def test_long_code_is_cut() -> None:
    [found] = declarations("func long() {\n" + "\tcall()\n" * 1000 + "}\n", "go")

    assert MAX_CODE - 10 < len(found.code) <= MAX_CODE


def test_python_that_does_not_parse_gives_nothing() -> None:
    assert list(declarations("def broken(:\n", "python")) == []
    assert list(declarations("nul = '\0'\n", "python")) == []


@pytest.mark.parametrize("language", SOURCES)
@given(
    st.lists(
        st.sampled_from(
            ["{", "}", "(", ")", '"', "'", "/*", "*/", "//", "#", "\n", "def f", "func f", "end", " ", ";", "x"]
        )
    )
)
def test_no_text_is_too_broken_to_be_read(language: str, parts: list[str]) -> None:
    for found in declarations("".join(parts), language):
        assert found.symbol
