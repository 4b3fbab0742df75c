"""`/v1/templates`: kept in versions, made into ensembles."""

from pathlib import Path
from typing import Any

import pytest

from moorage.testing.service import OPERATOR, OTHER, Service

EXAMPLES = Path(__file__).parents[3] / "examples"
WEB = {
    "parameters": {"count": {"type": "number", "default": 2, "min": 1, "max": 9}, "flavor": {}},
    "name": "web-of-{count}",
    "members": [{"name": "web", "count": "{count}", "flavor": "{flavor}"}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["web"]}],
}


def keep(service: Service, name: str = "web", source: Any = WEB, **others: Any) -> Any:
    body = {"template": {"name": name, "source": source, **others.pop("fields", {})}}
    return service.call("POST", "/templates", body, **others)


def instance(service: Service, of: str, parameters: dict[str, Any], **others: Any) -> Any:
    body = {"instance": {"parameters": parameters, **others.pop("fields", {})}}
    return service.call("POST", f"/templates/{of}/instances", body, **others)


def code(answer: Any) -> tuple[int, str]:
    error = answer.json["errors"][0]
    return answer.status_code, error["code"]


def test_a_template_makes_an_ensemble_that_remembers_it(service: Service) -> None:
    kept = keep(service)
    assert kept.status_code == 201, kept.text
    template = kept.json["template"]
    assert (template["version"], template["parameters"]["count"]["default"]) == (1, 2)
    made = instance(service, "web", {"flavor": "m1.small"}, fields={"decide": {}})
    assert made.status_code == 201, made.text
    ensemble = made.json["ensemble"]
    assert ensemble["name"] == "web-of-2"
    assert ensemble["template"] == {"id": template["id"], "version": 1}
    assert made.json["decision"]["status"] == "held"
    again = service.call("GET", f"/ensembles/{ensemble['id']}").json["ensemble"]
    assert again["template"] == ensemble["template"]


def test_versions_stay_and_are_named(service: Service) -> None:
    template = keep(service).json["template"]
    defaults = {"count": {"type": "number", "default": 2}, "flavor": {"default": "m1.small"}}
    larger = {**WEB, "name": "second", "parameters": defaults}
    second = service.call("POST", "/templates/web/versions", {"template": {"source": larger}})
    assert second.status_code == 201, second.text
    assert second.json["template"]["version"] == 2
    assert instance(service, "web", {}).json["ensemble"]["name"] == "second"
    first = instance(service, "web@1", {"flavor": "m1.small", "count": 3}).json["ensemble"]
    assert (first["name"], first["template"]["version"]) == ("web-of-3", 1)
    shown = service.call("GET", f"/templates/{template['id']}", query={"version": 1})
    assert shown.json["template"]["source"]["name"] == "web-of-{count}"
    assert code(service.call("GET", "/templates/web@9")) == (404, "ensemble.not_found")
    assert service.call("GET", "/templates/web@x").status_code == 400
    listed = service.call("GET", "/templates").json["templates"]
    assert [(one["name"], one["version"]) for one in listed] == [("web", 2)]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"flavor": "m1.small", "count": 10}, {"flavor": "m1.small", "size": 1}, {"flavor": 1}],
    ids=["missing", "out of bounds", "unknown", "of another type"],
)
def test_parameters_are_judged_before_anything_is_made(
    service: Service, parameters: dict[str, Any]
) -> None:
    keep(service)
    assert code(instance(service, "web", parameters)) == (400, "ensemble.invalid_description")
    assert service.call("GET", "/ensembles").json["ensembles"] == []


@pytest.mark.parametrize(
    "source",
    [
        {**WEB, "roles": []},
        {**WEB, "name": "{unknown}"},
        {"parameters": [], "members": []},
        {"members": [{"name": "web"}]},
    ],
    ids=["unknown field", "unknown placeholder", "ill parameters", "ill description"],
)
def test_a_template_that_can_never_be_used_is_not_kept(service: Service, source: Any) -> None:
    assert code(keep(service, source=source)) == (400, "ensemble.invalid_description")
    assert service.call("GET", "/templates").json["templates"] == []


def test_names_are_unique_in_a_project_and_retries_are_safe(service: Service) -> None:
    own = {"id": "11111111-2222-4333-8444-555555555555"}
    first = keep(service, fields=own)
    assert keep(service, fields=own).json == first.json
    assert keep(service, name="web2", fields=own).status_code == 409
    assert keep(service).status_code == 409
    assert keep(service, caller=OTHER).status_code == 201


def test_a_dry_run_keeps_nothing(service: Service) -> None:
    answer = keep(service, query={"dry_run": "true"})
    assert (answer.status_code, answer.json["dry_run"]) == (200, True)
    assert service.call("GET", "/templates").json["templates"] == []


def test_templates_of_another_project_are_seen_only_where_shared(service: Service) -> None:
    template = keep(service).json["template"]["id"]
    for path in (template, "web", f"{template}@1"):
        assert service.call("GET", f"/templates/{path}", caller=OTHER).status_code == 404
        assert instance(service, path, {}, caller=OTHER).status_code == 404
    assert keep(service, "all", fields={"shared": True}).status_code == 403
    assert keep(service, "all", fields={"shared": True}, caller=OPERATOR).status_code == 201
    made = instance(service, "all", {"flavor": "m1.small"}, caller=OTHER)
    assert made.json["ensemble"]["project_id"] == OTHER.project_id
    assert service.call("DELETE", "/templates/all", caller=OTHER).status_code == 404
    listed = service.call("GET", "/templates", caller=OTHER).json["templates"]
    assert [one["name"] for one in listed] == ["all"]


def test_a_deleted_template_leaves_its_ensembles(service: Service) -> None:
    template = keep(service).json["template"]["id"]
    ensemble = instance(service, "web", {"flavor": "m1.small"}).json["ensemble"]
    assert service.call("DELETE", "/templates/web").status_code == 204
    assert service.call("GET", "/templates/web").status_code == 404
    stays = service.call("GET", f"/ensembles/{ensemble['id']}").json["ensemble"]
    assert stays["template"] == {"id": template, "version": 1}


def test_a_heat_template_is_a_template_too(service: Service) -> None:
    source = {
        "template": (EXAMPLES / "shop-hot.yaml").read_text(encoding="utf-8"),
        "environment": (EXAMPLES / "env.yaml").read_text(encoding="utf-8"),
    }
    kept = keep(service, "shop", source, fields={"format": "hot"})
    assert kept.status_code == 201, kept.text
    made = instance(service, "shop", {}, fields={"decide": {}, "name": "spring"})
    assert made.status_code == 201, made.text
    assert made.json["ensemble"]["name"] == "spring"
    assert len(made.json["decision"]["assignments"]) == 9
    assert code(instance(service, "shop", {"unknown": 1})) == (400, "ensemble.invalid_description")
    ill = ({"template": "resources: ["}, {"template": 1}, {**source, "files": []}, {"x": ""})
    for broken in ill:
        assert keep(service, "bad", broken, fields={"format": "hot"}).status_code == 400


def test_whoever_asks_for_what_a_template_makes_says_it_in_one_form(service: Service) -> None:
    assert keep(service).status_code == 201
    chosen = {"template": {"name": "web@1", "parameters": {"flavor": "m1.small", "count": 3}}}
    when = {"start": "2026-12-07T08:00:00Z", "duration": "PT4H"}
    lease = service.call("POST", "/leases", {"lease": {"name": "l", **chosen, **when}})
    assert (lease.status_code, len(lease.json["decision"]["assignments"])) == (201, 3)
    often = {"start": "2026-12-08T08:00", "every": "daily", "times": 2}
    made = service.call("POST", "/series", {"series": {"name": "s", **chosen, **when, **often}})
    assert made.status_code == 201, made.text
    offers = service.call("POST", "/offers", {"offer_request": {**chosen, "duration": "PT4H"}})
    assert [one["name"] for one in offers.json["offers"]] == ["web"]
    assert offers.json["offers"][0]["places"] == 3
    fit = service.call("POST", "/capacity/fit", {"fit": chosen})
    assert fit.status_code == 200, fit.text
    for old in ("web", {"name": "web", "colour": "red"}):
        asked = {"offer_request": {"template": old, "duration": "PT4H"}}
        assert service.call("POST", "/offers", asked).status_code == 400
        fit = service.call("POST", "/capacity/fit", {"fit": {"template": old}})
        assert fit.status_code == 400, fit.text
