"""The client on the application in this process: what it returns, and what it raises."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from moorage.client import errors
from moorage.client.discovery import Access
from moorage.client.lookup import pages
from moorage.client.moorage import Moorage, connect
from moorage.client.transport import HttpTransport, Transport
from moorage.http.wsgi import Application
from moorage.testing import in_process

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def application() -> Iterator[Application]:
    with in_process.app(fleet=(ROOT / "fleets/three-racks.yaml").read_text("utf-8")) as made:
        yield made


@pytest.fixture
def operator(application: Application) -> Iterator[Moorage]:
    with in_process.client(application) as found:
        yield found
        for one in found.ensembles.all(all_projects=True).value:
            found.ensembles.delete(one.id, found.ensembles.show(one.id).value.generation)


def shop(**more: object) -> dict[str, Any]:
    described: dict[str, Any] = yaml.safe_load((ROOT / "examples/shop.yaml").read_text("utf-8"))
    return described | {"decide": {"hold": "PT10M"}} | more


def test_an_answer_is_decoded_and_kept_as_it_came(operator: Moorage) -> None:
    answer = operator.ensembles.create(shop())
    assert answer.value.decision
    assert answer.value.ensemble.id == answer.body["ensemble"]["id"]
    assert len(answer.value.decision.assignments) == 9
    assert answer.request_id.startswith("req-")
    shown = operator.decisions.show(str(answer.value.decision.id)).value
    assert shown.assignments == answer.value.decision.assignments


def test_the_same_request_with_the_same_id_is_the_same_ensemble(operator: Moorage) -> None:
    body = shop(id=str(uuid.uuid4()))
    first = operator.ensembles.create(body).value
    again = operator.ensembles.create(body).value
    assert (again.ensemble, again.decision) == (first.ensemble, first.decision)
    with pytest.raises(errors.Conflict):
        operator.ensembles.create(body | {"name": "other"})


def test_refusals_are_typed(operator: Moorage, application: Application) -> None:
    operator.ensembles.create(shop())
    with pytest.raises(errors.Infeasible) as infeasible:
        operator.ensembles.create(shop(name="second"))
    assert infeasible.value.explanation["verdict"] == "infeasible"
    with pytest.raises(errors.Invalid, match="flavour"):
        operator.ensembles.create({"name": "x", "members": [{"name": "a", "flavour": "b"}]})
    with pytest.raises(errors.NotFound):
        operator.ensembles.show(str(uuid.uuid4()))
    with (
        in_process.client(application, in_process.tenant("p")) as tenant,
        pytest.raises(errors.Forbidden),
    ):
        tenant.fleet.show()


def test_a_stale_generation_is_a_conflict(operator: Moorage) -> None:
    made = operator.ensembles.create(shop()).value.ensemble
    with pytest.raises(errors.Conflict) as stale:
        operator.ensembles.delete(made.id, made.generation + 7)
    assert stale.value.status == 412
    assert operator.ensembles.show(made.id).value.id == made.id


def test_placement_shows_providers_and_no_holds(operator: Moorage) -> None:
    made = operator.ensembles.create(shop()).value.ensemble
    assert {one.name for one in operator.placement.providers()} == {f"h{i}" for i in range(1, 10)}
    member = operator.ensembles.members(made.id).body["members"][0]
    assert operator.placement.allocations(member["uuid"])["allocations"] == {}


def answering(response: httpx.Response) -> Transport:
    return HttpTransport(
        Access("http://x", "t", ("a", "b")),
        through=httpx.MockTransport(lambda request: response),
    )


def test_pages_are_read_to_the_end() -> None:
    items = [{"id": f"{i:04}"} for i in range(2500)]

    def page(request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("marker", "")
        limit = int(request.url.params["limit"])
        return httpx.Response(
            200, json={"things": [one for one in items if one["id"] > after][:limit]}
        )

    transport = HttpTransport(Access("http://x", "t"), through=httpx.MockTransport(page))
    assert list(pages(transport, "/things", "things")) == items


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (httpx.Response(200, text="<html>"), errors.NotMoorage),
        (httpx.Response(502, text="<html>"), errors.ApiError),
        (httpx.Response(503, json={"errors": [{"code": "ensemble.busy"}]}), errors.Busy),
        (httpx.Response(500, json={}), errors.ServerFault),
        (httpx.Response(404), errors.NotFound),
    ],
)
def test_odd_answers_are_errors_too(response: httpx.Response, kind: type[Exception]) -> None:
    with answering(response) as transport, pytest.raises(kind):
        transport.call("GET", "/v1/ensembles")


def test_an_empty_answer_has_no_body() -> None:
    with answering(httpx.Response(204)) as transport:
        assert transport.call("DELETE", "/x").body is None


def test_every_call_says_who_asks() -> None:
    seen: list[httpx.Request] = []

    def note(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"flavors": []})

    access = Access("http://x", "t", ("a", "b"))
    with connect(access, through=httpx.MockTransport(note)) as client:
        client.flavors.all()
    assert seen[0].headers["X-Auth-Token"] == "t"
    assert seen[0].headers["X-Roles"] == "a,b"
    assert "ensemble latest" in seen[0].headers["OpenStack-API-Version"]


def test_an_answer_of_another_form_is_an_error_that_says_where() -> None:
    def other(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"flavors": [{"name": "m1.small"}]}, request=request)

    with (
        connect(Access("http://x", "t"), through=httpx.MockTransport(other)) as client,
        pytest.raises(errors.UnknownAnswer, match=r"missing required field `id` - at `\$\[0\]`"),
    ):
        client.flavors.all()


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://no such host", "ftp://x"])
def test_nobody_at_the_endpoint(endpoint: str) -> None:
    with connect(Access(endpoint, "t")) as client, pytest.raises(errors.Unreachable) as caught:
        client.flavors.all()
    assert endpoint in str(caught.value)
