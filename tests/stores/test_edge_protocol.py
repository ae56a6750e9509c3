import io
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.stores.edge_protocol import PREFIX, FrameBuffer, FramingLost, Settings, encode, read_frame

bodies = st.dictionaries(
    st.text(), st.integers() | st.text() | st.lists(st.floats(allow_nan=False, allow_infinity=False))
)
messages = st.lists(st.tuples(st.integers(0, 2**64 - 1), bodies, st.binary(), st.booleans()), max_size=5)


@given(messages, st.lists(st.integers(0, 200)))
def test_frames_are_the_same_however_the_stream_is_cut(
    sent: Sequence[tuple[int, object, bytes, bool]], cuts: Sequence[int]
) -> None:
    stream = b"".join(encode(number, body, blob, more=more) for number, body, blob, more in sent)
    buffer = FrameBuffer()
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]

    frames = [frame for start, end in pairwise(edges) for frame in buffer.feed(stream[start:end])]

    assert [(frame.number, frame.json(), frame.blob, frame.more) for frame in frames] == list(sent)


@given(bodies, st.binary(), st.data())
def test_a_stream_that_ends_within_a_frame_has_ended(body: object, blob: bytes, data: st.DataObject) -> None:
    frame = encode(1, body, blob)
    whole, part = io.BytesIO(frame * 2), io.BytesIO(frame + frame[: data.draw(st.integers(0, len(frame) - 1))])

    assert read_frame(whole) == read_frame(whole) == read_frame(part)
    assert read_frame(whole) is None
    assert read_frame(part) is None


def test_bytes_that_cannot_be_a_frame_are_told() -> None:
    with pytest.raises(FramingLost):
        FrameBuffer().feed(PREFIX.pack(1, False, 2**31, 0))


def test_numbers_that_json_does_not_know_are_never_sent() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(1, {"score": float("nan")})


def test_settings_survive_the_command_line() -> None:
    settings = Settings("/ünï/a b", "0.9.0", ["type", "pathSegments.0"], 16, 100)

    assert Settings.from_json(settings.to_json()) == settings
