"""Where a published grammar cuts otherwise than the reference's, its trees are put right here (docs/parity.md).

An adaptation stands between the selection and the queue: it may leave out or widen selected nodes, and say into what a
node is split. Languages that need none use the tree as it is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from attrs import field, frozen

from semindex.core.nodequeue import Node, Point


@frozen
class _Place:
    row: int


@frozen
class _Part:
    """A node that the tree does not have: a piece of one, or several together."""

    type: str
    start_byte: int
    end_byte: int
    start_point: Point = field(eq=False)
    end_point: Point = field(eq=False)
    children: Sequence[Node] = field(default=(), eq=False)
    name: Node | None = field(default=None, eq=False)

    @property
    def parent(self) -> Node | None:
        return None

    def child_by_field_name(self, name: str, /) -> Node | None:
        return self.name if name == "name" else None


@frozen
class Adaptation:
    """What to make of one grammar's nodes."""

    select: Callable[[Sequence[Node]], Sequence[Node]] = lambda nodes: nodes
    """From the selected nodes to those that enter the queue."""
    children: Callable[[Node], Sequence[Node]] = lambda node: node.children
    """From a node that is too long to those that take its place."""


def adaptation(grammar: str) -> Adaptation:
    """Return the adaptation of a grammar."""
    return _ADAPTATIONS.get(grammar, _NONE)


def _together(type_: str, nodes: Sequence[Node], *, name: Node | None = None) -> _Part:
    """Return one node over consecutive nodes, which become its children."""
    first, last = nodes[0], nodes[-1]
    return _Part(type_, first.start_byte, last.end_byte, first.start_point, last.end_point, tuple(nodes), name)


def _look_through(nodes: Iterable[Node], types: frozenset[str]) -> Iterator[Node]:
    """Put the children of nodes of these types in their place."""
    for node in nodes:
        if node.type in types:
            yield from _look_through(node.children, types)
        else:
            yield node


# C#: the reference's tree has no nodes for conditional compilation, lets a file-scoped namespace hold the rest of the
# file, and keeps all labels of a switch section in one.

_DIRECTIVES = frozenset(
    {"preproc_if", "preproc_elif", "preproc_else", "preproc_pragma", "preproc_region", "preproc_endregion"}
)


def _select_c_sharp(nodes: Sequence[Node]) -> Sequence[Node]:
    return [_with_rest_of_file(node) if node.type == "file_scoped_namespace_declaration" else node for node in nodes]


def _with_rest_of_file(namespace: Node) -> Node:
    siblings = namespace.parent.children if namespace.parent else []
    following = [node for node in siblings if node.start_byte >= namespace.end_byte]
    return _together(namespace.type, [*namespace.children, *following], name=namespace.child_by_field_name("name"))


def _c_sharp_children(node: Node) -> Sequence[Node]:
    children = list(_look_through(node.children, _DIRECTIVES))
    match node.type:
        case "switch_body":
            return list(_joined_sections(children))
        case "switch_section":
            return list(_with_labels(children))
        case _:
            return children


def _joined_sections(nodes: Iterable[Node]) -> Iterator[Node]:
    """Join each section that ends with its label with the one that follows."""
    labels: list[Node] = []
    for node in nodes:
        if node.type != "switch_section":
            yield node
            continue
        labels += node.children
        if labels[-1].type != ":":
            yield _together(node.type, labels)
            labels = []
    if labels:
        yield _together("switch_section", labels)


def _with_labels(nodes: Iterable[Node]) -> Iterator[Node]:
    """Make one node of each label: `case`, what follows, and the colon."""
    label: list[Node] = []
    for node in nodes:
        if label or node.type in {"case", "default"}:
            label.append(node)
            if node.type == ":":
                yield _together("switch_label", label)
                label = []
        else:
            yield node
    yield from label


# Kotlin: the reference's grammar cannot parse `fun interface`, and finds nothing there but the members.


def _select_kotlin(nodes: Sequence[Node]) -> Sequence[Node]:
    return [
        node
        for node in nodes
        if node.type != "class_declaration" or all(child.type != "fun" for child in node.children)
    ]


# Lua: another family of grammars. The reference's has a declaration where this one has an assignment within, one node
# for all fields of a table, and no node around the parentheses of parameters.


def _select_lua(nodes: Sequence[Node]) -> Sequence[Node]:
    return [
        node
        for node in nodes
        if node.type != "assignment_statement" or node.parent is None or node.parent.type != "variable_declaration"
    ]


def _lua_children(node: Node) -> Sequence[Node]:
    if node.type in {"string", "comment"}:
        return ()
    children: Sequence[Node] = node.children
    if node.type == "variable_declaration":
        children = list(_look_through(children, frozenset({"assignment_statement"})))
    elif node.type == "table_constructor":
        children = _with_middle_together("field_list", children)
    return [
        part
        for child in children
        for part in (_with_middle_together("parameter_list", child.children) if child.type == "parameters" else [child])
    ]


def _with_middle_together(type_: str, nodes: Sequence[Node]) -> Sequence[Node]:
    if len(nodes) <= 2:
        return nodes
    return [nodes[0], _together(type_, nodes[1:-1]), nodes[-1]]


# Rust: the reference's tree has no nodes within comments and strings, and its line comments end before the line feed.

_RUST_LEAVES = frozenset({"line_comment", "block_comment", "raw_string_literal"})


def _rust_children(node: Node) -> Sequence[Node]:
    if node.type in _RUST_LEAVES:
        return ()
    return [
        _without_line_feed(child) if child.type == "line_comment" else child
        for child in node.children
        if node.type != "string_literal" or child.type != "string_content"
    ]


def _without_line_feed(comment: Node) -> Node:
    if comment.end_point.row == comment.start_point.row:
        return comment
    end = _Place(comment.end_point.row - 1)
    return _Part(comment.type, comment.start_byte, comment.end_byte - 2, comment.start_point, end)


# Vue: another family of grammars. In the reference's, all between two children of an element is one text.


def _vue_children(node: Node) -> Sequence[Node]:
    if node.type not in {"element", "template_element"}:
        return node.children
    children = [child for child in node.children if child.type != "text"]
    parts = children[:1]
    for before, after in pairwise(children):
        if before.end_byte < after.start_byte:
            parts.append(_Part("text", before.end_byte, after.start_byte, before.end_point, after.start_point))
        parts.append(after)
    return parts


_NONE = Adaptation()
_ADAPTATIONS = {
    "c_sharp": Adaptation(_select_c_sharp, _c_sharp_children),
    "kotlin": Adaptation(select=_select_kotlin),
    "lua": Adaptation(_select_lua, _lua_children),
    "rust": Adaptation(children=_rust_children),
    "vue": Adaptation(children=_vue_children),
}
