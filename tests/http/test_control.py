"""The control API, asked as its clients ask it: one real cell, real trees, a real connection."""

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.http.conftest import CONTROL_TOKEN, MAX_REGISTRATIONS, MCP_TOKEN, SOURCE, connected, settled

MakeTree = Callable[..., Path]
Registered = tuple[str, Path]


def refusal(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of an answer that is no success; its sentence ends like one."""
    body = response.json()
    assert body.keys() <= {"error", "code", "detail"}
    assert body["error"][-1] in ".?)"
    return response.status_code, body["code"]


# Registrations


def test_a_registration_is_indexed_searched_and_released_with_a_receipt(
    api: httpx2.Client, make_tree: MakeTree
) -> None:
    tree = make_tree(
        auth=SOURCE, pay="# The vermillion settlement ledger reconciles all invoices that were completed.\n"
    )
    wanted = {"path": str(tree), "projectId": "prj_1", "workspaceId": "wks_1", "purgeOnRelease": True}
    accepted = api.put("/v1/registrations/prj_1:primary", json=wanted)
    assert accepted.json().items() >= {"id": "prj_1:primary", "kind": "primary", "references": 1, **wanted}.items()

    assert settled(api, "/v1/registrations/prj_1:primary", "Indexing")["filesIndexed"] == 2
    answer = api.post(
        "/v1/search", json={"registrationId": "prj_1:primary", "query": "settlement ledger", "maxResults": 1}
    )
    assert [hit["filePath"] for hit in answer.json()["results"]] == ["pay.py"]

    receipt = api.delete("/v1/registrations/prj_1:primary").json()
    assert receipt.items() >= {"released": "prj_1:primary", "purged": True, "points": 2}.items()
    assert refusal(api.delete("/v1/registrations/prj_1:primary")) == (404, "unknown_registration")


def test_repeating_a_registration_changes_nothing_and_contradicting_it_is_a_conflict(
    api: httpx2.Client, registered: Registered, make_tree: MakeTree
) -> None:
    id_, tree = registered
    other = make_tree("other")

    assert api.put(f"/v1/registrations/{id_}", json={"path": f"{tree}/"}).json()["references"] == 1
    assert refusal(api.put(f"/v1/registrations/{id_}", json={"path": str(other)})) == (409, "conflict")
    assert api.get(f"/v1/registrations/{id_}").json()["path"] == str(tree)


def test_of_two_that_claim_an_id_for_different_workspaces_one_wins(api: httpx2.Client, make_tree: MakeTree) -> None:
    trees = [make_tree(name) for name in ("a", "b", "c", "d")]

    def claim(tree: Path) -> int:
        return api.put("/v1/registrations/claimed", json={"path": str(tree)}).status_code

    with ThreadPoolExecutor(len(trees)) as threads:
        assert sorted(threads.map(claim, trees)) == [200, 409, 409, 409]
    assert api.delete("/v1/registrations/claimed").status_code == 200


def test_a_worktree_finds_its_primary_checkout_which_cannot_go_before_it(
    api: httpx2.Client, make_tree: MakeTree, git_repository: Path
) -> None:
    primary = make_tree("primary")
    worktree = primary.parent / "worktree"
    commit = "init -q -b main; add .; commit -q -m first; worktree add -q -b topic ../worktree"
    for arguments in commit.split("; "):
        subprocess.run(["git", *arguments.split()], cwd=primary, check=True)
    assert refusal(api.put("/v1/registrations/topic", json={"path": str(worktree), "baselinePath": str(primary)})) == (
        409, "baseline_missing",
    )  # fmt: skip

    api.put("/v1/registrations/main", json={"path": str(primary)})
    accepted = api.put("/v1/registrations/topic", json={"path": str(worktree)}).json()

    assert accepted.items() >= {"kind": "worktree", "baselinePath": str(primary)}.items()
    in_use = (409, "baseline_in_use")
    assert refusal(api.delete("/v1/registrations/main")) == in_use
    assert refusal(api.post("/v1/registrations/main/reindex")) == in_use
    assert refusal(api.post("/v1/registrations/main/purge")) == in_use
    assert api.delete("/v1/registrations/main", params={"force": "true"}).json()["released"] == "main"
    assert refusal(api.get("/v1/registrations/topic")) == (404, "unknown_registration")


def test_there_are_only_so_many_registrations(api: httpx2.Client, make_tree: MakeTree) -> None:
    tree, before = make_tree(), len(api.get("/v1/registrations").json()["registrations"])
    ids = [f"one-of-many-{number:02}" for number in range(MAX_REGISTRATIONS - before)]
    for id_ in ids:
        assert api.put(f"/v1/registrations/{id_}", json={"path": str(tree)}).status_code == 200

    assert refusal(api.put("/v1/registrations/one-more", json={"path": str(tree)})) == (429, "too_many_registrations")

    listed = [status["id"] for status in api.get("/v1/registrations").json()["registrations"]]
    assert listed == sorted(listed)
    purged = [api.delete(f"/v1/registrations/{id_}", params={"purge": "true"}).json()["purged"] for id_ in ids]
    assert purged == [False] * (len(ids) - 1) + [True]  # the data go with the last reference


# Operations


def test_purge_puts_a_registration_to_rest_and_reindex_wakes_it(api: httpx2.Client, registered: Registered) -> None:
    id_, _ = registered
    search = {"registrationId": id_, "query": "bearer credentials"}
    begun = api.post(f"/v1/registrations/{id_}/purge")
    assert begun.status_code == 202
    assert begun.json().items() >= {"registrationId": id_, "kind": "purge", "state": "running"}.items()

    purged = settled(api, f"/v1/operations/{begun.json()['id']}", "running")
    assert purged["state"] == "completed"
    assert purged["completedAt"] >= purged["startedAt"]
    assert api.get(f"/v1/registrations/{id_}").json()["state"] == "Standby"
    assert refusal(api.post("/v1/search", json=search)) == (503, "not_ready")

    begun = api.post(f"/v1/registrations/{id_}/reindex").json()
    assert settled(api, f"/v1/operations/{begun['id']}", "running")["state"] == "completed"
    assert len(api.post("/v1/search", json=search).json()["results"]) == 1


def test_an_operation_that_fails_says_why(api: httpx2.Client, registered: Registered) -> None:
    id_, tree = registered
    elsewhere = tree.rename(tree.with_name("moved away"))
    begun = api.post(f"/v1/registrations/{id_}/reindex").json()

    failed = settled(api, f"/v1/operations/{begun['id']}", "running")

    assert failed["state"] == "failed"
    assert str(tree) in failed["error"]
    elsewhere.rename(tree)


# Waiting


def test_a_client_may_wait_for_a_change(api: httpx2.Client, registered: Registered) -> None:
    id_, tree = registered
    now = api.get(f"/v1/registrations/{id_}").json()["revision"]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(api.get, f"/v1/registrations/{id_}", params={"wait": "25", "since": now})
        api.put(f"/v1/registrations/{id_}-again", json={"path": str(tree)})
        changed = waiting.result().json()

    assert changed["references"] == 2
    assert changed["revision"] != now
    api.delete(f"/v1/registrations/{id_}-again")


@pytest.mark.parametrize("since", ["0123-5", "nonsense", "", "-", "{boot}-" + "9" * 5000])
def test_a_revision_of_another_life_is_answered_at_once(api: httpx2.Client, since: str) -> None:
    since = since.format(boot=api.get("/v1/status").json()["revision"].rpartition("-")[0])

    assert api.get("/v1/status", params={"wait": "25", "since": since}, timeout=20).status_code == 200


def test_a_revision_from_the_future_is_taken_for_the_present(api: httpx2.Client, make_tree: MakeTree) -> None:
    tree = make_tree()
    boot, _, _ = api.get("/v1/status").json()["revision"].rpartition("-")

    with ThreadPoolExecutor(1) as threads:
        params = {"wait": "25", "since": f"{boot}-{'9' * 18}"}
        waiting = threads.submit(api.get, "/v1/status", params=params, timeout=20)
        while not waiting.done():
            api.put("/v1/registrations/from-the-future", json={"path": str(tree)})
            api.delete("/v1/registrations/from-the-future", params={"purge": "true"})
        assert waiting.result().status_code == 200


# Search tokens


def test_a_search_token_opens_mcp_alone_and_goes_with_its_registration(
    service: Any, api: httpx2.Client, registered: Registered, make_tree: MakeTree
) -> None:
    id_, _ = registered
    api.put("/v1/registrations/short-lived", json={"path": str(make_tree("other"))})

    def mcp_status(token: str) -> int:
        with connected(service, token) as agent:
            return agent.get("/mcp", headers={"Accept": "text/event-stream"}).status_code

    made = api.post(f"/v1/registrations/{id_}/tokens", json={"label": "for an agent"})
    other = api.post("/v1/registrations/short-lived/tokens").json()["token"]
    assert made.status_code == 201
    token = made.json().pop("token")
    assert api.get(f"/v1/registrations/{id_}/tokens").json() == {
        "tokens": [{name: value for name, value in made.json().items() if name != "token"}]
    }
    with connected(service, token) as agent:
        assert refusal(agent.get("/v1/status")) == (401, "unauthorized")
    assert mcp_status(token) != 401
    assert mcp_status(other) != 401

    assert api.delete(f"/v1/registrations/short-lived/tokens/{made.json()['id']}").status_code == 404
    assert api.delete(f"/v1/registrations/{id_}/tokens/{made.json()['id']}").json() == {"revoked": made.json()["id"]}
    api.delete("/v1/registrations/short-lived")
    assert mcp_status(token) == mcp_status(other) == 401


# Looking inside


def test_the_ledger_is_paged_by_path_and_filtered_by_state(api: httpx2.Client, make_tree: MakeTree) -> None:
    tree = make_tree(**{name: f"{SOURCE}# {name}\n" for name in ("a", "b", "c")})
    (tree / "huge.py").write_text("#" * (1 << 20) + SOURCE)
    api.put("/v1/registrations/paged", json={"path": str(tree)})
    settled(api, "/v1/registrations/paged", "Indexing")
    route = "/v1/registrations/paged/files"

    first = api.get(route, params={"limit": "2"}).json()
    rest = api.get(route, params={"after": first["files"][-1]["path"]}).json()
    skipped = api.get(route, params={"state": "skipped"}).json()

    assert [file["path"] for file in first["files"] + rest["files"]] == ["a.py", "b.py", "c.py", "huge.py"]
    assert first["total"] == rest["total"] == 4
    assert [(file["path"], bool(file["reason"])) for file in skipped["files"]] == [("huge.py", True)]
    api.delete("/v1/registrations/paged", params={"purge": "true"})


def test_a_path_is_explained(api: httpx2.Client, registered: Registered) -> None:
    id_, tree = registered
    (tree / ".gitignore").write_text("\nsecret*\n")
    (tree / "secret.py").write_text(SOURCE)
    route = f"/v1/registrations/{id_}/explain"

    found = api.get(route, params={"path": "auth.py"}).json()
    ignored = api.get(route, params={"path": "secret.py"}).json()

    assert found.items() >= {"path": "auth.py", "searchable": True}.items()
    assert found["chunks"][0]["startLine"] == 1
    assert ignored.items() >= {"searchable": False, "rule": "secret*", "source": ".gitignore:2"}.items()
    assert ignored["chunks"] == []


def test_metrics_count_what_happened(api: httpx2.Client, shared: str) -> None:

    def searches() -> float:
        exposed = api.get("/metrics")
        assert exposed.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = dict(line.rsplit(" ", 1) for line in exposed.text.splitlines() if not line.startswith("#"))
        assert float(lines['semindex_files{state="indexed"}']) >= 1
        return float(lines.get('semindex_search_seconds_count{part="store"}', "0"))

    before = searches()
    api.post("/v1/search", json={"registrationId": shared, "query": "credentials"})

    assert searches() == before + 1


def test_a_status_tells_of_the_whole_cell(api: httpx2.Client, shared: str) -> None:
    status = api.get("/v1/status").json()

    assert status["phase"] == "ready"
    assert shared in [each["id"] for each in status["registrations"]]
    for dependency in status["dependencies"].values():
        assert dependency["reachable"]
        assert dependency["latencyMs"] >= 0
        assert dependency["checkedAt"].endswith("Z")
    for each in status["registrations"]:
        states = each["filesIndexed"] + each["pendingFiles"] + each["skippedFiles"] + each["failedFiles"]["count"]
        assert each["filesDiscovered"] == states


def test_a_cell_that_is_tidy_has_no_orphans_to_purge(api: httpx2.Client, shared: str) -> None:
    collection = api.get(f"/v1/registrations/{shared}").json()["collection"]

    assert api.get("/v1/orphans").json() == {"orphans": []}
    for names in ([collection], ["ws-0123456789abcdef"], [collection, "x"], [], "x", [5]):
        for dry_run in (True, False):
            refused = api.post("/v1/orphans/purge", json={"names": names, "dryRun": dry_run})
            assert refusal(refused) == (422, "invalid")
    assert api.get(f"/v1/registrations/{shared}").json()["state"] == "Indexed"


# What is refused


@pytest.mark.parametrize(("body", "field"), [
    ({}, "path"),
    ({"path": ""}, "path"),
    ({"path": None}, "path"),
    ({"path": 5}, "path"),
    ({"path": "/x", "baselinePath": None}, "baselinePath"),
    ({"path": "/x", "baselinePath": ""}, "baselinePath"),
    ({"path": "/x", "baseline_path": "/y"}, "baseline_path"),
    ({"path": "/x", "kind": "primary"}, "kind"),
    ({"path": "/x", "force": "true"}, "force"),
    ({"path": "/x", "purgeOnRelease": 1}, "purgeOnRelease"),
    ({"path": "/x", "projectId": "p" * 257}, "projectId"),
    ([], "body"),
    ("/x", "body"),
])  # fmt: skip
def test_a_registration_that_breaks_the_schema_is_refused_by_field(api: httpx2.Client, body: Any, field: str) -> None:
    response = api.put("/v1/registrations/broken", json=body)

    assert refusal(response) == (422, "invalid")
    assert response.json().get("detail", {}).get("field") in (field, "")
    assert field in response.json()["error"]


@pytest.mark.parametrize("fields", [
    {"query": ""}, {"query": "  \n"}, {"query": "q" * 2001}, {"query": 5}, {"query": None},
    {"maxResults": 0}, {"maxResults": 51}, {"maxResults": "5"}, {"maxResults": 5.5}, {"maxResults": True},
    {"path": "/etc"}, {"path": "../x"}, {"path": "a/../../x"}, {"path": "a\0b"}, {"path": "p" * 1025}, {"path": "\ud800"},
    {"fresh": "no"}, {"overlap": "all"}, {"limit": 5}, {"registrationId": ""},
], ids=lambda fields: json.dumps(fields)[:40])  # fmt: skip
def test_a_search_that_breaks_a_rule_is_refused(api: httpx2.Client, shared: str, fields: dict[str, Any]) -> None:
    body = {"registrationId": shared, "query": "credentials", **fields}

    assert refusal(api.post("/v1/search", content=json.dumps(body))) == (422, "invalid")


@pytest.mark.parametrize("content", [
    b"{", b"not json", b'{"query": "x"', b"\xff\xfe", b"[" * 60_000, b'{"a":' * 10_000, b"9" * 5_000 + b"x", b'{"a":NaN} x',
])  # fmt: skip
def test_what_is_not_json_is_malformed(api: httpx2.Client, content: bytes) -> None:
    assert refusal(api.post("/v1/search", content=content)) == (400, "not_json")


@pytest.mark.parametrize(("path", "expected"), [
    ("{tree}/missing", (422, "path_refused")),
    ("{tree}/auth.py", (422, "path_refused")),
    ("relative", (422, "path_refused")),
    ("{tree}/../project", (422, "path_refused")),
    ("{tree}\0", (422, "path_refused")),
    ("{tree}\ud800", (422, "invalid")),
    ("/" + "p/" * 3000, (422, "path_refused")),
    ("/", (422, "path_refused")),
    ("/usr", (403, "outside_roots")),
    ("{tree}/link out", (403, "outside_roots")),
    ("{trees} and more", (403, "outside_roots")),
])  # fmt: skip
def test_a_path_that_may_not_be_indexed_is_refused(
    api: httpx2.Client, make_tree: MakeTree, service: Any, path: str, expected: tuple[int, str]
) -> None:
    tree = make_tree()
    (tree / "link out").symlink_to("/usr")
    trees = service.home / "trees"
    trees.with_name("trees and more").mkdir(exist_ok=True)

    wanted = json.dumps({"path": path.format(tree=tree, trees=trees)})

    assert refusal(api.put("/v1/registrations/refused", content=wanted)) == expected


@pytest.mark.parametrize("id_", ["a b", "%C3%A4", "%00", "x" * 129, "%E2%80%AE"])
def test_an_id_has_a_plain_form(api: httpx2.Client, make_tree: MakeTree, id_: str) -> None:
    assert refusal(api.put(f"/v1/registrations/{id_}", json={"path": str(make_tree())})) == (422, "invalid")


@pytest.mark.parametrize(("method", "route", "expected"), [
    ("GET", "/v1/registrations/nobody", "unknown_registration"),
    ("GET", "/v1/registrations/nobody?wait=25", "unknown_registration"),
    ("DELETE", "/v1/registrations/nobody", "unknown_registration"),
    ("POST", "/v1/registrations/nobody/reindex", "unknown_registration"),
    ("POST", "/v1/registrations/nobody/purge", "unknown_registration"),
    ("GET", "/v1/registrations/nobody/files", "unknown_registration"),
    ("GET", "/v1/registrations/nobody/explain?path=x", "unknown_registration"),
    ("GET", "/v1/registrations/nobody/tokens", "unknown_registration"),
    ("POST", "/v1/registrations/nobody/tokens", "unknown_registration"),
    ("DELETE", "/v1/registrations/nobody/tokens/none", "unknown_registration"),
    ("GET", "/v1/operations/nothing", "unknown_operation"),
    ("GET", "/v1/operations/nothing?wait=25", "unknown_operation"),
    ("GET", "/v1/nothing", "not_found"),
    ("GET", "/v1/", "not_found"),
    ("GET", "/v1/status/", "not_found"),
    ("GET", "/v1/status/more", "not_found"),
    ("GET", "/v1/registrations/a%2Fb", "not_found"),
    ("GET", "/elsewhere", "not_found"),
    ("GET", "/", "not_found"),
])  # fmt: skip
def test_what_is_not_there_is_404_and_says_what(api: httpx2.Client, method: str, route: str, expected: str) -> None:
    assert refusal(api.request(method, route)) == (404, expected)


@pytest.mark.parametrize(("method", "route", "allowed"), [
    ("POST", "/v1/status", "GET, HEAD"),
    ("PATCH", "/v1/registrations/x", "DELETE, GET, HEAD, PUT"),
    ("GET", "/v1/search", "POST"),
    ("PUT", "/v1/registrations/x/reindex", "POST"),
    ("POST", "/healthz", "GET, HEAD"),
    ("DELETE", "/metrics", "GET, HEAD"),
])  # fmt: skip
def test_a_wrong_method_is_told_the_right_ones(api: httpx2.Client, method: str, route: str, allowed: str) -> None:
    response = api.request(method, route)

    assert refusal(response) == (405, "method_not_allowed")
    assert response.headers["allow"] == allowed


@pytest.mark.parametrize("route", [
    "/v1/registrations/{id}?purge=true", "/v1/registrations/{id}?wait=soon", "/v1/registrations/{id}?wait=-1",
    "/v1/registrations/{id}?wait=nan", "/v1/registrations/{id}?wait=1&wait=2", "/v1/status?verbose=1",
    "/v1/registrations/{id}/files?state=lost", "/v1/registrations/{id}/files?limit=0",
    "/v1/registrations/{id}/files?limit=1001", "/v1/registrations/{id}/files?limit=1.5",
    "/v1/registrations/{id}/files?limit=-1", "/v1/registrations/{id}/explain", "/v1/registrations?page=2",
    "/v1/registrations/{id}/explain?path=", "/v1/registrations/{id}/explain?path=/etc/passwd",
    "/v1/registrations/{id}/explain?path=../project/auth.py", "/v1/registrations/{id}/explain?path=a%00b",
    "/v1/registrations/{id}/explain?path={long}",
])  # fmt: skip
def test_a_query_parameter_that_breaks_a_rule_is_refused(api: httpx2.Client, shared: str, route: str) -> None:
    assert refusal(api.get(route.format(id=shared, long="p" * 1025))) == (422, "invalid")


@pytest.mark.parametrize("option", ["purge=1", "purge=", "purge", "force=yes", "purge=TRUE"])
def test_a_flag_is_true_or_false(api: httpx2.Client, shared: str, option: str) -> None:
    assert refusal(api.delete(f"/v1/registrations/{shared}?{option}")) == (422, "invalid")
    assert api.get(f"/v1/registrations/{shared}").status_code == 200


def test_head_is_get_without_a_body(api: httpx2.Client) -> None:
    response = api.head("/v1/status")

    assert response.status_code == 200
    assert response.content == b""
    assert int(response.headers["content-length"]) > 0


def test_no_answer_may_be_kept_by_a_cache(api: httpx2.Client) -> None:
    routes = ["/healthz", "/readyz", "/v1/status", "/metrics", "/v1/nothing"]

    assert {api.get(route).headers["cache-control"] for route in routes} == {"no-store"}


def test_the_tokens_are_for_one_door_each(service: Any) -> None:
    for token, route in ((MCP_TOKEN, "/v1/status"), (CONTROL_TOKEN, "/mcp"), (MCP_TOKEN, "/metrics")):
        with connected(service, token) as client:
            assert refusal(client.get(route)) == (401, "unauthorized")
