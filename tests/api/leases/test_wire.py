"""What every request of the lease API has in common: versions, paths, verbs, bodies, pages."""

import json
from typing import Any

import pytest
from falcon.testing import TestClient
from tests.api.leases.conftest import Door, instances

from moorage.api.leases import create_app
from moorage.testing.service import OPERATOR, TENANT

OURS = {"OpenStack-API-Version": "reservation 1.1"}
NOBODY = "99999999-9999-4999-8999-999999999999"


def raw(door: Door, method: str, path: str, body: bytes = b"", **more: Any) -> Any:
    """A request as bytes, to any path below the mount."""
    client = TestClient(create_app(door.service.env))
    extras = {"moorage.caller": more.pop("caller", TENANT), "moorage.request_id": "req-raw"}
    return client.simulate_request(method, path, body=body, extras=extras, **more)


def early(answer: Any, status: int) -> str:
    """The message of an error from before any handler."""
    assert answer.status_code == status, answer.text
    assert answer.json.keys() == {"error", "error_message"}
    assert answer.json["error"] == status
    return str(answer.json["error_message"])


def late(answer: Any, status: int) -> str:
    """The message of a handler's error."""
    assert answer.status_code == status, answer.text
    assert (answer.json["error_code"], answer.json["error_name"]) == (status, status)
    return str(answer.json["error_message"])


@pytest.mark.parametrize("path", ["/", "/versions", "/versions.json"])
def test_versions_are_told_with_300(one: Door, path: str) -> None:
    answer = raw(one, "GET", path, root_path="/reservation")
    assert answer.status_code == 300
    (version,) = answer.json["versions"]
    assert version["links"][0]["href"].endswith("/reservation/v1")
    told = {key: version[key] for key in ("id", "status", "min_version", "max_version")}
    assert told == {
        "id": "v1.0",
        "status": "CURRENT",
        "min_version": "1.0",
        "max_version": "1.1",
    }


def test_every_route_answers_with_json_behind_it(one: Door) -> None:
    assert raw(one, "GET", "/v1/leases.json").json == {"leases": []}
    lease = one.lease("10:00", "12:00", instances(1, 1)).json["lease"]
    assert raw(one, "GET", f"/v1/leases/{lease['id']}.json").json["lease"]["id"] == lease["id"]
    assert raw(one, "GET", "/v1/leases/").json["leases"][0]["id"] == lease["id"]
    assert raw(one, "GET", "/v1/os-hosts.json", caller=OPERATOR).json == {"hosts": []}


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1.json"])
def test_the_version_tells_of_itself_without_a_token(one: Door, path: str) -> None:
    told = raw(one, "GET", path, caller=None).json["version"]
    assert (told["id"], told["status"]) == ("v1.0", "CURRENT")
    assert told["links"][0]["href"].endswith("/v1")


@pytest.mark.parametrize("path", ["/v2/leases", "/v1/plugins", "/v1/leases/a/b", "/.json/x"])
def test_other_paths_are_not_found(one: Door, path: str) -> None:
    assert early(raw(one, "GET", path), 404) == "Not Found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/leases", "GET, POST"),
        ("HEAD", "/v1/leases", "GET, POST"),
        ("OPTIONS", "/v1/leases", "GET, POST"),
        ("PATCH", "/v1/leases/x", "DELETE, GET, PUT"),
        ("PUT", "/v1/floatingips/x", "DELETE, GET"),
        ("DELETE", "/v1/os-hosts/properties/x", "PATCH"),
        ("POST", "/v1/os-hosts/allocations", "GET"),
    ],
)
def test_a_verb_that_a_path_has_not_is_refused_with_those_it_has(
    one: Door, method: str, path: str, allowed: str
) -> None:
    answer = raw(one, method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert early(answer, 405) == "Method Not Allowed"


# The test client's own check of what it sends.
@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_a_verb_that_is_none_changes_nothing(one: Door) -> None:
    answer = raw(one, "BREW", "/v1/leases", b'{"name": "x"}')
    assert answer.status_code in {400, 405}
    assert one.call("GET", "/leases").json == {"leases": []}


@pytest.mark.parametrize(
    ("said", "status", "negotiated"),
    [
        (None, 200, "1.0"),
        ("reservation 1.0", 200, "1.0"),
        ("reservation 1.1", 200, "1.1"),
        ("reservation latest", 200, "1.1"),
        ("placement 1.39", 200, "1.0"),
        ("placement 1.39, reservation 1.1", 200, "1.1"),
        ("reservation 1.2", 406, None),
        ("reservation 2.0", 406, None),
        ("reservation 0.9", 406, None),
        ("reservation one", 400, None),
        ("reservation 1", 400, None),
        ("reservation 1.1.1", 400, None),
    ],
)
def test_the_version_is_negotiated(
    one: Door, said: str | None, status: int, negotiated: str | None
) -> None:
    headers = {} if said is None else {"OpenStack-API-Version": said}
    answer = one.call("GET", "/leases", headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["vary"] == "OpenStack-API-Version"
    if negotiated is not None:
        assert answer.headers["openstack-api-version"] == f"reservation {negotiated}"
    else:
        assert "ersion" in early(answer, status)


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b'{"name": }', b"[" * 200_000, b"nul"],
    ids=range(5),
)
def test_a_body_that_is_no_json_is_refused_before_any_handler(one: Door, body: bytes) -> None:
    assert "JSON" in early(raw(one, "POST", "/v1/leases", body), 400)


@pytest.mark.parametrize("body", [b"[]", b'[{"name": "x"}]', b'"x"', b"7", b"null", b""])
@pytest.mark.parametrize("path", ["/v1/leases", "/v1/os-hosts", "/v1/floatingips"])
def test_a_body_that_is_no_object_is_refused(one: Door, path: str, body: bytes) -> None:
    answer = raw(one, "POST", path, body, caller=OPERATOR)
    assert "object" in late(answer, 400)


NUMBERS = [10**9, 10**18, 10**30, 1e308, -1, 1.5, True, "9" * 5000, "\uff11", None, [], {}]


@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
@pytest.mark.parametrize("key", ["amount", "vcpus", "memory_mb"])
def test_numbers_that_are_none_or_huge_are_refused(one: Door, key: str, number: object) -> None:
    answer = one.lease("10:00", "12:00", {**instances(1, 1), key: number})
    assert answer.status_code in {400, 403, 500}, answer.text
    if answer.status_code == 500:
        assert answer.json["error_message"] == "Not enough hosts available"
    assert one.call("GET", "/leases").json == {"leases": []}


@pytest.mark.parametrize(
    "text", [b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 5000], ids=range(5)
)
def test_numbers_beyond_json_are_refused(one: Door, text: bytes) -> None:
    part = json.dumps(instances(1, 1)).encode().replace(b'"amount": 1', b'"amount": ' + text)
    body = b'{"name": "l", "start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"'
    answer = raw(one, "POST", "/v1/leases", body + b', "reservations": [' + part + b"]}")
    assert answer.status_code == 400, answer.text
    assert one.call("GET", "/leases").json == {"leases": []}


def test_of_several_reservations_the_bad_one_is_named(one: Door) -> None:
    good, bad = instances(1, 1), {**instances(1, 1), "vcpus": "four"}
    alone = late(one.lease("10:00", "12:00", bad), 400)
    assert late(one.lease("10:00", "12:00", good, bad), 400) == f"reservations[1]: {alone}"


def test_pages_are_ours_and_blazar_has_none(one: Door) -> None:
    made = [one.lease("10:00", "12:00", instances(1, 1)).json["lease"]["id"] for _ in range(3)]

    def listed(query: str, headers: dict[str, str]) -> list[str]:
        answer = raw(one, "GET", "/v1/leases", query_string=query, headers=headers)
        assert answer.status_code == 200, answer.text
        return [lease["id"] for lease in answer.json["leases"]]

    assert listed("limit=2", OURS) == made[:2]
    assert listed(f"limit=2&marker={made[1]}", OURS) == made[2:]
    assert listed("limit=999999999999", OURS) == made
    assert listed("name=l", OURS) == made
    assert listed("name=other", OURS) == []
    assert listed("limit=nothing&marker=x&name=other", {}) == made, "1.0 looks at no query"
    for query in ("limit=0", "limit=-1", "limit=x", "limit=", "limit=%D9%A1"):
        refused = raw(one, "GET", "/v1/leases", query_string=query, headers=OURS)
        assert "limit" in late(refused, 400)
    gone = raw(one, "GET", "/v1/leases", query_string=f"marker={NOBODY}", headers=OURS)
    assert NOBODY in late(gone, 404)


def test_pages_are_as_long_as_asked_for_whatever_was_deleted(one: Door) -> None:
    made = [one.lease("10:00", "12:00", instances(1, 1)).json["lease"]["id"] for _ in range(4)]
    for gone in made[:2]:
        assert one.call("DELETE", f"/leases/{gone}").status_code == 204
    answer = raw(one, "GET", "/v1/leases", query_string="limit=2", headers=OURS)
    assert [lease["id"] for lease in answer.json["leases"]] == made[2:]


@pytest.mark.parametrize(
    "value",
    ["NaN", "Infinity", "1e400", "9" * 5_000, '"\\ud800"'],
    ids=["nan", "infinity", "large", "long", "surrogate"],
)
def test_a_number_or_text_that_is_none_is_no_json(one: Door, value: str) -> None:
    body = b'{"name": "l", "reservations": [{"amount": ' + value.encode() + b"}]}"
    assert early(raw(one, "POST", "/v1/leases", body), 400) == "The request's body is not JSON"


@pytest.mark.parametrize("affinity", [[], {}, [["None"]], 1])
def test_an_affinity_of_another_type_is_refused(one: Door, affinity: object) -> None:
    answer = one.lease("10:00", "12:00", instances(1, 1, affinity=affinity))
    assert late(answer, 400).startswith("affinity must be True, False or None")


@pytest.mark.parametrize(
    ("words", "affinity"),
    [
        (("None", "none", "NONE"), None),
        (("True", "TRUE", "true", "t", "Yes", "y", "on", "1"), True),
        (("False", "FALSE", "f", "no", "N", "off", "0"), False),
    ],
    ids=str,
)
def test_an_affinity_has_the_words_that_it_has_in_blazar(
    one: Door, words: tuple[str, ...], affinity: object
) -> None:
    for word in words:
        answer = one.lease("10:00", "12:00", instances(1, 1, affinity=word))
        assert answer.json["lease"]["reservations"][0]["affinity"] is affinity, word


def test_reservations_of_the_native_api_have_a_flavor_only_for_servers(one: Door) -> None:
    link = {"name": "link", "kind": "port", "resources": {"MEMORY_MB": 1}}
    roles = [link, {"name": "web", "flavor": "small"}]
    body = {"name": "net", "duration": "PT1H", "ensemble": {"name": "net", "members": roles}}
    made = one.service.call("POST", "/leases", {"lease": body})
    assert made.status_code == 201, made.text
    (lease,) = one.call("GET", "/leases").json["leases"]
    port, server = lease["reservations"]
    assert (port["resource_type"], "flavor_id" in port) == ("port", False)
    assert (server["resource_type"], server["flavor_id"]) == ("flavor:instance", server["id"])
