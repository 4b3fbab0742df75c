"""Versions on the wire: the header, and every declared version answering every reading route."""

import uuid
from typing import Any

import pytest

from moorage.api.placement.routes import TABLE
from moorage.api.placement.versions import HISTORY

VERSIONS = [str(change.version) for change in HISTORY.changes]


def test_the_history_is_placements() -> None:
    assert [f"1.{minor}" for minor in range(40)] == VERSIONS


@pytest.mark.parametrize(
    ("header", "negotiated"),
    [
        (None, "1.0"),
        ("placement latest", "1.39"),
        ("placement 1.9", "1.9"),
        ("compute 2.1, Placement 1.10", "1.10"),
        ("compute latest", "1.0"),
        ("placement", "1.0"),
        ("placement 1.3, placement 1.10", "1.10"),
        ("  placement   1.2 ", "1.2"),
    ],
)
def test_the_version_spoken_is_told_back(wire: Any, header: str | None, negotiated: str) -> None:
    answer = wire("GET", "/", headers={"openstack-api-version": header})
    assert answer.status == 200
    assert answer.headers["openstack-api-version"] == f"placement {negotiated}"
    assert answer.headers["vary"] == "openstack-api-version"
    assert answer.json["versions"][0]["max_version"] == "1.39"


@pytest.mark.parametrize(
    ("header", "status", "sentence"),
    [
        ("placement pony.horse", 400, "invalid version string: pony.horse"),
        ("placement 1", 400, "invalid version string: 1"),
        ("placement LATEST", 400, "invalid version string: LATEST"),
        ("placement 1.40", 406, "Unacceptable version header: 1.40"),
        ("placement 0.9", 406, "Unacceptable version header: 0.9"),
    ],
)
def test_a_version_that_is_none(wire: Any, header: str, status: int, sentence: str) -> None:
    answer = wire("GET", "/", headers={"openstack-api-version": header})
    assert answer.status == status
    assert sentence in answer.detail
    assert "openstack-api-version" not in answer.headers
    error = answer.json["errors"][0]
    assert "code" not in error
    assert error["request_id"].startswith("req-")
    if status == 406:
        assert (error["min_version"], error["max_version"]) == ("1.0", "1.39")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_answers_every_route_it_has(wire: Any, version: str) -> None:
    """Also that lifting and lowering never break: no answer is a 500."""
    provider = wire.provider("host", VCPU=8)
    consumer = str(uuid.uuid4())
    assert wire.allocate(consumer, {provider: {"VCPU": 2}}).status == 204
    items = {
        "uuid": provider,
        "resource_class": "VCPU",
        "name": "VCPU",
        "consumer_uuid": consumer,
    }
    queries = {
        "candidates.list": "?resources=VCPU:1",
        "usages.show": "?project_id=p",
    }
    negotiated = HISTORY.negotiated(f"placement {version}", "placement")
    for method, path, operation, _, _ in TABLE:
        if method != "GET" or operation == "trait.show":
            continue
        answer = wire("GET", path.format(**items) + queries.get(operation, ""), version=version)
        assert answer.status == (negotiated.absent(operation) or 200), (operation, answer.raw)
        assert ("last-modified" in answer.headers) == (
            answer.status == 200 and negotiated.has("cache-headers")
        ), operation


def test_a_provider_shows_what_its_version_knows(wire: Any) -> None:
    uuid_ = wire.provider("host")
    shown = {v: wire("GET", f"/resource_providers/{uuid_}", version=v).json for v in VERSIONS}
    assert "root_provider_uuid" not in shown["1.13"]
    assert shown["1.14"]["root_provider_uuid"] == uuid_
    rels = {v: [link["rel"] for link in one["links"]] for v, one in shown.items()}
    assert rels["1.0"] == ["self", "inventories", "usages"]
    assert rels["1.1"] == [*rels["1.0"], "aggregates"]
    assert rels["1.6"] == [*rels["1.1"], "traits"]
    assert rels["1.11"] == [*rels["1.6"], "allocations"]
    assert shown["1.0"]["links"][0]["href"] == f"/placement/resource_providers/{uuid_}"


def test_an_older_allocation_write_means_the_same(wire: Any) -> None:
    provider = wire.provider("host", VCPU=8)
    listed = {"allocations": [{"resource_provider": {"uuid": provider}, "resources": {"VCPU": 1}}]}
    owner = {"project_id": "p", "user_id": "u"}
    by_dict = {"allocations": {provider: {"resources": {"VCPU": 1}}}, **owner}
    bodies = {
        "1.7": listed,
        "1.11": {**listed, **owner},
        "1.12": by_dict,
        "1.28": {**by_dict, "consumer_generation": None},
        "1.34": {**by_dict, "consumer_generation": None, "mappings": {"": [provider]}},
        "1.38": {**by_dict, "consumer_generation": None, "consumer_type": "INSTANCE"},
    }
    seen = []
    for version, body in bodies.items():
        consumer = str(uuid.uuid4())
        answer = wire("PUT", f"/allocations/{consumer}", body, version=version)
        assert answer.status == 204, (version, answer.raw)
        seen.append(wire("GET", f"/allocations/{consumer}").json)
    assert [one["allocations"][provider]["resources"] for one in seen] == [{"VCPU": 1}] * 6
    assert seen[0]["project_id"] == "00000000-0000-0000-0000-000000000000"
    assert [one["project_id"] for one in seen[1:]] == ["p"] * 5
    assert [one["consumer_type"] for one in seen] == ["unknown"] * 5 + ["INSTANCE"]


@pytest.mark.parametrize(
    ("version", "body"),
    [("1.7", "project_id"), ("1.27", "consumer_generation"), ("1.37", "consumer_type")],
)
def test_what_came_later_is_refused_before(wire: Any, version: str, body: str) -> None:
    provider = wire.provider("host", VCPU=8)
    content: dict[str, Any] = {"allocations": {provider: {"resources": {"VCPU": 1}}}}
    if version == "1.7":
        content["allocations"] = [
            {"resource_provider": {"uuid": provider}, "resources": {"VCPU": 1}}
        ]
    else:
        content |= {"project_id": "p", "user_id": "u"}
    if version == "1.37":
        content["consumer_generation"] = None
    path = f"/allocations/{uuid.uuid4()}"
    assert wire("PUT", path, content, version=version).status == 204
    refused = wire("PUT", path, {**content, body: "x"}, version=version)
    assert refused.status == 400
    assert f"('{body}' was unexpected)" in refused.detail


def test_a_route_is_absent_before_its_version(wire: Any) -> None:
    assert wire("GET", "/resource_classes", version="1.1").status == 404
    assert wire("GET", "/resource_classes", version="1.2").status == 200
    path = f"/resource_providers/{wire.provider('host')}/inventories"
    absent = wire("DELETE", path, version="1.4")
    assert (absent.status, absent.headers["allow"]) == (405, "GET, POST, PUT, DELETE")
    assert wire("DELETE", path, version="1.5").status == 204


def test_put_of_a_class_renamed_it_before_1_7(wire: Any) -> None:
    assert wire("PUT", "/resource_classes/CUSTOM_A", version="1.7").status == 201
    renamed = wire("PUT", "/resource_classes/CUSTOM_A", {"name": "CUSTOM_B"}, version="1.6")
    assert (renamed.status, renamed.json["name"]) == (200, "CUSTOM_B")
    assert wire("GET", "/resource_classes/CUSTOM_A").status == 404
    assert wire("PUT", "/resource_classes/CUSTOM_B").status == 204


def test_errors_have_codes_since_1_23(wire: Any) -> None:
    assert "code" not in wire("GET", "/nowhere", version="1.22").json["errors"][0]
    error = wire("GET", "/nowhere", version="1.23").json["errors"][0]
    assert error["code"] == "placement.undefined_code"


def test_candidates_in_each_of_their_shapes(wire: Any) -> None:
    root = wire.provider("host", VCPU=8, MEMORY_MB=512)
    query = "/allocation_candidates?resources=VCPU:2"
    shown = {v: wire("GET", query, version=v).json for v in ("1.10", "1.12", "1.17", "1.27")}
    newest = wire("GET", query).json
    assert shown["1.10"]["allocation_requests"] == [
        {"allocations": [{"resource_provider": {"uuid": root}, "resources": {"VCPU": 2}}]}
    ]
    assert shown["1.12"]["allocation_requests"] == [
        {"allocations": {root: {"resources": {"VCPU": 2}}}}
    ]
    assert newest["allocation_requests"] == [
        {"allocations": {root: {"resources": {"VCPU": 2}}}, "mappings": {"": [root]}}
    ]
    vcpu = {"VCPU": {"capacity": 8, "used": 0}}
    assert shown["1.12"]["provider_summaries"] == {root: {"resources": vcpu}}
    assert shown["1.17"]["provider_summaries"] == {root: {"resources": vcpu, "traits": []}}
    everything = vcpu | {"MEMORY_MB": {"capacity": 512, "used": 0}}
    assert shown["1.27"]["provider_summaries"][root]["resources"] == everything
    assert newest["provider_summaries"][root]["root_provider_uuid"] == root
