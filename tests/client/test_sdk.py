"""Moorage as a service of the real openstacksdk, against a real server process."""

import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import openstack
import pytest
from openstack.connection import Connection
from tests.servers.nova import Nova, environment, running
from tests.servers.proxy import Proxy
from tests.servers.replica import Replica

from moorage.client import errors
from moorage.client.discovery import Access
from moorage.client.moorage import connect
from moorage.client.sdk import EnsembleProxy, EnsembleService, ensemble_of
from moorage.domain.nova_servers import ServerOptions
from moorage.testing import in_process
from moorage.wire.ensembles import Ensemble

pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore:::openstack"),
]

ROOT = Path(__file__).parents[2]
WEB = {"name": "web", "flavor": "m1.small", "count": 2}
HELD = {"members": [WEB], "decide": {"hold": "PT10M"}}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("served")
    server = Replica(home, f"sqlite:///{home}/ledger.db")
    server.start()
    server.up()
    url = f"http://127.0.0.1:{server.port}"
    with connect(Access(url, "admin")) as operator:
        in_process.load(operator, (ROOT / "fleets/three-racks.yaml").read_text("utf-8"))
    yield url
    server.down()


def connection(url: str, **config: Any) -> Connection:
    return openstack.connect(
        load_envvars=False,
        load_yaml_config=False,
        auth_type="admin_token",
        auth={"token": "admin", "endpoint": url},
        **config,
    )


@pytest.fixture
def moorage(endpoint: str) -> Iterator[EnsembleProxy]:
    with connection(endpoint) as made:
        found = ensemble_of(made)
        yield found
        for one in list(found.ensembles(all_projects=True)):
            found.delete_ensemble(one.id)


def name() -> str:
    return f"app-{uuid.uuid4().hex[:6]}"


def count_one_more(now: Ensemble) -> dict[str, Any]:
    return {"members": [{"name": "web", "count": now.members[0].count + 1}]}


def test_it_is_an_attribute_of_the_connection(endpoint: str) -> None:
    with connection(endpoint) as made:
        made.add_service(EnsembleService())
        found = made.ensemble  # type: ignore[attr-defined]  # added by its name
        assert isinstance(found, EnsembleProxy)
        assert list(found.ensembles()) == []
        assert found is ensemble_of(made)


def test_from_a_description_to_claims(moorage: EnsembleProxy) -> None:
    made = moorage.create_ensemble(name=name(), **HELD)
    assert made.decision
    for text in (made.id, made.id[:8], made.name, made):
        assert moorage.get_ensemble(text).id == made.id
    assert [one.status for one in moorage.members(made)] == ["held", "held"]
    decision = moorage.get_decision(made.decision)
    assert len(decision.assignments) == 2
    assert moorage.renew_decision(decision.id, "PT20M").renewals == 1
    with pytest.raises(errors.Stale):
        moorage.renew_decision(decision, "PT20M")
    claim = moorage.create_claim(decision, "web[0]", {"flavor": "m1.small"})
    assert moorage.get_claim(claim).member == "web[0]"
    server = str(uuid.uuid4())
    assert moorage.update_claim(claim, status="active", server_id=server).server_id == server
    assert [one.id for one in moorage.claims(decision)] == [claim.id]
    assert moorage.confirm_decision(decision) == ["web[1]"]
    assert [one.status for one in moorage.decisions(made)] == ["closed"]


def test_what_is_not_there_is_none_or_missing(moorage: EnsembleProxy) -> None:
    for text in ("nosuch", str(uuid.uuid4())):
        assert moorage.find_ensemble(text) is None
        assert moorage.find_lease(text) is None
        moorage.delete_ensemble(text)
        with pytest.raises((errors.Missing, errors.NotFound)):
            moorage.delete_ensemble(text, ignore_missing=False)


def test_listings_are_read_page_after_page(moorage: EnsembleProxy, monkeypatch: Any) -> None:
    monkeypatch.setattr("moorage.client.lookup.PAGE", 2)
    made = {moorage.create_ensemble(name=name(), members=[]).name for _ in range(5)}
    asked: list[str] = []
    request = EnsembleProxy.request

    def counted(self: EnsembleProxy, url: str, method: str, **more: Any) -> Any:
        asked.append(url)
        return request(self, url, method, **more)

    monkeypatch.setattr(EnsembleProxy, "request", counted)
    listed = moorage.ensembles()
    assert asked == []
    first = next(listed)
    assert len(asked) == 1
    assert {first.name, *(one.name for one in listed)} == made
    assert len(asked) == 3


def test_a_named_thing_is_changed_in_its_newest_generation(moorage: EnsembleProxy) -> None:
    """Six at once read, add one and write: none is lost, whichever comes first."""
    made = moorage.create_ensemble(name=name(), members=[{**WEB, "count": 1}])
    threads = [
        threading.Thread(target=moorage.update_ensemble, args=(made.name, count_one_more))
        for _ in range(6)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert moorage.get_ensemble(made).members[0].count == 7


def test_a_struct_is_changed_only_in_the_generation_it_shows(moorage: EnsembleProxy) -> None:
    made = moorage.create_ensemble(name=name(), members=[WEB])
    changed = moorage.update_ensemble(made, {"metadata": {"by": "me"}})
    assert changed.metadata == {"by": "me"}
    with pytest.raises(errors.Stale):
        moorage.update_ensemble(made, {"metadata": {"by": "you"}})
    with pytest.raises(errors.Stale):
        moorage.delete_ensemble(made)
    moorage.delete_ensemble(changed)


def test_a_creation_without_an_answer_is_repeated_and_happens_once(endpoint: str) -> None:
    port = int(endpoint.rpartition(":")[2])
    lossy = Proxy(port, commit=b'"decide"')  # breaks the connection once the request went out
    with lossy as proxy, connection(f"http://127.0.0.1:{proxy.port}") as made:
        moorage = ensemble_of(made)
        assert list(moorage.ensembles()) == []
        proxy.cut = "after"
        held = moorage.create_ensemble(name=name(), **HELD)
        assert proxy.cuts == 1
        try:
            assert [one.id for one in moorage.ensembles()] == [held.id]
        finally:
            moorage.delete_ensemble(held.id)


def test_a_refusal_has_its_explanation(moorage: EnsembleProxy) -> None:
    with pytest.raises(errors.Infeasible) as refused:
        moorage.create_ensemble(name=name(), **(HELD | {"members": [{**WEB, "count": 900}]}))
    assert refused.value.explanation["conflict"]


def test_leases_offers_quotas_and_events(moorage: EnsembleProxy) -> None:
    amount = {"flavor": "m1.small", "count": 1}
    start = datetime.now(UTC) + timedelta(days=1)  # so that nothing but this test changes it
    lease = moorage.create_lease(
        name=name(), amount=amount, start=start.isoformat(), duration="PT1H"
    )
    assert [one.id for one in moorage.leases(name=lease.name)] == [lease.id]
    renamed = moorage.update_lease(lease.handle, lambda now: {"name": f"{now.name}-2"})
    assert renamed.name == f"{lease.name}-2"
    with pytest.raises(errors.Stale):
        moorage.delete_lease(lease)
    moorage.delete_lease(renamed)
    quota = moorage.update_quota("some-project", leases=3)
    assert moorage.get_quota("some-project").leases.limit == quota.leases.limit == 3
    assert moorage.get_quota().project_id == "admin"
    types = [one.type for one in moorage.events(subject=lease.id)]
    assert types[0] == "lease.pending"
    pages = list(moorage.event_pages())
    assert list(moorage.events(pages[-1].cursor)) == []


def test_the_whole_client_is_there_for_the_rest(moorage: EnsembleProxy) -> None:
    assert {one.name for one in moorage.moorage.flavors.all().value} >= {"m1.small"}
    assert len(list(moorage.moorage.placement.providers())) == 9


def test_servers_are_created_through_the_connection(endpoint: str) -> None:
    with running(Nova(f"{endpoint}/placement")) as nova:
        found = {name.lower().removeprefix("os_"): url for name, url in environment(nova).items()}
        with connection(endpoint, **found) as made:
            moorage = ensemble_of(made)
            held = moorage.create_ensemble(name=name(), **HELD)
            booted = moorage.boot(held, given=ServerOptions(image="debian"))
            assert booted.complete
            assert len(nova.created) == 2
            moorage.delete_ensemble(held.id)


def test_no_service_is_said_in_the_clients_words() -> None:
    with connection("http://127.0.0.1:1") as made, pytest.raises(errors.Unreachable) as lost:
        list(ensemble_of(made).ensembles())
    assert lost.value.message == (
        "cannot reach Moorage at http://127.0.0.1:1: connection refused (is it running?)"
    )
