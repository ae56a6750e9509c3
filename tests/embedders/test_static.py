import hashlib
import json
import threading
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import attrs
import numpy as np
import pytest
import trio

from semindex.embedders import static
from semindex.embedders.static import PROFILE, TABLE_FILE, TABLE_SHA256, StaticEmbedder
from semindex.embedders.static_table import StaticTable
from semindex.embedders.tokenizer import Tokenizer
from semindex.model.errors import ConfigurationError
from semindex.model.profiles import Role
from semindex.ports import Embedder
from tests.embedders.conformance import EmbedderConformance

DATA = Path(str(resources.files("semindex.embedders") / "data"))


@pytest.fixture(scope="module")
def table() -> StaticTable:
    return StaticTable.parse((DATA / TABLE_FILE).read_bytes())


class TestStaticConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, table: StaticTable) -> Embedder:
        return StaticEmbedder(table)


class WatchedTokenizer(Tokenizer):
    """Tells of each text that is read, in the thread that reads it."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        super().__init__([])
        self._on_text = on_text

    def rows(self, text: str) -> list[int]:
        self._on_text(text)
        return super().rows(text)


def watched(table: StaticTable, on_text: Callable[[str], None]) -> StaticEmbedder:
    return StaticEmbedder(attrs.evolve(table, tokenizer=WatchedTokenizer(on_text)))


def test_the_profile_is_that_of_the_shipped_table(table: StaticTable) -> None:
    with np.load(DATA / TABLE_FILE) as data:
        metadata = json.loads(data["metadata"].tobytes())

    assert PROFILE.model == f"{table.name}@{TABLE_SHA256[:12]}"
    assert PROFILE.dimension == table.dimension
    assert PROFILE.default_min_score == metadata["recommended_threshold"]


def test_the_published_checksums_are_those_of_the_shipped_files() -> None:
    listed = dict(line.split()[::-1] for line in (DATA / "SHA256SUMS").read_text().splitlines())

    assert listed == {name: hashlib.sha256((DATA / name).read_bytes()).hexdigest() for name in listed}
    assert listed.keys() | {"SHA256SUMS"} == {path.name for path in DATA.iterdir()}
    assert listed[TABLE_FILE] == TABLE_SHA256


def test_vectors_of_the_shipped_table_stay_what_they_were(table: StaticTable) -> None:
    """Stored vectors outlive a release: if this fails, the table, the tokenizer or the sum changed its meaning."""
    [query] = table.embed(["where is the backoff between attempts computed"], Role.QUERY)
    document, empty = table.embed(["def retry_delay(attempt: int) -> float:\n    return 2**attempt", ""], Role.DOCUMENT)

    np.testing.assert_allclose(query[:4], [0.2051380, 0.0139034, 0.0364064, -0.0536781], atol=1e-6)
    np.testing.assert_allclose(document[:4], [0.1133884, 0.0219688, 0.0068480, -0.0303621], atol=1e-6)
    np.testing.assert_allclose(empty[:4], [-0.0084529, -0.0105661, -0.1796237, 0.1542651], atol=1e-6)


async def test_the_shipped_table_loads_and_embeds() -> None:
    with trio.fail_after(10):
        embedder = await StaticEmbedder.load()

        assert (await embedder.embed(["one"], Role.DOCUMENT)).shape == (1, 256)


@pytest.mark.parametrize("kept", [slice(0, -1), slice(1, None), slice(0, 0)])
async def test_a_damaged_table_is_refused(kept: slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / TABLE_FILE).write_bytes((DATA / TABLE_FILE).read_bytes()[kept])
    monkeypatch.setattr(static, "_DATA", tmp_path)

    with pytest.raises(ConfigurationError, match=f"{TABLE_FILE} is damaged: install semindex again"):
        await StaticEmbedder.load()


async def test_a_missing_table_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "_DATA", tmp_path)

    with pytest.raises(ConfigurationError, match="cannot be read: install semindex again or configure an endpoint"):
        await StaticEmbedder.load()


async def test_texts_are_embedded_off_the_loop_in_slices_between_which_a_call_can_be_cancelled(
    table: StaticTable,
) -> None:
    seen: list[str] = []
    threads: set[int] = set()

    def cancel_at_the_first(text: str) -> None:
        if not seen:
            trio.from_thread.run_sync(scope.cancel)
        seen.append(text)
        threads.add(threading.get_ident())

    with trio.fail_after(10), trio.CancelScope() as scope:
        await watched(table, cancel_at_the_first).embed([f"text {n}" for n in range(500)], Role.DOCUMENT)

    assert scope.cancelled_caught
    assert len(seen) == 50
    assert threading.get_ident() not in threads


async def test_a_call_of_many_slices_gives_every_text_its_own_vector(table: StaticTable) -> None:
    texts = [f"value{n} = {n}" for n in range(123)]

    vectors = await StaticEmbedder(table).embed(texts, Role.DOCUMENT)

    np.testing.assert_array_equal(vectors, table.embed(texts, Role.DOCUMENT))


async def test_documents_are_embedded_one_call_at_a_time_and_a_query_does_not_wait_for_them(table: StaticTable) -> None:
    working: set[str] = set()
    most_at_once = 0
    begun, query_is_done = trio.Event(), threading.Event()

    def wait_in_documents(text: str) -> None:
        nonlocal most_at_once
        if text != "query":
            working.add(text)
            most_at_once = max(most_at_once, len(working))
            trio.from_thread.run_sync(begun.set)
            assert query_is_done.wait(10)
            working.remove(text)

    embedder = watched(table, wait_in_documents)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(embedder.embed, ["first"], Role.DOCUMENT)
            nursery.start_soon(embedder.embed, ["second"], Role.DOCUMENT)
            await begun.wait()
            await embedder.embed(["query"], Role.QUERY)
            query_is_done.set()

    assert most_at_once == 1
