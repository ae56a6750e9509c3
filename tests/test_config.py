"""The configuration: what a file may say, what is told when it says something else, and the page that documents it."""

import json
import types
import typing
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from typing import Any

import annotated_types
import pytest
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from semindex import config, secrets
from semindex.config import CellConfig, Section, load_config
from semindex.model.errors import ConfigurationError

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
SMALLEST = {"stateDirectory": "/state", "cacheDirectory": "/cache", "allowedRoots": ["/work"]}


@pytest.fixture
def load(tmp_path: Path) -> "Load":
    return Load(tmp_path / "config.json")


class Load:
    """Loads a configuration that holds the least that it must, and more."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, **more: Any) -> CellConfig:
        document = {name: value for name, value in {**SMALLEST, **more}.items() if value is not ...}
        self.file.write_text(json.dumps(document))
        return load_config(self.file)

    def fault(self, **more: Any) -> str:
        """What is said about it, without the file's name."""
        with pytest.raises(ConfigurationError) as raised:
            self(**more)
        assert str(raised.value).startswith(f"{self.file}: ")
        return str(raised.value).replace(f"{self.file}: ", "")


def test_the_least_that_a_file_says_leaves_the_rest_to_the_defaults(load: Load) -> None:
    loaded = load()

    assert (loaded.state_directory, loaded.allowed_roots) == (Path("/state"), (Path("/work"),))
    assert loaded.listen.port == 7790
    assert not loaded.indexing.uses_endpoint
    assert not loaded.indexing.uses_qdrant


def test_a_block_chooses_what_it_describes_unless_the_choice_is_made(load: Load) -> None:
    blocks = {
        "qdrant": {"url": "http://q"},
        "openai-compatible": {"baseUrl": "http://e/v1"},
        "model": "m",
        "dimension": 3,
    }

    chosen = load(indexing=blocks).indexing
    embedded = load(indexing={**blocks, "vectorStore": "embedded", "provider": "embedded"}).indexing

    assert (chosen.uses_endpoint, chosen.uses_qdrant) == (True, True)
    assert (embedded.uses_endpoint, embedded.uses_qdrant) == (False, False)


@pytest.mark.parametrize(("more", "fault"), [
    ({"allowedRoot": []}, "allowedRoot: unknown key; did you mean allowedRoots?"),
    ({"allowed_roots": []}, "allowed_roots: unknown key; did you mean allowedRoots?"),
    ({"indexing": {"openAiCompatible": {}}}, "indexing.openAiCompatible: unknown key; did you mean openai-compatible?"),
    ({"indexing": {"qdrant": {"url": "u", "timeout": 1}}}, "indexing.qdrant.timeout: unknown key; did you mean timeoutMs?"),
    ({"retention": {"xyzzy": 1}}, "retention.xyzzy: unknown key; known are worktree, ttl"),
    ({"allowedRoots": []}, "allowedRoots: name at least one directory that may be indexed"),
    ({"allowedRoots": ...}, "allowedRoots: name at least one directory that may be indexed"),
    ({"allowedRoots": ["work"]}, "allowedRoots.0: expected an absolute path"),
    ({"stateDirectory": ...}, "stateDirectory: Field required"),
    ({"listen": {"host": "0.0.0.0"}}, "listen.host: Input should be '127.0.0.1'"),
    ({"listen": {"port": 65536}}, "listen.port: Input should be less than or equal to 65535"),
    ({"listen": {"port": "7790"}}, "listen.port: Input should be a valid integer"),
    ({"workers": True}, "workers: Input should be a valid integer"),
    ({"indexing": {"fileExtensions": ["*.js"]}}, "indexing.fileExtensions: "),
    ({"indexing": {"provider": "openai-compatible"}}, 'indexing: the provider "openai-compatible" needs the block'),
    ({"indexing": {"vectorStore": "qdrant"}}, 'indexing: the vector store "qdrant" needs the block "qdrant" with a url'),
    ({"indexing": {"openai-compatible": {"baseUrl": "http://e"}}}, "indexing: an embedding endpoint needs model and dim"),
    ({"workers": 0, "listen": {"port": -1}}, "listen.port: Input should be greater than or equal to 0; workers: Input"),
])  # fmt: skip
def test_a_fault_is_named_by_its_place(load: Load, more: dict[str, Any], fault: str) -> None:
    assert load.fault(**more).startswith(fault)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"null"])
def test_what_is_no_object_of_json_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)

    with pytest.raises(ConfigurationError, match=str(file)):
        load_config(file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
        load_config(tmp_path / "missing.json")


def test_no_fault_shows_what_the_file_holds(load: Load) -> None:
    secret = "a-key-that-nobody-may-see"

    assert secret not in load.fault(indexing={"qdrant": {"apiKey": secret, "url": 5}}, workers=secret)
    assert secret not in repr(load(indexing={"qdrant": {"apiKey": secret, "url": "u"}}))


def test_extensions_are_normalised(load: Load) -> None:
    assert load(indexing={"fileExtensions": ["PY", " .md", "py"]}).indexing.file_extensions == (".md", ".py")


def test_the_file_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(config.CONFIG_FILE_VARIABLE, " cell.json ")
    assert config.config_file() == tmp_path / "cell.json"
    monkeypatch.setenv(config.CONFIG_FILE_VARIABLE, "  ")
    assert config.config_file() is None


def test_a_cell_without_configuration_lies_below_the_users_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative, and so invalid")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    without = config.zero_configuration([Path("/work")])

    assert without.state_directory == tmp_path / "state" / "semindex"
    assert without.cache_directory == tmp_path / ".cache" / "semindex"
    assert without.allowed_roots == (Path("/work"),)


# The page


def described(section: type[Section], prefix: str = "") -> Iterator[str]:
    """The rows of the page's table: key, rule, default and description of each setting, as the schema has them."""
    for field in section.model_fields.values():
        key = f"{prefix}{field.alias}"
        kinds = kinds_of(field)
        sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]
        if sections:
            yield from described(sections[0], f"{key}.")
        else:
            assert field.description, key
            yield f"| `{key}` | {rule(field, kinds)} | {default(field)} | {field.description} |"


def kinds_of(field: FieldInfo) -> list[Any]:
    """The types that a value may have, None apart."""
    is_union = typing.get_origin(field.annotation) in (types.UnionType, typing.Union)
    kinds = typing.get_args(field.annotation) if is_union else (field.annotation,)
    return [kind for kind in kinds if kind is not type(None)]


def rule(field: FieldInfo, kinds: list[Any]) -> str:
    [kind] = kinds
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in typing.get_args(kind))
    if isinstance(kind, EnumType):
        members: list[str] = list(kind)
        return " or ".join(f"`{json.dumps(member)}`" for member in members)
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    names = {
        int: "whole number",
        float: "number",
        bool: "boolean",
        str: "text",
        SecretStr: "text",
        Path: "absolute path",
    }
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        element = typing.get_args(element)[0] if typing.get_origin(element) is typing.Annotated else element
        return f"list of {names[element]}s"
    return " ".join([names.get(kind, "URL"), *bounds(field)])


def bounds(field: FieldInfo) -> list[str]:
    least = [constraint.ge for constraint in field.metadata if isinstance(constraint, annotated_types.Ge)]
    most = [constraint.le for constraint in field.metadata if isinstance(constraint, annotated_types.Le)]
    above = [constraint.gt for constraint in field.metadata if isinstance(constraint, annotated_types.Gt)]
    if least and most:
        return [f"{least[0]} to {most[0]}"]
    return [f"≥ {limit}" for limit in least] + [f"> {limit}" for limit in above]


def default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "CPUs, at most 8"
    return "none" if field.default in (None, ()) else f"`{json.dumps(field.default)}`"


def test_the_page_describes_every_setting_as_the_schema_has_it() -> None:
    expected = list(described(CellConfig))
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `") and line.count("|") == 5
    ]

    assert rows == expected, "\n".join(expected)


def test_the_page_names_every_variable() -> None:
    variables = [secrets.CONTROL_TOKEN, secrets.MCP_TOKEN, secrets.QDRANT_API_KEY, secrets.EMBEDDER_API_KEY]

    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{variable}`" in page for variable in [*variables, config.CONFIG_FILE_VARIABLE])


def test_the_examples_of_the_page_are_valid(tmp_path: Path) -> None:
    examples = PAGE.read_text(encoding="utf-8").split("```json\n")[1:]
    assert examples
    for example in examples:
        (tmp_path / "config.json").write_text(example.partition("```")[0])
        load_config(tmp_path / "config.json")
