"""What every implementation of the embedder port must do: subclass it and provide the fixture ``embedder``."""

import numpy as np
import pytest
import trio

from semindex.model.profiles import Role
from semindex.ports import Embedder, Vectors

UNUSUAL = [
    "",
    " \t\r\n",
    "(){};",
    "\0",
    "\ufeffbyte order mark",
    "\ud800 lone \udfff surrogates \ud83d",
    "\U0001f600 \U0010ffff",
    "naïve Straße ΑΣ Ως İstanbul",
    "日本語のコード 検索",
    "e\u0301\u0301\u0301 \u202e right to left",
    "aHTTPServer_v2",
    "x" * 5000,
    "\u0378 unassigned",
]


class EmbedderConformance:
    async def test_each_text_has_one_finite_vector_of_length_one(self, embedder: Embedder) -> None:
        vectors = await embedder.embed(["def parse(line): ...", "class RetryPolicy", "the third"], Role.DOCUMENT)

        assert_unit(vectors, 3, embedder)

    async def test_no_texts_give_no_vectors(self, embedder: Embedder) -> None:
        assert_unit(await embedder.embed([], Role.DOCUMENT), 0, embedder)

    async def test_vectors_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        texts = ["open the socket", "render a template", "hash passwords"]

        forward = await embedder.embed(texts, Role.DOCUMENT)
        backward = await embedder.embed(texts[::-1], Role.DOCUMENT)

        np.testing.assert_allclose(forward, backward[::-1], atol=1e-6)
        assert abs(forward[0] - forward[1]).max() > 0.01

    @pytest.mark.parametrize("role", Role)
    async def test_a_full_batch_gives_what_its_texts_give_one_by_one(self, embedder: Embedder, role: Role) -> None:
        texts = [f"value{n} = compute(width, height{n % 7})" for n in range(embedder.batch_size)]

        together = await embedder.embed(texts, role)
        alone = np.concatenate([await embedder.embed([text], role) for text in texts])

        np.testing.assert_allclose(together, alone, atol=1e-6)

    async def test_a_question_is_nearer_to_its_answer_than_to_other_code(self, embedder: Embedder) -> None:
        [question] = await embedder.embed(["where is the password hash checked"], Role.QUERY)
        answer, other = await embedder.embed(
            ["def check_password(password, hash): return verify(hash, password)", "def draw_circle(radius): ..."],
            Role.DOCUMENT,
        )

        assert question @ answer > question @ other + 0.1
        assert question @ answer > embedder.profile.default_min_score

    @pytest.mark.parametrize("role", Role)
    async def test_any_text_gets_a_vector(self, embedder: Embedder, role: Role) -> None:
        assert_unit(await embedder.embed(UNUSUAL, role), len(UNUSUAL), embedder)

    async def test_texts_without_words_share_a_vector_that_never_changes(self, embedder: Embedder) -> None:
        first = await embedder.embed(["", "\n", "{}"], Role.DOCUMENT)

        np.testing.assert_array_equal(first, np.broadcast_to(first[0], first.shape))
        np.testing.assert_array_equal(first[:1], await embedder.embed(["  "], Role.DOCUMENT))

    async def test_a_long_text_gets_a_vector(self, embedder: Embedder) -> None:
        text = "settle_invoice(ledger, amount)\n" * 10_000

        [long, short] = await embedder.embed([text, text[:1000]], Role.DOCUMENT)

        assert long @ short > 0.9

    async def test_concurrent_calls_keep_their_vectors_apart(self, embedder: Embedder) -> None:
        batches = [[f"word{task} other{n}" for n in range(5)] for task in range(8)]
        expected = [await embedder.embed(batch, Role.DOCUMENT) for batch in batches]
        found: dict[int, Vectors] = {}

        async def embed(task: int) -> None:
            found[task] = await embedder.embed(batches[task], Role.DOCUMENT)

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for task in range(len(batches)):
                    nursery.start_soon(embed, task)

        for task, vectors in enumerate(expected):
            np.testing.assert_allclose(found[task], vectors, atol=1e-6)

    async def test_a_cancelled_call_ends_and_the_next_one_works(self, embedder: Embedder) -> None:
        with trio.fail_after(10):
            with trio.CancelScope() as scope:
                scope.cancel(reason="the test cancels before the call")
                await embedder.embed(["abandoned"], Role.DOCUMENT)

            assert scope.cancelled_caught
            assert_unit(await embedder.embed(["wanted"], Role.DOCUMENT), 1, embedder)

    async def test_the_profile_describes_the_space(self, embedder: Embedder) -> None:
        profile = embedder.profile

        assert profile.provider
        assert profile.model
        assert 0 < profile.default_min_score < 1
        assert profile.space(Role.QUERY) != profile.space(Role.DOCUMENT)
        assert 1 <= embedder.batch_size <= 200


def assert_unit(vectors: Vectors, count: int, embedder: Embedder) -> None:
    assert vectors.dtype == np.float32
    assert vectors.shape == (count, embedder.profile.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
