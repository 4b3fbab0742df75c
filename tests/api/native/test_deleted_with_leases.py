"""An ensemble is deleted with its lease: `cascade=leases`."""

from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.period import HOUR, format_instant
from moorage.testing.service import Service
from moorage.usecases.effect_dispatch import OutwardActions, carry_out

ANY = {"If-Match": "*"}


def run_effects(service: Service) -> None:
    while due := service.store.due_effects(1):
        carry_out(service.env, OutwardActions(), due[0])


def leased(service: Service, **more: Any) -> tuple[str, str]:
    """The path of an ensemble, and that of its lease, which begins in an hour."""
    body = {"name": "shop", "members": [{"name": "web", "count": 2, "flavor": "m1.small"}]}
    made = service.call("POST", "/ensembles", {"ensemble": body})
    asked = {
        "name": "week",
        "ensemble_id": made.json["ensemble"]["id"],
        "start": format_instant(service.clock.now() + HOUR),
        "duration": "PT5H",
        **more,
    }
    lease = service.call("POST", "/leases", {"lease": asked})
    assert lease.status_code == 201, lease.json
    return f"/ensembles/{asked['ensemble_id']}", f"/leases/{lease.json['lease']['id']}"


@pytest.mark.parametrize("state", ["pending", "active"])
def test_a_lease_is_cancelled_with_its_ensemble(service: Service, state: str) -> None:
    ensemble, lease = leased(service)
    if state == "active":
        service.clock.pass_by(2 * HOUR)
        run_effects(service)
    error = refused(service.call("DELETE", ensemble, headers=ANY), 409, "in_use")
    assert (
        "it has lease L1; to cancel that, too: moorage ensemble delete shop --cascade"
        in (error["detail"])
    )
    assert error["remedies"] == ["cascade=leases"]
    with_lease = {"cascade": "leases"}
    dry = service.call("DELETE", ensemble, query={**with_lease, "dry_run": "true"}, headers=ANY)
    assert dry.status_code == 204, dry.json
    assert service.call("GET", ensemble).status_code == 200
    stale = service.call("DELETE", ensemble, query=with_lease, headers={"If-Match": '"9"'})
    refused(stale, 412, "precondition_failed")
    assert service.call("DELETE", ensemble, query=with_lease, headers=ANY).status_code == 204
    assert service.call("GET", ensemble).status_code == 404
    assert service.call("GET", lease).json["lease"]["status"] == "closed"
    service.clock.pass_by(9 * HOUR)
    run_effects(service)
    assert service.call("GET", lease).json["lease"]["status"] == "closed"
    assert {str(one.state) for _, one in service.store.bookings()} == {"allocated"}


def test_a_lease_with_cleaning_keeps_its_ensemble_until_then(service: Service) -> None:
    ensemble, lease = leased(service, cleaning="PT1H")
    service.clock.pass_by(2 * HOUR)
    run_effects(service)
    answer = service.call("DELETE", ensemble, query={"cascade": "leases"}, headers=ANY)
    assert "lease L1 is cleaned after its end" in refused(answer, 409, "in_use")["detail"]
    assert service.call("GET", lease).json["lease"]["status"] == "active"
    wrong = service.call("DELETE", ensemble, query={"cascade": "all"}, headers=ANY)
    assert refused(wrong, 400, "invalid_description")["path"] == "cascade"
