"""`/v1/request-mix`: what is stated is shown and weighed; what is wrong is refused by its place."""

from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.engine.state.ledger_mix import ledger_mix
from moorage.testing.service import OPERATOR, Service

FLAVOR = {"flavor": {"name": "gpu", "resources": {"VCPU": 4}, "required": ["HW_CPU_X86_AVX2"]}}


def put(service: Service, *shapes: Any, dry_run: bool = False) -> Any:
    path = "/request-mix?dry_run=true" if dry_run else "/request-mix"
    return service.call("PUT", path, {"request_mix": {"shapes": shapes}}, caller=OPERATOR)


def shown(service: Service) -> Any:
    return service.call("GET", "/request-mix", caller=OPERATOR).json["request_mix"]


def test_a_mix_is_stated_shown_and_reset(service: Service) -> None:
    assert service.call("POST", "/flavors", FLAVOR, caller=OPERATOR).status_code == 201
    group = {"resources": {"VGPU": 1}, "required": [["HW_CPU_X86_SSE", "HW_CPU_X86_AVX"]]}
    plain = {"resources": {"VCPU": 1}, "forbidden": ["HW_CPU_X86_AVX2"], "groups": [group]}
    made = put(service, {"flavor": "gpu", "weight": 3}, plain | {"weight": 5})
    assert made.status_code == 200, made.text
    assert shown(service) == made.json["request_mix"]
    heavy, light = shown(service)["shapes"]
    assert (heavy["weight"], heavy["resources"], heavy["flavors"]) == (5, {"VCPU": 1}, [])
    assert heavy["forbidden"] == ["HW_CPU_X86_AVX2"]
    alike = [["HW_CPU_X86_AVX", "HW_CPU_X86_SSE"]]
    assert heavy["groups"] == [{"resources": {"VGPU": 1}, "required": alike, "forbidden": []}]
    assert (light["flavors"], light["required"]) == (["gpu"], ["HW_CPU_X86_AVX2"])
    assert shown(service)["source"] == "stated"
    assert put(service, {"resources": {"VCPU": 9}}, dry_run=True).status_code == 200
    assert len(shown(service)["shapes"]) == 2
    for _ in range(2):
        reset = service.call("DELETE", "/request-mix", caller=OPERATOR)
        assert reset.status_code == 204, reset.text
        assert shown(service)["source"] == "ledger"


def test_without_a_stated_mix_that_of_the_ledger_is_shown(service: Service) -> None:
    counted = ledger_mix(service.store.snapshot(), service.store.flavors).shapes
    assert counted
    assert [(one["resources"], one["weight"]) for one in shown(service)["shapes"]] == [
        (dict(shape.resources), count) for shape, count in counted
    ]


def test_ten_thousand_shapes_are_bounded(service: Service) -> None:
    stated: list[Any] = [{"resources": {"VCPU": 1 + n}, "weight": 1 + n} for n in range(10_000)]
    answer = put(service, *stated)
    assert answer.status_code == 200, answer.text
    mix = answer.json["request_mix"]
    assert len(mix["shapes"]) + mix["merged"] == 10_000
    assert len(mix["shapes"]) <= 16
    assert sum(one["weight"] for one in mix["shapes"]) == sum(one["weight"] for one in stated)
    assert refused(put(service, *stated, stated[0]), 400, "invalid_description")["path"]


@pytest.mark.parametrize(
    ("bad", "path", "said"),
    [
        ({"flavor": "nope"}, ".flavor", "no such flavor: nope"),
        ({"resources": {"CUSTOM_NOPE": 1}}, ".resources", "no such resource class: CUSTOM_NOPE"),
        (
            {"resources": {"VCPU": 1}, "required": ["CUSTOM_NOPE"]},
            ".required",
            "no such trait: CUSTOM_NOPE",
        ),
        (
            {"resources": {"VCPU": 1}, "groups": [{"resources": {"VCPU": 1}, "forbidden": ["X"]}]},
            ".forbidden",
            "no such trait: X",
        ),
        ({"resources": {"VCPU": 1}, "weight": 0}, ".weight", ""),
        ({"resources": {"VCPU": 1}, "weight": -3}, ".weight", ""),
        ({"resources": {"VCPU": 0}}, ".resources", ""),
        ({"weight": 3}, "", "a shape needs a flavor, resources or groups"),
        ({"flavor": "gpu", "resources": {"VCPU": 1}}, "", "a shape is a flavor, or amounts"),
    ],
)
def test_what_is_wrong_is_refused(service: Service, bad: Any, path: str, said: str) -> None:
    answer = put(service, {"resources": {"VCPU": 1}}, bad)
    assert answer.status_code == 400, answer.text
    (error,) = answer.json["errors"]
    assert error["path"].startswith(f"request_mix.shapes[1]{path}")
    assert said in error["detail"]
    assert shown(service)["source"] == "ledger"


def test_an_empty_mix_is_refused(service: Service) -> None:
    assert put(service).status_code == 400


def test_tenants_neither_see_nor_state_it(service: Service) -> None:
    body = {"request_mix": {"shapes": [{"resources": {"VCPU": 1}}]}}
    for method, sent in (("GET", None), ("PUT", body), ("DELETE", None)):
        refused(service.call(method, "/request-mix", sent), 403, "forbidden")


def test_a_decision_records_what_it_took(service: Service) -> None:
    """For operators: what it says of the whole fleet is not for tenants."""
    assert put(service, {"resources": {"VCPU": 4}, "weight": 7}).status_code == 200
    member = {"name": "a", "count": 3, "resources": {"VCPU": 4}}
    body = {"ensemble": {"name": "e", "members": [member], "decide": {"hold": "PT4H"}}}
    made = service.call("POST", "/ensembles", body)
    assert made.status_code == 201, made.text
    path = f"/decisions/{made.json['decision']['id']}"
    assert "room" not in service.call("GET", path).json["decision"]["solve"]
    room = service.call("GET", path, caller=OPERATOR).json["decision"]["solve"]["room"]
    assert (room["source"], room["weighed"]) == ("stated", 1)
    (one,) = room["most"]
    assert (one["weight"], one["resources"], one["taken"]) == (7, {"VCPU": 4}, 3)
    assert room["share"] == pytest.approx(3 / one["fits"], abs=1e-6)
