"""Stacks, extensions, shrinkings and headroom that others overtake."""

from collections.abc import Callable
from functools import partial

from moorage.heat.compile import Source
from moorage.testing.service import TENANT, Service
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.ensembles.extend import Extension, extend
from moorage.usecases.ensembles.headroom import set_headroom
from moorage.usecases.ensembles.shrink import Reduction, shrink
from moorage.usecases.ensembles.size_changes import RoleCounts
from moorage.usecases.ensembles.stacks import StackRequest, put_stack
from moorage.usecases.environment import UseCaseEnvironment

Overtaken = Callable[[Callable[[], object]], UseCaseEnvironment]
STACK = "5a5a5a5a-0000-4000-8000-000000000001"
REQUEST = "dddddddd-0000-4000-8000-00000000000d"
TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  web:
    type: OS::Heat::ResourceGroup
    metadata: {{moorage: {{policies: [{{type: anti-affinity, level: host}}]}}}}
    properties:
      count: {count}
      resource_def: {{type: OS::Nova::Server, properties: {{flavor: m1.small}}}}
"""


def stack(count: int) -> StackRequest:
    return StackRequest(STACK, Source(TEMPLATE.format(count=count), name="shop"), {})


def hosts(service: Service, ensemble: str) -> list[str]:
    """Hosts on which members of the ensemble, or its headroom, have places."""
    found = service.store.ensemble(ensemble)
    consumers = {one.uuid for one in (*found.members, *found.headroom)}
    return [one.provider for _, one in service.store.bookings() if one.consumer in consumers]


def ensemble(service: Service, count: int = 3) -> str:
    body = {
        "name": "cluster",
        "members": [{"name": "w", "count": count, "resources": {"VCPU": 1}}],
        "policies": [{"name": "apart", "type": "anti-affinity", "members": ["w"], "level": "host"}],
        "decide": {},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body})
    return str(made.json["ensemble"]["id"])


def test_two_creations_of_a_stack_make_one(service: Service, overtaken: Overtaken) -> None:
    quick = partial(put_stack, service.env, TENANT, stack(4))
    slow = put_stack(overtaken(quick), TENANT, stack(2))
    assert len(slow.keys) == 2
    assert len(hosts(service, STACK)) == len(set(hosts(service, STACK))) == 2


def test_two_updates_of_a_stack_come_one_after_the_other(
    service: Service, overtaken: Overtaken
) -> None:
    put_stack(service.env, TENANT, stack(1))
    quick = partial(put_stack, service.env, TENANT, stack(5))
    slow = put_stack(overtaken(quick), TENANT, stack(3))
    assert len(slow.keys) == 3
    assert len(set(hosts(service, STACK))) == len(hosts(service, STACK)) == 3


def extension(count: int) -> Extension:
    return Extension(RoleCounts({"w": count}))


def test_two_extensions_at_once_both_count(service: Service, overtaken: Overtaken) -> None:
    found = ensemble(service)
    quick = partial(
        extend, service.env, TENANT, found, extension(2), RequestIdentity(service.ids.uuid())
    )
    slow = extend(overtaken(quick), TENANT, found, extension(3), RequestIdentity(REQUEST, "x"))
    assert len(slow.ensemble.members) == 8
    assert len(set(hosts(service, found))) == 8, "each on a host of its own"


def test_the_same_extension_on_two_connections_counts_once(
    service: Service, overtaken: Overtaken
) -> None:
    found = ensemble(service)
    naming = RequestIdentity(REQUEST, "fingerprint")
    quick = partial(extend, service.env, TENANT, found, extension(4), naming)
    slow = extend(overtaken(quick), TENANT, found, extension(4), naming)
    assert len(slow.ensemble.members) == len(service.store.ensemble(found).members) == 7
    assert len(slow.members) == 4


def test_the_same_shrinking_on_two_connections_counts_once(
    service: Service, overtaken: Overtaken
) -> None:
    found = ensemble(service, 6)
    naming = RequestIdentity(REQUEST, "fingerprint")
    fewer = Reduction(RoleCounts({"w": 2}))
    quick = partial(shrink, service.env, TENANT, found, fewer, naming)
    slow = shrink(overtaken(quick), TENANT, found, fewer, naming)
    assert len(service.store.ensemble(found).members) == len(hosts(service, found)) == 4
    assert len(slow.gone) == 2


def test_headroom_gives_way_to_who_was_quicker(service: Service, overtaken: Overtaken) -> None:
    found = ensemble(service)
    quick = partial(
        extend, service.env, TENANT, found, extension(3), RequestIdentity(service.ids.uuid())
    )
    set_headroom(overtaken(quick), TENANT, found, "w", 3)
    assert len(set(hosts(service, found))) == len(hosts(service, found)) == 9


def test_a_neighbour_that_takes_the_host_meanwhile_makes_headroom_look_again(
    service: Service, overtaken: Overtaken
) -> None:
    found = ensemble(service)
    body = {
        "name": "alone",
        "members": [{"name": "n", "count": 2, "resources": {"VCPU": 16}}],
        "decide": {},
    }
    taking = partial(service.call, "POST", "/ensembles", {"ensemble": body})
    set_headroom(overtaken(taking), TENANT, found, "w", 2)
    assert len(set(hosts(service, found))) == 5
    assert service.call("GET", "/ensembles").json["ensembles"][1]["name"] == "alone"
