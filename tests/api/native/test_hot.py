"""`POST /v1/hot`: Heat templates against a real ledger."""

from pathlib import Path
from typing import Any

import pytest

from moorage.domain.period import MINUTE
from moorage.heat.compile import Source, compile_template
from moorage.testing.service import OTHER, Service

TINY = {"web": "m1.tiny", "app": "m1.small", "db": "m1.small"}
APP = "resources.app.properties.resource_def.properties"
SAID = "resources.db.metadata.moorage.policies[0]"
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def shop_hot() -> dict[str, Any]:
    return {
        "template": (EXAMPLES / "shop-hot.yaml").read_text(encoding="utf-8"),
        "environment": (EXAMPLES / "env.yaml").read_text(encoding="utf-8"),
        "name": "shop",
    }


def place(service: Service, hot: dict[str, Any], **others: Any) -> Any:
    return service.call("POST", "/hot", {"hot": hot}, **others)


def refused(answer: Any) -> dict[str, Any]:
    error: dict[str, Any] = answer.json["errors"][0]
    assert answer.status_code == error["status"]
    return error


def test_a_template_is_placed_like_its_description(
    service: Service, shop_hot: dict[str, Any]
) -> None:
    answer = place(service, shop_hot)
    assert answer.status_code == 201, answer.text
    body = answer.json
    assert body["decision"]["status"] == "held"
    assert {one["name"]: one["satisfied"] for one in body["decision"]["policies"]} == {
        "web-apart": True,
        "web-racks": True,
        "pair": True,
        "db-ha": True,
    }
    assert body["keys"]["db[2]"] == "db/2"
    assert [one["path"] for one in body["not_placed"]] == ["traffic"]
    stored = service.call("GET", f"/ensembles/{body['ensemble']['id']}").json["ensemble"]
    assert [(one["name"], one["count"]) for one in stored["members"]] == [
        ("web", 3),
        ("app", 3),
        ("db", 3),
    ]


def test_what_comes_back_parses_to_the_same_members(
    service: Service, shop_hot: dict[str, Any]
) -> None:
    body = place(service, shop_hot).json
    again = Source(body["template"], shop_hot["environment"])
    assert {str(k): v for k, v in compile_template(again).keys.items()} == body["keys"]
    assert body["decision"]["id"] in body["template"]
    places = {one["member"]: one["domains"] for one in body["decision"]["assignments"]}
    for label in places["db[0]"].values():
        assert label in body["template"]
    for host in (f"h{n}" for n in range(1, 10)):
        assert f" {host}\n" not in body["template"], "a template goes to tenants: labels only"


def test_a_template_uses_the_decision_of_its_ensemble(
    service: Service, held: dict[str, Any], shop_hot: dict[str, Any]
) -> None:
    ensemble_id = held["ensemble"]["id"]
    answer = place(service, {**shop_hot, "ensemble_id": ensemble_id})
    assert answer.status_code == 200, answer.text
    assert answer.json["decision"]["id"] == held["decision"]["id"]
    assert answer.json["decision"]["assignments"] == held["decision"]["assignments"]
    decisions = service.call("GET", "/decisions").json["decisions"]
    assert len(decisions) == 1, "nothing is decided anew"
    placed = {**shop_hot, "template": answer.json["template"], "ensemble_id": ensemble_id}
    assert place(service, placed).json["template"] == answer.json["template"]


def test_a_template_that_differs_gets_the_fields(
    service: Service, held: dict[str, Any], shop_hot: dict[str, Any]
) -> None:
    other = {
        **shop_hot,
        "ensemble_id": held["ensemble"]["id"],
        "template": shop_hot["template"]
        .replace("db: m1.xlarge", "db: m1.2xlarge")
        .replace("keep: 2", "keep: 1")
        .replace("  app:\n", "  api:\n")
        .replace("zip: [app, db]", "zip: [api, db]"),
        "parameters": {"web_count": 5},
    }
    error = refused(place(service, other))
    assert (error["status"], error["code"]) == (409, "ensemble.description_mismatch")
    found = {one["path"]: (one.get("described"), one.get("requested")) for one in error["diff"]}
    assert found["web.count"] == (3, 5)
    assert found["db.VCPU"] == (8, 16)
    assert {"app", "api", "policies.db-ha", "policies.pair"} <= set(found)


def test_an_ensemble_without_places_is_of_no_use(
    service: Service, held: dict[str, Any], shop_hot: dict[str, Any]
) -> None:
    released = service.call(
        "DELETE", f"/decisions/{held['decision']['id']}", headers={"If-Match": "*"}
    )
    assert released.status_code == 204, released.text
    error = refused(place(service, {**shop_hot, "ensemble_id": held["ensemble"]["id"]}))
    assert error["code"] == "ensemble.hold_expired"


def test_places_that_are_no_more_are_of_no_use(
    service: Service, held: dict[str, Any], shop_hot: dict[str, Any]
) -> None:
    asked = {**shop_hot, "ensemble_id": held["ensemble"]["id"]}
    decision = f"/decisions/{held['decision']['id']}"
    dropped = service.call(
        "DELETE", f"/ensembles/{held['ensemble']['id']}/members/web[2]", headers={"If-Match": "*"}
    )
    assert dropped.status_code == 200
    error = refused(place(service, asked))
    assert error["code"] == "ensemble.description_mismatch", "it has one web less"
    parameters = {**shop_hot.get("parameters", {}), "web_count": 2}
    fewer = {**asked, "parameters": parameters}
    assert place(service, fewer).status_code == 200
    claim = {"claim": {"member": "db[0]", "server": {"flavorRef": "m1.xlarge"}}}
    assert service.call("POST", f"{decision}/claims", claim).status_code == 201
    assert service.call("POST", f"{decision}/confirm").status_code == 200
    error = refused(place(service, fewer))
    assert error["code"] == "ensemble.hold_expired", "confirming freed what was not claimed"
    assert "app[0]" in error["detail"]


def test_a_lapse_that_nobody_noted_yet_counts(
    service: Service, held: dict[str, Any], shop_hot: dict[str, Any]
) -> None:
    service.clock.pass_by(11 * MINUTE)
    error = refused(place(service, {**shop_hot, "ensemble_id": held["ensemble"]["id"]}))
    assert error["code"] == "ensemble.hold_expired"
    assert "expired" in error["detail"]


def test_another_project_does_not_find_it(
    service: Service, held: dict[str, Any], shop_hot: dict[str, Any]
) -> None:
    hot = {**shop_hot, "ensemble_id": held["ensemble"]["id"]}
    assert place(service, hot, caller=OTHER).status_code == 404


def test_a_dry_run_writes_nothing(service: Service, shop_hot: dict[str, Any]) -> None:
    answer = place(service, shop_hot, query={"dry_run": "true"})
    assert answer.status_code == 200
    assert answer.json["template"] == shop_hot["template"]
    assert len(answer.json["decision"]["assignments"]) == 9
    assert service.call("GET", "/ensembles").json["ensembles"] == []


def test_what_does_not_fit_is_explained(service: Service, shop_hot: dict[str, Any]) -> None:
    error = refused(place(service, {**shop_hot, "parameters": {"web_count": 20}}))
    assert error["code"] == "ensemble.infeasible"


@pytest.mark.parametrize(
    ("change", "path", "line"),
    [
        ({"template": "a: b"}, None, 1),
        ({"parameters": {"web_count": 21}}, "parameters.web_count.constraints[0].range", 17),
        ({"parameters": {"flavors": TINY}}, "resources.web", 45),
        ({"parameters": {"flavors": {"web": "m1.small"}}}, f"{APP}.flavor.get_param", 67),
        ({"template": "type: survive, level: rack", "by": "type: outlast"}, f"{SAID}.type", 0),
        ({"template": "survive, level: rack", "by": "survive, level: row"}, f"{SAID}.level", 0),
        ({"template": "lose: 1", "by": "lose: one"}, f"{SAID}.lose", 0),
        ({"template": "lose: 1", "by": "loose: 1"}, f"{SAID}.loose", 0),
        ({"parameters": {"nmae": "x"}}, "parameters.nmae", 1),
        ({"environment": "- a"}, "environment", 1),
    ],
)
def test_a_bad_template_names_its_place(
    service: Service,
    shop_hot: dict[str, Any],
    change: dict[str, Any],
    path: str | None,
    line: int,
) -> None:
    if "by" in change:
        before, after = change["template"], change["by"]
        text = shop_hot["template"]
        assert before in text
        line = text[: text.index(before)].count("\n") + 1
        change = {"template": text.replace(before, after, 1)}
    error = refused(place(service, {**shop_hot, **change}))
    assert error["status"] == 400
    assert (error.get("path"), error["line"]) == (path, line), error


def test_parameters_may_not_nest_without_end(service: Service, shop_hot: dict[str, Any]) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    error = refused(place(service, {**shop_hot, "parameters": {"flavors": deep}}))
    assert error["code"] == "ensemble.invalid_description"


SCALED = """\
heat_template_version: wallaby
resources:
  web:
    type: OS::Heat::AutoScalingGroup
    metadata: {{moorage: {{headroom: {headroom}}}}}
    properties:
      min_size: 2
      max_size: 4000
      resource: {{type: OS::Nova::Server, properties: {{flavor: m1.small}}}}
"""


def test_a_scaling_group_tells_how_many_more_fit(service: Service) -> None:
    body = place(service, {"template": SCALED.format(headroom=0)}).json
    assert body["scaling"] == {"web": {"path": "web", "least": 2, "most": 4000, "desired": 2}}
    assert body["decision"]["max_additional"]["web"]["count"] > 0


def test_headroom_is_kept_or_nothing_is(service: Service) -> None:
    body = place(service, {"template": SCALED.format(headroom=1)}).json
    assert body["ensemble"]["headroom"] == {"web": 1}
    before = service.call("GET", "/ensembles").json["ensembles"]
    answer = place(service, {"template": SCALED.format(headroom=3000), "name": "large"})
    assert answer.status_code >= 400
    assert service.call("GET", "/ensembles").json["ensembles"] == before


def test_a_template_is_bound_as_it_is_asked(service: Service) -> None:
    template = SCALED.format(headroom=0)
    hints = place(service, {"template": template}).json
    assert f"moorage: {hints['ensemble']['id']}/web\n" in hints["template"]
    flavors = place(service, {"template": template, "bind": "flavors", "name": "a"}).json
    assert f"flavor: moorage-a-web-{flavors['decision']['id'][:8]}\n" in flavors["template"]
    none = place(service, {"template": template, "bind": "none", "name": "b"}).json
    assert "scheduler_hints" not in none["template"]
    kept = place(service, {"template": template, "emit": False, "name": "c"}).json
    assert kept["template"] == template
    wrong = place(service, {"template": template, "bind": "wires"})
    assert wrong.status_code == 400


def test_a_template_that_cannot_be_written_can_be_placed(service: Service) -> None:
    template = (
        "heat_template_version: wallaby\nparameters: {m: {type: json, default: {}}}\nresources:\n"
        "  s: {type: OS::Nova::Server, metadata: {get_param: m}, properties: {flavor: m1.small}}\n"
    )
    assert "computed" in refused(place(service, {"template": template}))["detail"]
    assert place(service, {"template": template, "emit": False}).status_code == 201


def test_environments_are_among_the_files(service: Service) -> None:
    template = (
        "heat_template_version: wallaby\nparameters: {size: {type: string}}\nresources:\n"
        "  s: {type: OS::Nova::Server, properties: {flavor: {get_param: size}}}\n"
    )
    files = {"a.yaml": "parameters: {size: nope}", "b.yaml": "parameters: {size: m1.small}"}
    body = {"template": template, "files": files, "environment_files": ["a.yaml", "b.yaml"]}
    assert place(service, body).status_code == 201
    missing = {**body, "environment_files": ["c.yaml"]}
    assert "c.yaml" in refused(place(service, missing))["detail"]
