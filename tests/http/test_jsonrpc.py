"""JSON-RPC messages: what is a request, what is not, and what either is answered."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.http import jsonrpc
from semindex.http.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Malformed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
IDS = st.none() | st.integers() | st.text()


def refused(text: str) -> tuple[int, Any]:
    """The number of a message's error, and the id that it is answered with."""
    with pytest.raises(Malformed) as caught:
        jsonrpc.parse(text)
    answer = json.loads(caught.value.answer)
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["error"].keys() == {"code", "message", "data"}
    return answer["error"]["code"], answer["id"]


@pytest.mark.parametrize("text", [
    "", "{", '{"a" 1}', "nul", "NaN", '{"id": Infinity}', "[" * 50_000, "9" * 5000, "{} {}", "\ufeff{}", "'x'",
], ids=lambda text: text[:20])  # fmt: skip
def test_what_is_not_json_is_a_parse_error(text: str) -> None:
    assert refused(text) == (PARSE_ERROR, None)


@pytest.mark.parametrize(("message", "id_"), [
    (1, None), ("status", None), (None, None), (True, None), ({}, None),
    ([], None), ([{"jsonrpc": "2.0", "id": 1, "method": "m"}], None),
    ({"id": 1, "method": "m"}, 1),
    ({"jsonrpc": "1.0", "id": "x", "method": "m"}, "x"),
    ({"jsonrpc": 2.0, "id": 3, "method": "m"}, 3),
    ({"jsonrpc": "2.0", "id": 4}, 4),
    ({"jsonrpc": "2.0", "id": 5, "method": 1}, 5),
    ({"jsonrpc": "2.0", "id": 6, "result": {}}, 6),
    ({"jsonrpc": "2.0", "id": True, "method": "m"}, None),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "m"}, None),
    ({"jsonrpc": "2.0", "id": [1], "method": "m"}, None),
    ({"jsonrpc": "2.0", "id": {}, "method": "m"}, None),
], ids=str)  # fmt: skip
def test_what_is_no_request_is_an_invalid_one_and_is_answered_with_its_id_where_it_has_one(
    message: Any, id_: Any
) -> None:
    assert refused(json.dumps(message)) == (INVALID_REQUEST, id_)


def test_who_sends_a_batch_is_told_what_to_do_instead() -> None:
    with pytest.raises(Malformed, match="send each request as a message of its own"):
        jsonrpc.parse('[{"jsonrpc": "2.0", "id": 1, "method": "m"}]')


@given(IDS, st.text(), JSON)
def test_a_request_is_read_as_it_was_written_and_its_answer_bears_its_id(id_: Any, method: str, params: Any) -> None:
    call = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))

    assert (call.method, call.params, call.id, call.is_notification) == (method, params, id_, False)
    assert json.loads(jsonrpc.result(call.id, {"a": 1})) == {"jsonrpc": "2.0", "id": id_, "result": {"a": 1}}


def test_a_request_without_an_id_is_a_notification_and_one_without_parameters_has_none_by_name() -> None:
    call = jsonrpc.parse('{"jsonrpc": "2.0", "method": "m"}')

    assert (call.is_notification, call.params) == (True, {})
    assert not jsonrpc.parse('{"jsonrpc": "2.0", "method": "m", "id": null}').is_notification


@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_a_request_or_malformed(text: str) -> None:
    with suppress(Malformed):
        assert jsonrpc.parse(text).method is not None


def test_a_failure_has_the_sentence_as_its_message_and_the_rest_as_its_data() -> None:
    body = {"error": "It is there already.", "code": "conflict", "detail": {"field": "id"}}

    assert json.loads(jsonrpc.failure(7, -32000, body)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32000,
            "message": "It is there already.",
            "data": {"code": "conflict", "detail": {"field": "id"}},
        },
    }


@pytest.mark.parametrize(
    ("status", "number"), [(422, -32602), (500, -32603), (404, -32000), (409, -32000), (429, -32000), (503, -32000)]
)
def test_the_number_of_an_error_is_a_standard_one_where_there_is_one(status: int, number: int) -> None:
    assert jsonrpc.number_of(status) == number


def test_a_name_that_is_no_valid_unicode_makes_a_message_that_can_be_sent() -> None:
    text = jsonrpc.notification("m", {"path": "caf\udce9"})

    assert json.loads(text)["params"] == {"path": "caf\udce9"}
    assert text.encode("ascii")
