"""Requests to each API that are nearly right: a good one, spoiled in its body, path or headers."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from urllib.parse import quote, urlencode

from tests.fuzz.doors import one_tenant
from tests.fuzz.doors.spoiling import dumps, spoiled, text
from tests.fuzz.doors.templates import template

NATIVE, PLACEMENT, BLAZAR, COMPUTE = "/v1", "/placement", "/reservation", "/compute/v2.1"

GETS: Final = {
    NATIVE: (
        *("/ensembles", "/decisions", "/leases", "/series", "/offers", "/waitlist", "/templates"),
        *("/subscriptions", "/events", "/explanations", "/flavors", "/quotas", "/policies"),
        *("/capacity", "/capacity/windows", "/capacity/planned", "/topology", "/bookings", "/"),
    ),
    PLACEMENT: (
        *("/resource_providers", "/resource_classes", "/traits", "/usages", "/"),
        "/allocation_candidates",
    ),
    BLAZAR: ("/leases", "/os-hosts", "/os-hosts/properties", "/os-hosts/allocations"),
    COMPUTE: ("/os-server-groups", "/"),
}
PARAMETERS: Final = (
    *("limit", "marker", "name", "all_projects", "resources", "required", "in_tree", "member_of"),
    *("group_policy", "same_subtree", "resources1", "required1", "project_id", "user_id"),
    *(
        "offset",
        "from",
        "to",
        "step",
        "flavor",
        "count",
        "duration",
        "wait",
        "after",
        "type",
        "status",
    ),
)
QUERIES: Final = (
    {"resources": "VCPU:1,MEMORY_MB:64"},
    {"resources": "VCPU:1", "limit": "1000", "required": "COMPUTE_NODE"},
    {"resources1": "VCPU:1", "resources2": "VCPU:1", "group_policy": "isolate"},
    {"limit": "5"},
    {"all_projects": "true"},
    {"from": "2026-12-01T00:00:00Z", "to": "2026-12-08T00:00:00Z", "step": "P1D"},
    {"flavor": "m1.small", "count": "5", "duration": "PT1H"},
)


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def request(dice: Random, known: Sequence[str]) -> Asked:
    """One request; `known` are ids that answers have told of."""
    made = dice.choice(_KINDS)(dice, known)
    headers = {"Content-Type": "application/json", **made.headers}
    if dice.random() < 0.1:
        headers |= _odd_headers(dice)
    return Asked(made.method, made.path, made.body, headers)


def _odd_headers(dice: Random) -> dict[str, str]:
    return dice.choice(
        (
            {"Content-Type": dice.choice(("text/plain", "application/JSON", "a/b;c=d", "x"))},
            {"Accept": dice.choice(("text/html", "*/*;q=0", "application/json;q=x", ","))},
            {"OpenStack-API-Version": dice.choice(("placement 1.999", "placement 1.039", "x", ""))},
            {"OpenStack-API-Version": f"placement 1.{dice.randrange(40)}"},
            {"X-Openstack-Request-Id": "req-" + dice.choice(("x" * 5_000, str(uuid.uuid4()), ""))},
            {"If-Match": dice.choice(("*", '"1"', "x", '"' + "9" * 5_000 + '"'))},
            {"X-Auth-Token": "x" * dice.choice((10, 20_000))},
            {"X-Roles": dice.choice(("admin,member", "member,admin", "", "x" * 3_000))},
        )
    )


def _listing(dice: Random, known: Sequence[str]) -> Asked:
    door = dice.choice(list(GETS))
    path = dice.choice(GETS[door])
    match dice.randrange(4):
        case 0:
            path += "/" + quote(text(dice)[:2_000], safe="")
        case 1 if known:
            path += "/" + dice.choice(known)
    query = dict(dice.choice(QUERIES)) if dice.random() < 0.5 else {}
    if dice.random() < 0.4:
        query[dice.choice(PARAMETERS)] = text(dice)[:2_000]
    method = dice.choice(("GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS", "PATCH"))
    words = urlencode(query)
    return Asked(method, f"{door}{path}?{words}" if words else door + path)


def _sent(dice: Random, method: str, path: str, body: Any) -> Asked:
    spoil = dice.random() < 0.7
    return Asked(method, path, dumps(spoiled(body, dice) if spoil else body))


def _ensemble(dice: Random, known: Sequence[str]) -> Asked:
    del known
    roles = [
        {"name": f"r{number}", "count": dice.choice((1, 3, 40)), "flavor": "m1.small"}
        for number in range(dice.choice((1, 2, 20)))
    ]
    kinds = ("anti-affinity", "affinity", "spread", "survive", "exclusive")
    policies = [
        {"name": f"p{number}", "type": dice.choice(kinds), "members": ["r0"], "level": "host"}
        for number in range(dice.choice((0, 1, 10)))
    ]
    body = {
        "ensemble": {
            "name": f"e{dice.randrange(10**9)}",
            "members": roles,
            "policies": policies,
            "metadata": {"k": "v"},
            "decide": {"hold": "PT1M", "time_limit": "PT2S", "max_additional": ["r0"]},
        }
    }
    return _sent(dice, "POST", f"{NATIVE}/ensembles" + dice.choice(("", "?dry_run=true")), body)


def _hot(dice: Random, known: Sequence[str]) -> Asked:
    del known
    body = {
        "hot": {
            "template": template(dice),
            "name": f"t{dice.randrange(10**9)}",
            "decide": {"hold": "PT1M", "time_limit": "PT2S"},
        }
    }
    spoil = dice.random() < 0.1
    path = f"{NATIVE}/hot" + dice.choice(("", "?dry_run=true"))
    return Asked("POST", path, dumps(spoiled(body, dice) if spoil else body))


def _kept_template(dice: Random, known: Sequence[str]) -> Asked:
    del known
    body = {"template": {"name": f"t{dice.randrange(50)}", "format": "hot"}}
    body["template"]["source"] = template(dice)
    return _sent(dice, "POST", f"{NATIVE}/templates", body)


def _lease(dice: Random, known: Sequence[str]) -> Asked:
    del known
    body = {
        "lease": {
            "name": f"l{dice.randrange(10**9)}",
            "amount": {"flavor": "m1.small", "count": dice.choice((1, 5, 400))},
            "start": "2026-12-07T08:00:00Z",
            "duration": "PT1H",
            "time_limit": "PT2S",
        }
    }
    where = dice.choice(("/leases", "/leases?dry_run=true", "/offers", "/series", "/waitlist"))
    return _sent(dice, "POST", NATIVE + where, body)


def _one_tenant(dice: Random, known: Sequence[str]) -> Asked:
    """Seldom something expensive: most of its kind are refused soon."""
    if dice.random() < 0.7:
        return _listing(dice, known)
    path, body = one_tenant.body(dice, f"o{dice.randrange(10**9)}")
    return Asked("POST", path, body)


def _subscription(dice: Random, known: Sequence[str]) -> Asked:
    del known
    url = dice.choice(("http://127.0.0.1/", "http://[::ffff:7f00:1]/", "https://8.8.8.8/x", "x"))
    body = {"subscription": {"url": url, "types": ["lease.*"], "name": "s"}}
    return _sent(dice, "POST", f"{NATIVE}/subscriptions", body)


def _blazar(dice: Random, known: Sequence[str]) -> Asked:
    largest = dice.choice((1, 3, 400, 10**6))
    instance = {
        "resource_type": "virtual:instance",
        "vcpus": 1,
        "memory_mb": 64,
        "disk_gb": 1,
        "amount": dice.choice((1, 400)),
        "affinity": dice.choice((True, False, None)),
        "resource_properties": '[">=", "$vcpus", "1"]',
    }
    hosts = {
        "resource_type": "physical:host",
        "min": 1,
        "max": largest,
        "hypervisor_properties": dice.choice(('[">=", "$vcpus", "2"]', "[" * 900, "", "[1]")),
        "resource_properties": "",
    }
    body = {
        "name": f"b{dice.randrange(10**9)}",
        "start_date": dice.choice(("now", "2026-12-07 08:00", "2026-12-07")),
        "end_date": "2026-12-08 08:00",
        "reservations": [dice.choice((instance, hosts))],
        "events": [],
    }
    if known and dice.random() < 0.3:
        return _sent(dice, "PUT", f"{BLAZAR}/leases/{dice.choice(known)}", {"prolong_for": "1d"})
    return _sent(dice, "POST", f"{BLAZAR}/leases", body)


def _server_group(dice: Random, known: Sequence[str]) -> Asked:
    if known and dice.random() < 0.3:
        method = dice.choice(("GET", "DELETE"))
        return _sent(dice, method, f"{COMPUTE}/os-server-groups/{dice.choice(known)}", None)
    name = {"name": f"g{dice.randrange(50)}"}
    kind, limit = dice.choice(("anti-affinity", "affinity")), dice.choice((1, "2", 10**40))
    body, minor = dice.choice(
        (
            ({"policies": [kind]}, dice.choice((1, 13, 15, 63))),
            ({"policy": kind, "rules": {"max_server_per_host": limit}}, 64),
            ({"policy": f"soft-{kind}"}, dice.choice((64, 65))),
        )
    )
    asked = _sent(dice, "POST", f"{COMPUTE}/os-server-groups", {"server_group": name | body})
    header = {"OpenStack-API-Version": f"compute 2.{minor}"}
    return Asked("POST", asked.path, asked.body, header)


def _placement(dice: Random, known: Sequence[str]) -> Asked:
    own = dice.choice(known) if known and dice.random() < 0.5 else str(uuid.uuid4())
    allocation = {
        "allocations": {own: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    writes: tuple[tuple[str, str, Any], ...] = (
        ("PUT", f"/allocations/{uuid.uuid4()}", allocation),
        ("POST", "/allocations", {str(uuid.uuid4()): allocation}),
        ("POST", "/resource_providers", {"name": f"n{dice.randrange(10**9)}", "uuid": own}),
        (
            "PUT",
            f"/resource_providers/{own}/inventories",
            {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}},
        ),
        (
            "PUT",
            f"/resource_providers/{own}/traits",
            {"resource_provider_generation": 0, "traits": ["CUSTOM_A"]},
        ),
        ("POST", "/reshaper", {"inventories": {}, "allocations": {}}),
        ("POST", "/resource_classes", {"name": "CUSTOM_" + text(dice)[:300]}),
        ("PUT", "/traits/CUSTOM_" + quote(text(dice)[:300], safe=""), None),
    )
    method, path, body = dice.choice(writes)
    asked = _sent(dice, method, PLACEMENT + path, body)
    version = f"placement 1.{dice.choice((0, 12, 28, 36, 39))}"
    return Asked(method, asked.path, asked.body, {"OpenStack-API-Version": version})


_KINDS: Final[tuple[Callable[[Random, Sequence[str]], Asked], ...]] = (
    _listing,
    _listing,
    _ensemble,
    _hot,
    _kept_template,
    _lease,
    _subscription,
    _blazar,
    _server_group,
    _placement,
    _placement,
    _one_tenant,
)
