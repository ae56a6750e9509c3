"""docs/api.md against the code, and against what a real cell answers."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from starlette.routing import Route

from semindex.cell.cell import Cell
from semindex.http import jsonrpc, rpc, wire
from semindex.http.control import ControlApi
from semindex.http.dispatcher import RPC
from semindex.http.errors import status_of
from semindex.http.listener import MAX_MESSAGE
from semindex.janitor import Orphan, OrphanKind
from semindex.leasing import Receipt
from semindex.model import answers
from semindex.model.answers import DependencyStatus, EmptyReason, Explanation, FilesPage, SearchResponse
from semindex.model.chunks import Signature
from semindex.model.errors import CellLocked, ConfigurationError, SemindexError, StateDamaged, StateVersion
from semindex.model.points import Hit
from semindex.model.registrations import Lifecycle, Operation, OperationKind, Registration, TokenRecord
from semindex.model.status import FileRecord, FileState, State, WorkspaceStatus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
NEVER_SENT = {ConfigurationError, CellLocked, StateDamaged, StateVersion}
"""Errors that keep a cell from starting: nobody is there to be told."""

MakeTree = Callable[..., Path]


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, its own head left out."""
    section = re.split(rf"^#+ {heading}$", PAGE, flags=re.MULTILINE)[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def fields(shape: str) -> dict[str, bool]:
    """The fields that the page gives a shape → whether they are always there."""
    return {
        field: not meaning.startswith("optional")
        for names, meaning in rows(shape)
        for field in re.findall(r"`([^`]+)`", names)
    }


def paths(value: Any, prefix: str = "") -> Iterator[str]:
    """The fields of a JSON value, as the page writes them."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from paths(inner, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from paths(inner, f"{prefix}[]")
    else:
        yield f"{prefix}[]" if isinstance(value, list) else prefix


# Against the code


def test_the_page_lists_every_route_and_no_other() -> None:
    router = ControlApi(cast(Cell, None))._router
    served = {
        (method, route.path) for route in router.routes if isinstance(route, Route) for method in route.methods or ()
    }
    served = {(method, path) for method, path in served if method != "HEAD"}
    served |= {("GET", "/healthz"), ("GET", "/readyz"), ("GET", RPC)}

    assert {(method, route.strip("`")) for method, route, *_ in rows("Routes")} == served


def test_the_page_lists_every_code_with_its_status() -> None:
    def kinds(kind: type[SemindexError]) -> Iterator[type[SemindexError]]:
        yield kind
        for inner in kind.__subclasses__():
            if "code" in vars(inner):  # a kind that only its own adapter tells apart has its parent's code
                yield from kinds(inner)

    raised = {kind.code: str(status_of(kind("x"))) for kind in kinds(SemindexError) if kind not in NEVER_SENT}
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/semindex/http").glob("*.py"))
    refused = {code: status for status, code in re.findall(r'\(\s*(\d{3}), "(\w+)"', sources)}

    assert {code.strip("`"): status for code, status, _ in rows("Errors")} == raised | refused


OPERATION = Operation("id", "registration", OperationKind.PURGE, NOW, completed_at=NOW, error="It failed.")
FILE = FileRecord("path", FileState.FAILED, "hash", Signature(1, 2, 3, 4), 5, reason="It failed.")
STATUS = answers.RegistrationStatus(
    Registration("id", "/path", "/baseline", NOW, Lifecycle.ACTIVE, True, "project", "workspace"),
    Lifecycle.ACTIVE,
    1,
    "ws-1",
    WorkspaceStatus(
        "/path",
        State.ERROR,
        failed_files=(("path", "reason"),),
        last_error="It failed.",
        updated_at=NOW,
        completed_at=NOW,
    ),
)
DEPENDENCY = DependencyStatus(False, 1.5, "It failed.", NOW)
FULL: dict[str, dict[str, Any]] = {
    "Health": {"status": "ready"},
    "ServiceStatus": wire.service(
        answers.CellStatus(
            answers.CellPhase.READY, "", NOW, NOW, "r", (), 0, 0, 0, 0, 0, 0, 0, DEPENDENCY, DEPENDENCY, ("rust",), 0
        ),
        [],
    ),
    "RegistrationStatus": wire.registration(STATUS) | {"revision": "r", "operation": None},
    "OperationStatus": wire.operation(OPERATION) | {"revision": "r"},
    "SearchResponse": wire.search(
        SearchResponse(
            "/path", "main", State.INDEXED, (Hit("path", 1, 2, 0.5, "text", "hash", "hash"),), True, ("path",), 1, 0,
            EmptyReason.NO_MATCH, dict.fromkeys(("sweep", "embedding", "store", "verification"), 0.1),
        )
    ),
    "Receipt": wire.receipt(Receipt("id", True, 1, 2, 3, 4, timedelta(seconds=1), ("worktree",))),
    "FilesPage": wire.files(FilesPage((FILE,), 1)),
    "Explanation": wire.explanation(Explanation("path", False, "reason", "rule", "source", FILE, ((1, 2),))),
    "Token": wire.token(TokenRecord("id", "registration", b"", "label", NOW)) | {"token": "secret"},
    "Orphans": wire.orphans([Orphan("name", OrphanKind.LEDGER, 1, "reason")]) | {"dryRun": True},
}  # fmt: skip
"""Each shape with everything that it may hold."""


@pytest.mark.parametrize("shape", FULL)
def test_the_page_names_every_field_of_a_shape_and_no_other(shape: str) -> None:
    assert set(fields(shape)) == set(paths(FULL[shape]))


@pytest.mark.parametrize(("heading", "model"), [
    ("Registering", wire.RegistrationRequest), ("Searching", wire.SearchRequest),
])  # fmt: skip
def test_the_page_names_every_field_of_a_request(heading: str, model: type[wire.Request]) -> None:
    required = {field.alias for field in model.model_fields.values() if field.is_required()}

    assert set(fields(heading)) == {field.alias for field in model.model_fields.values()}
    assert {name for name, always in fields(heading).items() if always} == required


def test_the_page_lists_every_method_with_its_parameters_and_no_other() -> None:
    taken = {
        name: {f"{field.alias}{'' if field.is_required() else '?'}" for field in method.params.model_fields.values()}
        for name, method in rpc.METHODS.items()
    }

    assert {method.strip("`"): set(re.findall(r"`([^`]+)`", taken)) for method, taken, _ in rows("Methods")} == taken


def test_the_page_lists_every_number_and_every_code_that_a_connection_may_end_with() -> None:
    numbers = {number for name, number in vars(jsonrpc).items() if name.isupper() and isinstance(number, int)}
    ended = set(re.findall(r"_end\((\d{4})", Path(rpc.__file__).read_text(encoding="utf-8")))

    assert {int(number) for number, _ in rows("Numbers")} == numbers
    assert {code for code, _ in rows("Closing")} == ended


def test_the_page_tells_the_limits_of_the_rpc() -> None:
    limits = [rpc.MAX_CONNECTIONS, MAX_MESSAGE, rpc.MAX_IN_FLIGHT, rpc.MAX_WAITING, rpc.PATIENCE, rpc.PING_INTERVAL]

    assert [int(value) for _, value in rows("Limits")] == limits
    assert rpc.PUSH_INTERVAL == 0.1


# Against a cell


@pytest.fixture
def answered(api: httpx2.Client, make_tree: MakeTree, shared: str) -> dict[str, Any]:
    """Answers of a cell, each under the name of its shape."""
    tree = make_tree()
    registered = api.put("/v1/registrations/page", json={"path": str(tree)}).json()
    one = f"/v1/registrations/{shared}"
    operation = api.post("/v1/registrations/page/reindex").json()
    return {
        "Health": api.get("/readyz").json(),
        "RegistrationStatus": registered | {"operation": None} | api.get(one).json(),
        "OperationStatus": api.get(f"/v1/operations/{operation['id']}").json(),
        "SearchResponse": api.post("/v1/search", json={"registrationId": shared, "query": "bearer credentials"}).json(),
        "FilesPage": api.get(f"{one}/files").json(),
        "Explanation": api.get(f"{one}/explain", params={"path": "auth.py"}).json(),
        "Token": api.post("/v1/registrations/page/tokens").json(),
        "Receipt": api.delete("/v1/registrations/page", params={"purge": "true"}).json(),
        "Orphans": api.get("/v1/orphans").json(),
        "ServiceStatus": api.get("/v1/status").json() | {"registrations": []},
    }


def test_a_cell_answers_what_the_page_says(answered: dict[str, Any]) -> None:
    assert answered.keys() == FULL.keys()
    for shape, answer in answered.items():
        found, documented = set(paths(answer)), fields(shape)
        # An empty list tells nothing of its elements.
        empty = {path.removesuffix("[]") for path in found if path.endswith("[]")}
        assert {path.removesuffix("[]") for path in found} <= {
            path.removesuffix("[]") for path in documented
        } | empty, shape
        missing = {path for path, always in documented.items() if always} - found
        assert not {path for path in missing if path.partition("[]")[0] not in empty}, shape


def test_an_error_has_the_body_that_the_page_shows(api: httpx2.Client, shared: str) -> None:
    example = re.search(r"^\{\"error\".*$", PAGE, flags=re.MULTILINE)
    assert example is not None

    response = api.post("/v1/search", json={"registrationId": shared, "query": "x", "maxResults": 51})

    assert response.text.replace('":"', '": "').replace(',"', ', "').replace('":{', '": {') == example[0]
