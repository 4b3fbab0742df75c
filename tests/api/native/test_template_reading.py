"""How far a Heat template is read: no farther than what is asked for needs, and within its time."""

from itertools import count
from typing import Any

import pytest

from moorage.domain import deadline
from moorage.testing.service import Service

COMPUTED = """\
heat_template_version: 2018-08-31
parameters: {kept: {type: json, default: {role: web}}}
resources:
  web:
    type: OS::Nova::Server
    properties: {flavor: m1.small}
    metadata: {get_param: kept}
"""
"""Its metadata is computed by Heat, so that no decision can be written into it."""
STORED = {"template": {"name": "one", "format": "hot", "source": {"template": COMPUTED}}}
PLACED = {"hot": {"name": "one", "template": COMPUTED}}
INSTANCE: dict[str, Any] = {"instance": {"parameters": {}}}


def test_only_a_text_that_is_to_carry_a_decision_has_to_be_able_to(service: Service) -> None:
    assert service.call("POST", "/templates", STORED).status_code == 201
    made = service.call("POST", "/templates/one/instances", INSTANCE)
    assert [one["name"] for one in made.json["ensemble"]["members"]] == ["web"]
    refused = service.call("POST", "/hot", PLACED)
    assert (refused.status_code, refused.json["errors"][0]["path"]) == (
        400,
        "resources.web",
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [("/templates", STORED), ("/templates/two/instances", INSTANCE), ("/hot", PLACED)],
)
def test_reading_ends_with_the_time_of_its_request(
    service: Service, path: str, body: dict[str, Any]
) -> None:
    stored = {"template": {**STORED["template"], "name": "two"}}
    assert service.call("POST", "/templates", stored).status_code == 201
    ticks = count()
    with deadline.within(lambda: float(next(ticks)), 2.0):
        answer = service.call("POST", path, body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "time ran out" in answer.json["errors"][0]["detail"]
