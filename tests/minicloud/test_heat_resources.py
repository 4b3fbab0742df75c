"""Templates that name an ensemble or a lease themselves."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.minicloud.stacks import APART, Stacks, heat_with, server, template
from tests.minicloud.tenant import Json, Operator, Tenant


@pytest.fixture
def stacks(operator: Operator, demo: Tenant) -> Iterator[Stacks]:
    """Where the operator leaves it to the templates."""
    with heat_with(operator.cloud, stacks="annotated"), Stacks(demo) as made:
        yield made


def listed(demo: Tenant) -> list[Json]:
    """The tenant's ensembles; those of leases that ended are kept for a while."""
    found: list[Json] = demo.native("GET", "/ensembles")["ensembles"]
    return found


def test_servers_refer_to_an_ensemble(operator: Operator, demo: Tenant, stacks: Stacks) -> None:
    roles = [{"name": "web", "count": 2, "flavor": "m1.small"}]
    ensemble = {
        "type": "OS::Moorage::Ensemble",
        "properties": {"members": roles, "policies": [APART | {"members": ["web"]}]},
    }
    hint = {"moorage": {"get_resource": "group"}}
    described = template(
        group=ensemble, one=server(scheduler_hints=hint), two=server(scheduler_hints=hint)
    )
    described["outputs"] = {"places": {"value": {"get_attr": ["group", "places"]}}}
    name = f"s{uuid4().hex[:8]}"
    stack = stacks.create(described, name)
    stacks.reaches(stack, "CREATE_COMPLETE")
    servers = stacks.servers(stack)
    assert len({operator.host(one) for one in servers.values()}) == 2, "apart"
    (places,) = (one["output_value"] for one in stacks.shown(stack)["outputs"])
    assert set(places) == {"web[0]", "web[1]"}
    (own,) = (one["name"] for one in listed(demo) if one["name"].startswith(f"{name}-group-"))
    stacks.delete(stack)
    stacks.reaches(stack, "gone")
    assert own not in {one["name"] for one in listed(demo)}


def test_a_lease_is_a_resource(demo: Tenant, stacks: Stacks) -> None:
    roles = [{"name": "web", "count": 2, "flavor": "m1.small"}]
    lease = {"type": "OS::Moorage::Lease", "properties": {"members": roles, "duration": "PT2H"}}
    described = template(lease=lease)
    described["outputs"] = {"held": {"value": {"get_attr": ["lease", "reservations"]}}}
    stack = stacks.create(described)
    stacks.reaches(stack, "CREATE_COMPLETE")
    (held,) = (one["output_value"] for one in stacks.shown(stack)["outputs"])
    assert set(held) == {"web"}
    stacks.delete(stack)
    stacks.reaches(stack, "gone")
    leases = demo.native("GET", "/leases")["leases"]
    assert all(one["status"] in {"ending", "closed"} for one in leases), leases
