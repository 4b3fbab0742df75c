"""Refusals on the wire: order of checks, statuses, codes, sentences, media types."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.conftest import Wire

from moorage.api.placement.access import DEFAULT
from moorage.store import open_store
from moorage.testing.ledger_copy import new_database

NOBODYS = "6e2f8a51-0c5d-4d0e-9f3b-7d1a2c3b4e5f"


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/nowhere", 404, None),
        ("GET", "/resource_providers/", 404, None),
        ("GET", "/resource_providers//inventories", 404, None),
        ("DELETE", "/", 405, "GET"),
        ("OPTIONS", "/resource_providers", 405, "GET, POST"),
        ("HEAD", "/resource_providers", 405, "GET, POST"),
        ("GET", "/allocations", 405, "POST"),
    ],
)
def test_unknown_paths_and_methods(
    wire: Any, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = wire(method, path)
    assert (answer.status, answer.headers.get("allow")) == (status, allow)


def test_media_types(wire: Any) -> None:
    path = "/resource_providers"
    as_text = wire("POST", path, raw=b"hello", headers={"content-type": "text/plain"})
    assert as_text.status == 415
    assert "The media type text/plain is not supported, use application/json" in as_text.detail
    assert wire("POST", path, raw=b"{}", headers={"content-type": None}).status == 400
    without = wire("PUT", f"{path}/{uuid.uuid4()}")
    assert "The media type None is not supported" in without.detail
    refused = wire("GET", path, headers={"accept": "text/plain"})
    assert refused.status == 406
    assert refused.headers["content-type"].startswith("text/plain")
    assert wire("GET", path, headers={"accept": "text/html, */*;q=0.8"}).status == 200
    page = wire("GET", "/nowhere", headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")


def test_a_request_without_token_is_refused_before_all_else(wire: Any) -> None:
    answer = wire("GET", "/nowhere", version="9.9", headers={"x-auth-token": None})
    assert answer.status == 401
    assert "openstack-api-version" not in answer.headers
    assert wire("GET", "/", headers={"x-auth-token": None}).status == 200


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"{", "Malformed JSON"),
        (b"\xff\xfe", "Malformed JSON"),
        (b'{"name": "\\ud800"}', "half of a pair of surrogates"),
        (b'{"name": "a\\u0000b"}', "holds NUL"),
        (b"[" * 100_000, "Malformed JSON"),
        (b'{"name": ' + b"9" * 5000 + b"}", "Malformed JSON"),
        (b'{"name": 3}', "3 is not of type 'string'"),
        (b"[]", "[] is not of type 'object'"),
        (b"{}", "'name' is a required property"),
        (b'{"name": ""}', "a provider needs a name"),
        (b'{"name": "n", "colour": 1}', "('colour' was unexpected)"),
        (b'{"name": "n", "uuid": "x"}', "'x' is not a 'uuid'"),
        (b'{"name": "' + b"n" * 201 + b'"}', "Failed validating 'maxLength'"),
    ],
)
def test_bad_bodies_are_told_apart(wire: Any, raw: bytes, sentence: str) -> None:
    answer = wire("POST", "/resource_providers", raw=raw)
    assert answer.status == 400
    assert sentence in answer.detail
    assert wire("GET", "/resource_providers").json == {"resource_providers": []}


@pytest.mark.parametrize(
    "inventory",
    [
        {"total": 0},
        {"total": 2**31},
        {"total": 1.5},
        {"total": True},
        {"total": 4, "allocation_ratio": 1e39},
        {"total": 4, "reserved": 5},
        {"total": 4, "reserved": -1},
        {"total": 4, "step_size": 0},
        {"total": 4, "resource_class": "vcpu"},
        {"total": 4, "resource_class": "CUSTOM_NOBODY_KNOWS"},
        {},
    ],
)
def test_bad_inventories_change_nothing(wire: Any, inventory: dict[str, Any]) -> None:
    provider = wire.provider("host")
    body = {"resource_class": "VCPU", **inventory}
    answer = wire("POST", f"/resource_providers/{provider}/inventories", body)
    assert answer.status == 400, answer.raw
    assert wire.generation(provider) == 0


def test_a_number_that_is_none_is_refused(wire: Any) -> None:
    provider = wire.provider("host")
    raw = b'{"resource_class": "VCPU", "total": 4, "allocation_ratio": NaN}'
    answer = wire("POST", f"/resource_providers/{provider}/inventories", raw=raw)
    assert answer.status == 400
    assert "NaN is not a number" in answer.detail


@pytest.mark.parametrize(
    "query",
    [
        "colour=red",
        "uuid=x",
        "resources=",
        "resources=VCPU",
        "resources=VCPU:0",
        "resources=VCPU:x",
        "resources=NOBODY:1",
        "member_of=x",
        "required=",
        "required=NOBODY",
        "required=!NOBODY",
        "required=in:HW_CPU_X86_AVX,!HW_CPU_X86_AVX2",
        "in_tree=x",
    ],
)
def test_bad_provider_queries(wire: Any, query: str) -> None:
    answer = wire("GET", f"/resource_providers?{query}")
    assert answer.status == 400, answer.raw
    assert answer.json["errors"][0]["code"] == "placement.undefined_code"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "placement.query.missing_value"),
        ("limit=0&resources=VCPU:1", "placement.undefined_code"),
        ("resources=VCPU:1&required=HW_NUMA_ROOT,!HW_NUMA_ROOT", "placement.undefined_code"),
        ("resources1=VCPU:1&resources2=VCPU:1", "placement.undefined_code"),
        ("resources1=VCPU:1&group_policy=maybe", "placement.undefined_code"),
        ("resources1=VCPU:1&required2=HW_NUMA_ROOT", "placement.query.bad_value"),
        ("resources1=VCPU:1&same_subtree=1,9", "placement.query.bad_value"),
        ("resources=VCPU:1&root_required=!", "placement.undefined_code"),
        (
            "resources=VCPU:1&root_required=HW_NUMA_ROOT&root_required=HW_NUMA_ROOT",
            "placement.query.duplicate_key",
        ),
    ],
)
def test_bad_candidate_queries(wire: Any, query: str, code: str) -> None:
    answer = wire("GET", f"/allocation_candidates?{query}")
    assert answer.status == 400, answer.raw
    assert answer.json["errors"][0]["code"] == code


def test_a_stale_generation_is_a_concurrent_update(wire: Any) -> None:
    provider = wire.provider("host", VCPU=4)
    base = f"/resource_providers/{provider}"
    stale = {"resource_provider_generation": 0}
    for path, body in {
        f"{base}/inventories": {**stale, "inventories": {}},
        f"{base}/inventories/VCPU": {**stale, "total": 9},
        f"{base}/traits": {**stale, "traits": []},
        f"{base}/aggregates": {**stale, "aggregates": []},
    }.items():
        answer = wire("PUT", path, body)
        assert answer.status == 409, answer.raw
        assert answer.json["errors"][0]["code"] == "placement.concurrent_update"
    assert wire.generation(provider) == 1


def test_what_is_in_use_stays(wire: Any) -> None:
    provider = wire.provider("host", VCPU=4)
    child = wire.provider("child", provider)
    assert wire.allocate(str(uuid.uuid4()), {provider: {"VCPU": 1}}).status == 204
    base = f"/resource_providers/{provider}"
    codes = {
        f"{base}/inventories/VCPU": "placement.concurrent_update",
        f"{base}/inventories": "placement.inventory.inuse",
        base: "placement.resource_provider.cannot_delete_parent",
    }
    for path, code in codes.items():
        answer = wire("DELETE", path)
        assert (answer.status, answer.json["errors"][0]["code"]) == (409, code)
    assert wire("DELETE", f"/resource_providers/{child}").status == 204
    answer = wire("DELETE", base)
    assert answer.json["errors"][0]["code"] == "placement.resource_provider.inuse"


def test_a_taken_name_says_which(wire: Any) -> None:
    first, second = wire.provider("a"), wire.provider("b")
    by_name = wire("POST", "/resource_providers", {"name": "a"})
    assert "name: a already exists" in by_name.detail
    by_uuid = wire("POST", "/resource_providers", {"name": "c", "uuid": first})
    assert f"uuid: {first} already exists" in by_uuid.detail
    renamed = wire("PUT", f"/resource_providers/{second}", {"name": "a"})
    for answer in (by_name, by_uuid, renamed):
        assert answer.status == 409
        assert answer.json["errors"][0]["code"] == "placement.duplicate_name"


def test_path_that_is_no_text(wire: Any) -> None:
    answer = wire("GET", "/resource_providers?name=%ff")
    assert answer.status == 400


def test_numbers_beyond_all_bounds(wire: Any) -> None:
    huge = 10**30
    host = wire.provider("host", VCPU=4)
    body = {"resource_class": "DISK_GB", "total": 2**31 - 1, "allocation_ratio": 3.4e38}
    assert wire("POST", f"/resource_providers/{host}/inventories", body).status == 201
    for path in ("/allocation_candidates?limit=5&", "/resource_providers?"):
        for resource_class in ("VCPU", "DISK_GB"):
            answer = wire("GET", f"{path}resources={resource_class}:{huge}")
            assert answer.status == 200, answer.raw
            assert answer.json.get("resource_providers", []) == []
            assert answer.json.get("allocation_requests", []) == []
    assert wire.allocate(str(uuid.uuid4()), {host: {"DISK_GB": huge}}).status == 409
    assert wire.allocate(str(uuid.uuid4()), {host: {"DISK_GB": 2**31 - 1}}).status == 204
    answer = wire("GET", f"/allocation_candidates?resources=VCPU:1&limit={'9' * 5000}")
    assert len(answer.json["allocation_requests"]) == 1
    groups = "&".join(f"resources{number}=VCPU:1" for number in range(1, 2000))
    answer = wire("GET", f"/allocation_candidates?group_policy=none&{groups}")
    assert "At most 128 request groups" in answer.detail


def test_a_whole_number_with_a_point_is_one(wire: Any) -> None:
    host = wire.provider("host")
    body = {"resource_class": "VCPU", "total": 4.0, "max_unit": 3.0}
    made = wire("POST", f"/resource_providers/{host}/inventories", body)
    assert b'"total":4,' in made.raw
    consumer = str(uuid.uuid4())
    assert wire.allocate(consumer, {host: {"VCPU": 2.0}}).status == 204
    assert b'"VCPU":2}' in wire("GET", f"/allocations/{consumer}").raw


def test_a_line_break_at_the_end_is_no_part_of_a_name(wire: Any) -> None:
    assert wire("PUT", "/traits/CUSTOM_A\n").status == 201, "it ends the path, as for the reference"
    assert [wire("GET", f"/traits/CUSTOM_A{end}").status for end in ("", "\n\n")] == [204, 404]
    assert wire("PUT", "/traits/CUSTOM_B\n\n").status == 400
    assert wire("POST", "/resource_classes", {"name": "CUSTOM_A\n"}).status == 400
    host, consumer = wire.provider("host", VCPU=4), str(uuid.uuid4())
    body = {
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert wire("POST", "/allocations", {f"{consumer}\n": body}).status == 400
    typed = {**body, "consumer_type": "INSTANCE\n"}
    assert wire("PUT", f"/allocations/{consumer}", typed).status == 400
    assert wire("PUT", f"/allocations/{consumer}", body).status == 204


@pytest.mark.parametrize("name", ["vcpu", "VCPU x", ""])
@pytest.mark.parametrize("value", [{}, {"total": "x"}, {"total": 1}, None, 5, "x", [1], []])
@pytest.mark.parametrize("version", ["1.30", "1.39"])
def test_what_stands_under_the_name_of_no_class(
    wire: Any, name: str, value: object, version: str
) -> None:
    own = wire.provider("host", VCPU=4)
    content = {"resource_provider_generation": 1, "inventories": {name: value}}
    path = f"/resource_providers/{own}/inventories"
    reshape = {"inventories": {own: content}, "allocations": {}}
    for answer in (
        wire("PUT", path, content, version=version),
        wire("POST", "/reshaper", reshape, version=version),
    ):
        assert answer.status == 400, answer.raw
        assert f"No such resource class {name}." in answer.detail
    stale = wire("PUT", path, {**content, "resource_provider_generation": 0})
    assert stale.status == 409, "said first, as by the reference"
    assert list(wire("GET", path).json["inventories"]) == ["VCPU"]


def test_a_ledger_that_is_away_says_when_to_come_again(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    ledger = open_store(new_database(tmp_path))
    wire = Wire(ledger, DEFAULT, "")
    file.write_bytes(b"no database" * 10_000)
    answers = [
        wire("POST", "/resource_providers", {"name": "n"}),
        wire("PUT", "/traits/CUSTOM_T", headers={"accept": "text/html"}),
    ]
    ledger.close()
    assert [(one.status, one.headers["retry-after"]) for one in answers] == [(503, "30")] * 2


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("resources=VCPU:1&resources1=NOPE:1", 400),
        ("resources=VCPU:9&resources1=NOPE:1", 200),
        ("resources1=NOPE:1&resources=VCPU:9", 400),
        ("resources=VCPU:9&required1=CUSTOM_NOPE&resources1=VCPU:1", 200),
        ("resources=VCPU:9&required=CUSTOM_NOPE", 400),
        (f"resources=VCPU:1&required=CUSTOM_NOPE&member_of={NOBODYS}", 200),
        (f"resources=VCPU:1,NOPE:1&member_of={NOBODYS}", 400),
        ("resources=VCPU:1&resources1=NOPE:1&root_required=COMPUTE_NODE", 200),
        ("resources=VCPU:1&resources1=VCPU:9&root_required=CUSTOM_NOPE", 400),
        ("resources=VCPU:9&root_required=!COMPUTE_NODE&resources1=NOPE:1", 200),
        ("resources=CUSTOM_MOORAGE_HOURS:9,VCPU:9&resources1=NOPE:1", 400),
    ],
)
def test_a_name_is_unknown_once_it_is_come_to(wire: Any, asked: str, status: int) -> None:
    """The reference goes from group to group, and stops at one that finds nothing."""
    wire.provider("host", VCPU=4)
    answer = wire("GET", f"/allocation_candidates?{asked}")
    assert answer.status == status, answer.raw
    if status == 200:
        assert answer.json == {"allocation_requests": [], "provider_summaries": {}}


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("required=CUSTOM_NOPE", 400),
        ("required=!CUSTOM_NOPE", 400),
        ("required=!CUSTOM_NOPE,COMPUTE_NODE", 200),
        ("resources=NOPE:1", 400),
        (f"resources=NOPE:1&member_of={NOBODYS}", 200),
        ("resources=NOPE:1&required=COMPUTE_NODE", 200),
        (f"required=CUSTOM_NOPE&in_tree={NOBODYS}", 200),
        (f"required=CUSTOM_NOPE&member_of={NOBODYS}", 400),
    ],
)
def test_a_name_among_filters_is_unknown_once_it_is_come_to(
    wire: Any, asked: str, status: int
) -> None:
    wire.provider("host", VCPU=4)
    answer = wire("GET", f"/resource_providers?{asked}")
    assert answer.status == status, answer.raw
    if status == 200:
        assert answer.json == {"resource_providers": []}


def test_queries_that_say_little(wire: Any) -> None:
    names = [
        wire("GET", f"/resource_providers/{wire.provider(name)}").json["name"] for name in "ab"
    ]

    def listed(query: str) -> list[str]:
        found = wire("GET", f"/resource_providers?{query}").json["resource_providers"]
        return sorted(one["name"] for one in found)

    assert listed("name=") == listed("name") == names, "an empty name is none"
    assert listed("name=a;required=!COMPUTE_NODE") == ["a"], "parted by a semicolon"
    assert listed("name=a%3Brequired") == []
