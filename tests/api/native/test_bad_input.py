"""Whatever is sent, the answer is a typed error, and nothing is half-written."""

import json
import re
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from moorage.api.native.routes import ROUTES
from moorage.testing.service import OPERATOR, Service

ROLE = {"name": "db", "count": 1, "resources": {"VCPU": 1}}


def ensemble(**fields: object) -> dict[str, Any]:
    return {"ensemble": {"name": "e", "members": [ROLE], **fields}}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, None),
        ({"ensemble": {"name": "e"}, "extra": 1}, None),
        (ensemble(colour="red"), "ensemble"),
        (ensemble(name=7), "ensemble.name"),
        (ensemble(name=""), "ensemble.name"),
        (ensemble(members=[{**ROLE, "count": 10**9}]), "ensemble.members[0].count"),
        (ensemble(members=[{**ROLE, "count": -1}]), "ensemble.members[0].count"),
        (ensemble(members=[{**ROLE, "count": 5000}, {**ROLE, "name": "b"}]), "members"),
        (ensemble(members=[ROLE, ROLE]), "members"),
        (ensemble(members=[{"name": "db"}]), "members[0].flavor"),
        (ensemble(members=[{**ROLE, "flavor": "m1.small"}]), "members[0].resources"),
        (ensemble(members=[{"name": "db", "flavor": "nope"}]), "members[0].flavor"),
        (ensemble(members=[{**ROLE, "resources": {"NOPE": 1}}]), "members[0].resources"),
        (ensemble(members=[{**ROLE, "required": ["NOPE"]}]), "members[0].required"),
        (ensemble(members=[{**ROLE, "name": "a b"}]), "members[0].name"),
        (ensemble(policies=["no-affinity"]), "policies[0]"),
        (ensemble(policies=[{"type": "surviv", "members": ["db"]}]), "policies[0].type"),
        (ensemble(policies=[{"type": "survive", "members": ["db"]}]), "policies[0].keep"),
        (
            ensemble(policies=[{"type": "survive", "members": ["web"], "keep": 1}]),
            "policies[0].members",
        ),
        (
            ensemble(policies=[{"type": "survive", "members": ["db"], "keep": 1, "level": "row"}]),
            "policies[0].level",
        ),
        (
            ensemble(policies=[{"type": "survive", "members": ["db"], "keep": 1, "tpyo": 1}]),
            "policies[0].tpyo",
        ),
        (ensemble(decide={"hold": "soon"}), "hold"),
        (ensemble(decide={"hold": "PT0S"}), "hold"),
        (ensemble(decide={"max_additional": ["web"]}), "max_additional"),
        (ensemble(id="no-uuid"), "ensemble.id"),
        (ensemble(metadata={"a": 1}), "ensemble.metadata[...]"),
    ],
)
def test_a_wrong_ensemble_is_refused_by_its_place(
    service: Service, body: object, path: str | None
) -> None:
    before = service.store.snapshot().revision
    answer = service.call("POST", "/ensembles", body)
    error = answer.json["errors"][0]
    assert answer.status_code == 400, answer.text
    assert error.get("path") == path, error
    assert error["request_id"] == "req-in-process"
    assert service.store.snapshot().revision == before
    assert service.call("GET", "/ensembles").json["ensembles"] == []


def test_contradictory_policies_are_named(service: Service) -> None:
    policies = [
        {"name": "near", "type": "affinity", "members": ["db"], "level": "rack"},
        {"name": "far", "type": "spread", "members": ["db"], "level": "rack", "min_domains": 2},
    ]
    answer = service.call(
        "POST", "/ensembles", ensemble(members=[{**ROLE, "count": 2}], policies=policies)
    )
    error = answer.json["errors"][0]
    assert (answer.status_code, error["code"]) == (400, "ensemble.contradiction")
    assert sorted(error["policies"]) == ["far", "near"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b'{"ensemble": "\xc3\x28"}',
        b"[" * 100_000,
        b'{"ensemble":' * 50_000,
        b'{"ensemble": {"name": "e", "metadata": ' + b'{"a":' * 5_000,
        b'{"ensemble": {"name": "e", "policies": ['
        + b'{"a":' * 3_000
        + b"1"
        + b"}" * 3_000
        + b"]}}",
        b"NaN",
        b'{"ensemble": {"name": "\\ud800"}}',
        b'{"ensemble": {"name": "e", "members": [{"name": "a", "count": 1e400}]}}',
    ],
    ids=range(11),
)
def test_what_is_no_json_is_a_client_error(service: Service, raw: bytes) -> None:
    answer = service.call("POST", "/ensembles", raw=raw)
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["code"] == "ensemble.invalid_description"


def test_other_media_types_are_refused(service: Service) -> None:
    answer = service.call(
        "POST", "/ensembles", raw=b"name: e", headers={"Content-Type": "application/yaml"}
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("PUT", "/ensembles", 405, "method_not_allowed"),
        ("GET", "/ensembles?limit=0", 400, "invalid_description"),
        ("GET", "/ensembles?limit=many", 400, "invalid_description"),
        ("GET", "/ensembles?colour=red", 400, "invalid_description"),
        ("GET", "/ensembles?marker=nothing", 404, "not_found"),
        ("DELETE", "/ensembles/nothing", 428, "precondition_required"),
        ("GET", "/decisions/nothing", 404, "not_found"),
    ],
)
def test_wrong_addresses(service: Service, method: str, path: str, status: int, code: str) -> None:
    bare, _, query = path.partition("?")
    asked = dict([query.split("=")]) if query else {}
    answer = service.call(method, bare, query=asked)
    assert answer.status_code == status, answer.text
    assert answer.json["errors"][0]["code"] == f"ensemble.{code}"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("ensemble 1.0", 200),
        ("ensemble latest", 200),
        ("compute 2.1, ensemble 1.0", 200),
        ("compute 2.1", 200),
        ("ensemble 9.9", 406),
        ("ensemble one", 400),
    ],
)
def test_versions_are_negotiated(service: Service, asked: str, status: int) -> None:
    answer = service.call("GET", "/ensembles", headers={"OpenStack-API-Version": asked})
    assert answer.status_code == status
    assert answer.headers["openstack-api-version"] == "ensemble 1.0"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)


def test_no_body_whatever_makes_an_internal_error(service: Service) -> None:
    writes = [one for one in ROUTES if one.request is not None]
    wrap = {one: next(iter(one.request.__struct_fields__)) for one in writes}  # type: ignore[union-attr]  # filtered

    @settings(max_examples=60, deadline=None)
    @given(st.sampled_from(writes), json_values, st.sampled_from(["bare", "wrapped"]))
    def check(route: Any, value: object, form: str) -> None:
        body = {wrap[route]: value} if form == "wrapped" else value
        path = route.path.replace("{id}", "x").replace("{name}", "x")
        answer = service.call(
            route.method,
            path,
            raw=json.dumps(body).encode(),
            caller=OPERATOR,
            headers={"If-Match": "*"},
        )
        # An empty list of flavors and an empty part of a fleet mean something: nothing. What
        # cannot be read of a list of flavors is named in its answer.
        empty = value in ([], {})
        named = answer.status_code == 200 and answer.json.get("refused")
        assert answer.status_code in {400, 404} or empty or named, (route.path, body, answer.text)
        assert answer.status_code < 500
        assert "Expected `" not in answer.text, "the decoder's own words"

    check()


def test_a_body_that_was_cut_off_is_no_json_whatever_its_beginning_says(service: Service) -> None:
    answer = service.call("POST", "/ensembles", raw=b'{"ensemble": {"name": "e", "colour": "re')
    assert answer.status_code == 400
    (error,) = answer.json["errors"]
    assert error["detail"].startswith("the body is not JSON: ")


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 4_000, "1e400", "-1e400", str(10**30)])
@pytest.mark.parametrize(
    ("field", "path"),
    [
        ('"members": [{"name": "db", "count": %s, "resources": {"VCPU": 1}}]', "members[0].count"),
        ('"members": [{"name": "db", "resources": {"VCPU": %s}}]', "members[0].resources[...]"),
        ('"decide": {"seed": %s}', "decide.seed"),
    ],
)
def test_a_number_beyond_all_bounds_is_refused_by_its_place(
    service: Service, field: str, path: str, number: str
) -> None:
    body = f'{{"ensemble": {{"name": "e", {field % number}}}}}'
    answer = service.call("POST", "/ensembles", raw=body.encode())
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["path"] == f"ensemble.{path}"


@pytest.mark.parametrize("number", ["9" * 4_000, "-" + "9" * 4_000, str(10**30)])
@pytest.mark.parametrize("field", ["min", "max", "default"])
def test_a_number_of_a_template_is_one_that_can_be_stored(
    service: Service, field: str, number: str
) -> None:
    declared = f'{{"n": {{"type": "number", "{field}": {number}}}}}'
    source = f'{{"parameters": {declared}, "members": [{{"name": "db", "count": "{{n}}"}}]}}'
    body = f'{{"template": {{"name": "t", "source": {source}}}}}'
    answer = service.call("POST", "/templates", raw=body.encode())
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["path"] == f"parameters.n.{field}"


def decided(**how: object) -> dict[str, Any]:
    return ensemble(decide=how)


def role(**fields: object) -> dict[str, Any]:
    return ensemble(members=[{**ROLE, **fields}])


KINDS = "baremetal, ensemble, port, server, slice or volume"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ([], "the body must be an object"),
        ({}, "the body needs ensemble"),
        ({"ensemble": {"metadata": {}}}, "ensemble needs name"),
        (ensemble(name=7), "ensemble.name must be a string"),
        (ensemble(name=""), "ensemble.name must have at least 1 character"),
        (ensemble(id="x"), "ensemble.id must be a UUID in lower case"),
        (ensemble(members={}), "ensemble.members must be a list"),
        (ensemble(metadata={"": "a"}), "a key of ensemble.metadata must have at least 1 character"),
        (ensemble(metadata={"a": 1}), "ensemble.metadata[...] must be a string"),
        (role(count=10**9), "ensemble.members[0].count must be at most 5000"),
        (role(count=-1), "ensemble.members[0].count must be at least 0"),
        (role(count=1.5), "ensemble.members[0].count must be a whole number"),
        (role(resources={}), "ensemble.members[0].resources must have at least 1 key"),
        (role(kind="sever"), f"ensemble.members[0].kind must be {KINDS}, not 'sever'"),
        (role(kind=1), f"ensemble.members[0].kind must be {KINDS}"),
        (
            role(alternatives=[{}, {"kind": "` - at `$.x`"}]),
            f"ensemble.members[0].alternatives[1].kind must be {KINDS}, not '` - at `$.x`'",
        ),
        (role(member_of=[1]), "ensemble.members[0].member_of[0] must be a string or a list"),
        (
            role(server={"networks": "all"}),
            "ensemble.members[0].server.networks must be a list, auto or none, not 'all'",
        ),
        (decided(hold=5), "ensemble.decide.hold must be a string or null"),
        (decided(preemptible="no"), "ensemble.decide.preemptible must be true or false"),
        (ensemble(colour=1), "unknown field colour"),
        (role(cuont=1), "unknown field cuont; did you mean count?"),
    ],
)
def test_what_is_wrong_is_told_in_plain_words(service: Service, body: Any, detail: str) -> None:
    [error] = service.call("POST", "/ensembles", body).json["errors"]
    assert error["detail"] == detail


def test_a_name_with_a_version_is_told_its_pattern(service: Service) -> None:
    body = {"template": {"name": "web@1", "source": "x"}}
    [error] = service.call("POST", "/templates", body).json["errors"]
    assert error["detail"] == "template.name must match ^[^@]*$"


def test_a_share_is_told_its_open_bounds(service: Service) -> None:
    body = {"subscription": {"events": ["x"], "url": "http://x", "above_share": 1}}
    [error] = service.call("POST", "/subscriptions", body, caller=OPERATOR).json["errors"]
    assert error["detail"] == "subscription.above_share must be less than 1.0"


def _first(body: Any) -> tuple[str, Any]:
    top = inspect.type_info(body)
    assert isinstance(top, inspect.StructType)
    return top.fields[0].encode_name, top.fields[0].type


WRAPPED: Final = {
    (route.method, route.path): (wrapper, field.encode_name)
    for route in ROUTES
    if route.request is not None
    for wrapper, inside in [_first(route.request)]
    if isinstance(inside, inspect.StructType)
    for field in inside.fields[:1]
}
"""Route -> the wrapper of its body, and a field inside."""


@pytest.mark.parametrize(("route", "wrapper", "field"), [(k, *v) for k, v in WRAPPED.items()])
def test_a_body_without_its_wrapper_is_told_so(
    service: Service, route: tuple[str, str], wrapper: str, field: str
) -> None:
    method, path = route
    where = re.sub(r"\{[^}]*\}", "11111111-2222-4333-8444-555555555555", path)
    answer = service.call(method, where, {field: "x"}, caller=OPERATOR)
    assert answer.status_code == 400, answer.text
    [error] = answer.json["errors"]
    body = f'{{"{wrapper}": {{"{field}": ...}}}}'
    assert error["detail"] == f"{field} belongs inside {wrapper}: the body must be {body}"


def test_every_object_of_the_api_has_a_wrapper() -> None:
    assert len(WRAPPED) > 30
    assert WRAPPED["POST", "/ensembles"] == ("ensemble", "name")


def test_a_misspelt_field_beside_the_wrapper_is_told_the_likely_one(service: Service) -> None:
    [error] = service.call("POST", "/ensembles", {"ensembel": {}}).json["errors"]
    assert error["detail"] == "unknown field ensembel; did you mean ensemble?"
    [error] = service.call(
        "PUT", "/ensembles/11111111-2222-4333-8444-555555555555/policies/p", {"type": "fence"}
    ).json["errors"]
    assert error["detail"].startswith("type belongs inside policy: ")
