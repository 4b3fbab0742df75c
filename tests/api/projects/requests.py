"""For every route of every dialect, what a member of one project asks with another's ids.

`{lease}` and the like in a path are replaced by the id of the other's, and of one's own: see
`two_projects.Owned.ids`. A route without an entry fails the test that reads this.
"""

# ruff: noqa: E501 - one route, one line: this is read as a table

from typing import Any, Final

from tests.api.projects.two_projects import (
    HOSTS,
    MONDAY,
    NEAR,
    PLACES,
    PRIVATE,
    amount,
    blazar,
    role,
)

Request = tuple[str, Any]
"""A path below the mount, perhaps with a query, and a body."""


def _ensemble(name: str, *policies: dict[str, Any], count: int = 4, **more: Any) -> dict[str, Any]:
    return {
        "ensemble": {
            "name": name,
            "members": [role("web", count, 16)],
            "policies": [{"members": ["*"], **one} for one in policies],
            **more,
        }
    }


def _fence(*names: str) -> dict[str, Any]:
    return {"name": "in", "type": "fence", "domains": list(names)}


HOLD: Final[dict[str, Any]] = {"decide": {"hold": "PT10M"}}
GUESSES: Final = (HOSTS[0], PLACES[0], PLACES[2], "az1", "zqnothing")
LEASE: Final[dict[str, Any]] = {"name": "mine", **MONDAY}
LATER: Final = {"start": "2026-12-07T10:00:00Z", "duration": "PT9H"}
NINTH: Final = {
    "name": "ninth",
    "start": "2026-12-09T07:00:00Z",
    "duration": "PT4H",
    **amount(4, 12),
}
"""It fits after another project's lease."""
MISSPELT: Final = (
    {**role("web", 1, 1), "required": [NEAR[0]]},
    {"name": "web", "resources": {NEAR[1]: 1}},
)
WHOLE: Final = {"resource_type": "physical:host", "min": 2, "max": 4}
HOT: Final = """
heat_template_version: 2021-04-16
resources:
  crowd:
    type: OS::Heat::ResourceGroup
    properties:
      count: 40
      resource_def: {type: "OS::Nova::Server", properties: {flavor: small}}
"""
SOURCE: Final = {"name": "t2", "members": [role("web", 1, 1)]}

# fmt: off
NATIVE: Final[dict[tuple[str, str], list[Request]]] = {
    ("GET", "/"): [("/", None)],
    ("GET", "/openapi.json"): [("/openapi.json", None)],
    ("GET", "/ensembles"): [("/ensembles", None), ("/ensembles?all_projects=true", None), ("/ensembles?project_id={project}", None), ("/ensembles?marker={ensemble}", None)],
    ("POST", "/ensembles"): [
        ("/ensembles", _ensemble("all", **HOLD)),
        ("/ensembles", _ensemble("many", count=100, **HOLD)),
        ("/ensembles", _ensemble("late", count=4, decide={"hold": "PT10M", "until": "2026-12-07T12:30:00Z"})),
        ("/ensembles", _ensemble("apart", {"name": "apart", "type": "anti-affinity", "level": "rack"}, **HOLD)),
        ("/ensembles", _ensemble("alone", {"name": "alone", "type": "exclusive"}, count=4, **HOLD)),
        *(("/ensembles", _ensemble("fenced", _fence(name), **HOLD)) for name in GUESSES),
        *(("/ensembles", {"ensemble": {"name": "misspelt", "members": [one]}}) for one in MISSPELT),
        ("/ensembles", _ensemble("wants", {"name": "w", "type": "fence", "traits": [NEAR[0]]})),
        ("/ensembles", {"ensemble": {"name": "same", "id": "{ensemble}", "members": [role("web", 1, 1)], "decide": {"hold": "PT1M"}}}),
    ],
    ("GET", "/ensembles/{id}"): [("/ensembles/{ensemble}", None), ("/ensembles/{ensemble}?compliance=true", None)],
    ("PATCH", "/ensembles/{id}"): [("/ensembles/{ensemble}", {"ensemble": {"members": [{"name": "web", "count": 90, "resources": {"VCPU": 1}}], "decide": {}}})],
    ("DELETE", "/ensembles/{id}"): [("/ensembles/{ensemble}?dry_run=true", None)],
    ("POST", "/ensembles/{id}/extend"): [("/ensembles/{ensemble}/extend", {"extend": {"role": "web", "count": 60}}), ("/ensembles/{ensemble}/extend", {"extend": {"role": "web", "count": 60, "least": 1, "movable": True}})],
    ("POST", "/ensembles/{id}/shrink"): [("/ensembles/{ensemble}/shrink?dry_run=true", {"shrink": {"role": "web", "count": 1}})],
    ("PUT", "/ensembles/{id}/headroom"): [("/ensembles/{ensemble}/headroom", {"headroom": {"role": "web", "count": 60}})],
    ("GET", "/ensembles/{id}/survivability"): [("/ensembles/{ensemble}/survivability", None)],
    ("GET", "/ensembles/{id}/compliance"): [("/ensembles/{ensemble}/compliance", None), ("/ensembles/{ensemble}/compliance?history=true", None)],
    ("GET", "/violations"): [("/violations" + query, None) for query in ("", "?state=all", "?ensemble={ensemble}", "?project_id={project}", "?all_projects=true", f"?host={HOSTS[0]}")],
    ("GET", "/ensembles/{id}/members"): [("/ensembles/{ensemble}/members", None)],
    ("POST", "/ensembles/{id}/members"): [
        ("/ensembles/{ensemble}/members", {"member": {"role": role("more", 60, 1), "decide": {}}}),
        ("/ensembles/{ensemble}/members", {"member": {"server_id": "{server}", "name": "joined"}}),
    ],
    ("GET", "/ensembles/{id}/members/{name:path}"): [("/ensembles/{ensemble}/members/{member}", None)],
    ("DELETE", "/ensembles/{id}/members/{name:path}"): [("/ensembles/{ensemble}/members/{member}?dry_run=true", None)],
    ("GET", "/ensembles/{id}/policies"): [("/ensembles/{ensemble}/policies", None)],
    ("GET", "/ensembles/{id}/policies/{name}"): [("/ensembles/{ensemble}/policies/{policy}", None)],
    ("PUT", "/ensembles/{id}/policies/{name}"): [("/ensembles/{ensemble}/policies/near", {"policy": {"type": "affinity", "level": "rack", "members": ["*"]}})] + [("/ensembles/{ensemble}/policies/in", {"policy": {"members": ["*"], **_fence(name)}}) for name in GUESSES],
    ("DELETE", "/ensembles/{id}/policies/{name}"): [("/ensembles/{ensemble}/policies/{policy}?dry_run=true", None)],
    ("GET", "/policy-types"): [("/policy-types", None)],
    ("GET", "/policy-types/{type}"): [("/policy-types/fence", None)],
    ("GET", "/decisions"): [("/decisions", None), ("/decisions?all_projects=true", None), ("/decisions?ensemble_id={ensemble}", None)],
    ("POST", "/decisions"): [("/decisions", {"decision": {"ensemble_id": "{ensemble}", "max_additional": ["web"], "until": "2026-12-07T13:00:00Z"}}), ("/decisions", {"decision": {"ensemble_id": "{ensemble}", "id": "{decision}"}})],
    ("GET", "/decisions/{id}"): [("/decisions/{decision}", None)],
    ("PATCH", "/decisions/{id}"): [("/decisions/{decision}", {"decision": {"hold": "PT3H"}})],
    ("DELETE", "/decisions/{id}"): [("/decisions/{decision}?dry_run=true", None)],
    ("POST", "/decisions/{id}/confirm"): [("/decisions/{decision}/confirm?dry_run=true", None)],
    ("GET", "/decisions/{id}/explanation"): [("/decisions/{decision}/explanation", None), ("/decisions/{entry}/explanation?instance=true", None)],
    ("GET", "/decisions/{id}/record"): [("/decisions/{decision}/record", None)],
    ("GET", "/decisions/{id}/claims"): [("/decisions/{decision}/claims", None)],
    ("POST", "/decisions/{id}/claims"): [("/decisions/{decision}/claims", {"claim": {"member": "{member}", "server": {"resources": {"VCPU": 9}}}})],
    ("GET", "/claims/{id}"): [("/claims/{claim}", None)],
    ("PATCH", "/claims/{id}"): [("/claims/{claim}", {"claim": {"status": "active", "server_id": "{server}"}})],
    ("GET", "/leases"): [("/leases", None), ("/leases?all_projects=true", None), ("/leases?project_id={project}", None), ("/leases?series={series}", None), ("/leases?marker={lease}", None), ("/leases?from=2026-12-01T00:00:00Z&to=2027-01-01T00:00:00Z", None)],
    ("POST", "/leases"): [
        ("/leases", {"lease": LEASE | amount(4, 16)}),
        ("/leases", {"lease": LEASE | amount(3, 15) | {"priority": 0, "lead": "PT1H", "cleaning": "PT1H"}}),
        ("/leases", {"lease": {"name": "mine", **LATER, **amount(4, 16)}}),
        ("/leases", {"lease": {"name": "now", "duration": "PT9H", **amount(4, 16)}}),
        ("/leases", {"lease": LEASE | amount(100, 16)}),
        ("/leases", {"lease": LEASE | amount(4, 16) | {"wait": {}}}),
        ("/leases?dry_run=true", {"lease": NINTH}),
        ("/leases?dry_run=true", {"lease": NINTH | {"wait": {"latest_start": "2026-12-10T00:00:00Z"}}}),
        ("/leases?dry_run=true", {"lease": NINTH | {"wait": {"latest_start": "2026-12-09T17:55:00Z"}}}),
        ("/leases", {"lease": LEASE | amount(1, 1) | {"id": "{lease}"}}),
        ("/leases", {"lease": LEASE | {"ensemble_id": "{ensemble}"}}),
        ("/leases", {"lease": LEASE | {"template": {"name": "{template}"}}}),
        *(("/leases", {"lease": LEASE | {"ensemble": {"members": [role("web", 4, 16)], "policies": [{"members": ["*"], **_fence(name)}]}}}) for name in GUESSES),
    ],
    ("GET", "/leases/{id}"): [("/leases/{lease}", None), ("/leases/{reserved}", None)],
    ("PATCH", "/leases/{id}"): [("/leases/{lease}", {"lease": {"counts": {"server": 60}}}), ("/leases/{lease}", {"lease": {"start": "2026-12-14T08:00:00Z", "end": "2026-12-15T13:00:00Z", "counts": {"server": 4}}}), ("/leases/{lease}", {"lease": {"end": "2026-12-16T08:00:00Z", "counts": {"server": 29}}})],
    ("DELETE", "/leases/{id}"): [("/leases/{lease}?dry_run=true", None)],
    ("GET", "/leases/{id}/events"): [("/leases/{lease}/events", None)],
    ("GET", "/timeline"): [("/timeline" + query, None) for query in ("", "?all_projects=true", "?rows=project&closed=true", "?rows=host", "?rows=rack", "?marker={lease}", "?to=2027-01-01T00:00:00Z")],
    ("GET", "/series"): [("/series", None), ("/series?all_projects=true", None)],
    ("POST", "/series"): [("/series", {"series": {"name": "s", "every": "daily", "times": 3, "duration": "PT4H", "start": "2026-12-13T08:00", **amount(4, 16)}}), ("/series", {"series": {"name": "s", "every": "daily", "times": 3, "duration": "PT4H", "start": "2026-12-13T08:00", "as_many_as_fit": True, **amount(4, 16)}})],
    ("GET", "/series/{id}"): [("/series/{series}", None)],
    ("PATCH", "/series/{id}"): [("/series/{series}", {"series": {"name": "renamed"}})],
    ("DELETE", "/series/{id}"): [("/series/{series}?dry_run=true", None)],
    ("POST", "/series/{id}/extend"): [("/series/{series}/extend", {"series": {"times": 1}})],
    ("GET", "/shares"): [("/shares", None), ("/shares?all_projects=true", None), ("/shares?marker={share}", None)],
    ("GET", "/shares/{id}"): [("/shares/{share}", None)],
    ("POST", "/shares/{id}/accept"): [("/shares/{share}/accept", None)],
    ("POST", "/shares/{id}/revoke"): [("/shares/{share}/revoke?dry_run=true", None)],
    ("GET", "/server-providers"): [("/server-providers", None), ("/server-providers?all_projects=true", None)],
    ("GET", "/server-providers/{server_id}"): [("/server-providers/{server}", None)],
    ("PUT", "/server-providers/{server_id}"): [("/server-providers/{server}", {"server_provider": {"resources": {"CUSTOM_MINE": 1}}})],
    ("DELETE", "/server-providers/{server_id}"): [("/server-providers/{server}", None), ("/server-providers/{server}?force=true", None)],
    ("GET", "/server-providers/{server_id}/slices"): [("/server-providers/{server}/slices", None)],
    ("PATCH", "/server-providers/{server_id}/slices/{id}"): [("/server-providers/{server}/slices/{claim}", {"slice": {"status": "failed"}})],
    ("GET", "/waitlist"): [("/waitlist", None), ("/waitlist?all_projects=true", None)],
    ("GET", "/waitlist/{id}"): [("/waitlist/{entry}", None)],
    ("DELETE", "/waitlist/{id}"): [("/waitlist/{entry}?dry_run=true", None)],
    ("GET", "/quotas"): [("/quotas", None), ("/quotas?all_projects=true", None)],
    ("GET", "/quotas/{project_id}"): [("/quotas/{project}", None)],
    ("PATCH", "/quotas/{project_id}"): [("/quotas/{project}", {"quota": {"limits": {}}})],
    ("DELETE", "/quotas/{project_id}"): [("/quotas/{project}", None)],
    ("GET", "/request-mix"): [("/request-mix", None)],
    ("PUT", "/request-mix"): [("/request-mix", {"request_mix": {"shapes": [{"resources": {"VCPU": 1}}]}})],
    ("DELETE", "/request-mix"): [("/request-mix", None)],
    ("GET", "/offers"): [("/offers", None), ("/offers?all_projects=true", None), ("/offers?over=true", None)],
    ("POST", "/offers"): [
        ("/offers", {"offer_request": {"duration": "PT9H", "earliest": MONDAY["start"], "latest_start": "2026-12-07T09:00:00Z", **amount(4, 16)}}),
        ("/offers?dry_run=true", {"offer_request": {"duration": "PT4H", "earliest": "2026-12-09T07:00:00Z", "latest_start": "2026-12-10T00:00:00Z", **amount(4, 12)}}),
        ("/offers", {"offer_request": {"duration": "PT9H", "name": "o", "max_offers": 2, **amount(2, 16)}}),
        ("/offers", {"offer_request": {"duration": "PT9H", "ensemble_id": "{ensemble}"}}),
    ],
    ("GET", "/offers/{id}"): [("/offers/{offer}", None)],
    ("DELETE", "/offers/{id}"): [("/offers/{offer}?dry_run=true", None)],
    ("POST", "/offers/{id}/accept"): [("/offers/{offer}/accept?dry_run=true", {"lease": {"name": "accepted"}})],
    ("GET", "/events"): [("/events?limit=1000", None), ("/events?all_projects=true", None), ("/events?project_id={project}", None), ("/events?subject={lease}", None)],
    ("GET", "/subscriptions"): [("/subscriptions", None), ("/subscriptions?all_projects=true", None)],
    ("POST", "/subscriptions"): [("/subscriptions", {"subscription": {"url": "http://127.0.0.1:9/x", "events": ["lease.*"], "lease_id": "{lease}"}}), ("/subscriptions", {"subscription": {"url": "http://127.0.0.1:9/x", "events": ["capacity.threshold"], "flavor": "small", "below": 3, "zone": PLACES[0]}})],
    ("GET", "/subscriptions/{id}"): [("/subscriptions/{subscription}", None)],
    ("DELETE", "/subscriptions/{id}"): [("/subscriptions/{subscription}?dry_run=true", None)],
    ("GET", "/subscriptions/{id}/dead-letters"): [("/subscriptions/{subscription}/dead-letters", None)],
    ("POST", "/subscriptions/{id}/resend"): [("/subscriptions/{subscription}/resend", {"resend": {}})],
    ("POST", "/explanations"): [
        ("/explanations", {"explanation": {"members": [role("web", 4, 16)]}}),
        ("/explanations", {"explanation": {"members": [role("web", 90, 16)]}}),
        *(("/explanations", {"explanation": {"members": [one]}}) for one in MISSPELT),
        *(("/explanations", {"explanation": {"members": [role("web", 4, 16)], "policies": [{"members": ["*"], **_fence(name)}]}}) for name in GUESSES),
    ],
    ("GET", "/explanations"): [
        *(("/explanations" + query, None) for query in ("", "?limit=1", "?stage=time", "?ensemble={ensemble}", "?marker={explanation}", "?project_id={project}", "?all_projects=true")),
    ],
    ("GET", "/explanations/{id}"): [("/explanations/{explanation}", None), ("/explanations/{explanation}?instance=true", None)],
    ("POST", "/hot"): [("/hot", {"hot": {"template": HOT}}), ("/hot", {"hot": {"template": HOT, "ensemble_id": "{ensemble}"}})],
    ("GET", "/stacks/{id}"): [("/stacks/{ensemble}", None)],
    ("PUT", "/stacks/{id}"): [("/stacks/{ensemble}", {"stack": {"name": "s", "template": HOT}}), ("/stacks/5a5a5a5a-0000-4000-8000-000000000001", {"stack": {"name": "s", "template": HOT}})],
    ("DELETE", "/stacks/{id}"): [("/stacks/{ensemble}?dry_run=true", None)],
    ("GET", "/templates"): [("/templates", None), ("/templates?all_projects=true", None)],
    ("POST", "/templates"): [("/templates", {"template": {"name": "t2", "source": SOURCE}})],
    ("GET", "/templates/{id}"): [("/templates/{template}", None)],
    ("DELETE", "/templates/{id}"): [("/templates/{template}?dry_run=true", None)],
    ("POST", "/templates/{id}/versions"): [("/templates/{template}/versions", {"template": {"source": SOURCE}})],
    ("POST", "/templates/{id}/instances"): [("/templates/{template}/instances", {"instance": {}})],
    ("GET", "/flavors"): [("/flavors", None)],
    ("POST", "/flavors"): [("/flavors", {"flavor": {"name": "f", "resources": {"VCPU": 1}}})],
    ("POST", "/flavors/load"): [("/flavors/load", {"flavors": []})],
    ("GET", "/flavors/{name}"): [("/flavors/small", None)],
    ("DELETE", "/flavors/{name}"): [("/flavors/small", None)],
    ("GET", "/capacity"): [("/capacity?flavor=small&to=2026-12-20T00:00:00Z", None), ("/capacity?flavor=small&by=zone", None), ("/capacity?from=2026-12-09T00:00:00Z&to=2026-12-10T00:00:00Z&step=PT1M&flavor=small", None), (f"/capacity?required={NEAR[0]}", None), (f"/capacity?resources={NEAR[1]}:1", None), *((f"/capacity?flavor=small&by={level}", None) for level in ("rack", "host", "room")), *((f"/capacity?flavor=small&zone={name}", None) for name in GUESSES)],
    ("POST", "/capacity/fit"): [("/capacity/fit", {"fit": {"flavor": "small"}}), ("/capacity/fit", {"fit": {"ensemble_id": "{ensemble}"}}), ("/capacity/fit", {"fit": {"template": {"name": "{template}"}}}), ("/capacity/fit", {"fit": {"flavor": "small", "window": MONDAY}})],
    ("GET", "/capacity/windows"): [("/capacity/windows?flavor=small&count=20&duration=PT2H", None), ("/capacity/windows?flavor=small&count=20&duration=PT2H&from=2026-12-09T00:00:00Z", None)],
    ("GET", "/capacity/planned"): [("/capacity/planned", None)],
    ("POST", "/capacity/planned"): [("/capacity/planned", {"window": {"kind": "maintenance", "hosts": [HOSTS[0]]}})],
    ("GET", "/capacity/planned/{id}"): [("/capacity/planned/{lease}", None)],
    ("DELETE", "/capacity/planned/{id}"): [("/capacity/planned/{lease}", None)],
    ("GET", "/topology/domains"): [("/topology/domains", None)],
    ("PUT", "/topology/domains"): [("/topology/domains", {"topology": {"levels": {}, "domains": [], "attachments": []}})],
    ("GET", "/fleet"): [("/fleet", None)],
    ("GET", "/fleet/map"): [("/fleet/map", None), ("/fleet/map?flavor=small&ensemble={ensemble}", None)],
    ("POST", "/fleet"): [("/fleet", {"fleet": {}})],
    ("GET", "/hosts"): [("/hosts", None)],
    ("GET", "/survivability"): [("/survivability", None)],
    ("POST", "/simulations"): [("/simulations", {"simulation": {"changes": [{"lose": "h1"}]}})],
    ("GET", "/hosts/{name}"): [("/hosts/h1", None)],
    ("POST", "/hosts/{name}/close"): [("/hosts/h1/close", {"close": {"reason": "mine"}})],
    ("POST", "/hosts/{name}/open"): [("/hosts/h1/open", None)],
    ("PUT", "/hosts/{name}/service"): [("/hosts/h1/service", {"service": {"status": "enabled", "state": "down"}})],
    ("GET", "/hosts/{name}/moves/{server_id}"): [("/hosts/h1/moves/{lease}", None)],
    ("GET", "/plans"): [("/plans", None), ("/plans?state=running", None)],
    ("POST", "/plans"): [("/plans", {"plan": {"kind": "drain", "hosts": [HOSTS[0]]}}), ("/plans", {"plan": {"kind": "repair", "ensemble": "{ensemble}"}})],
    ("GET", "/plans/{id}"): [("/plans/{lease}", None)],
    ("POST", "/plans/{id}/apply"): [("/plans/{lease}/apply", None)],
    ("POST", "/plans/{id}/pause"): [("/plans/{lease}/pause", None)],
    ("POST", "/plans/{id}/cancel"): [("/plans/{lease}/cancel", None)],
    ("DELETE", "/plans/{id}"): [("/plans/{lease}", None)],
    ("GET", "/bookings"): [("/bookings", None)],
}

LEASES: Final[dict[tuple[str, str], list[Request]]] = {
    ("GET", "/leases"): [("/leases", None), ("/leases?name=zqlease", None)],
    ("POST", "/leases"): [
        ("/leases", blazar("mine", 16, 4)),
        ("/leases", blazar("mine", 1, 60)),
        ("/leases", {**blazar("mine", 1), "reservations": [WHOLE]}),
        ("/leases", {**blazar("mine", 1), "reservations": [WHOLE | {"resource_properties": '["==", "$gpu", "a100"]'}]}),
        ("/leases", {**blazar("mine", 1), "reservations": [WHOLE | {"min": 1, "max": 1}]}),
        *(("/leases", blazar("mine", 1, 1, resource_properties=f'["==", "${key}", "{value}"]')) for key, value in (("hypervisor_hostname", HOSTS[0]), ("id", "1"), ("owner", PRIVATE), ("availability_zone", "az1"), ("gpu", "a100"))),
        ("/leases", {**blazar("mine", 1), "reservations": [{"resource_type": "virtual:floatingip", "amount": 1, "network_id": "operations", "required_floatingips": ["172.24.4.7"]}]}),
    ],
    ("GET", "/leases/{id}"): [("/leases/{reserved}", None), ("/leases/{lease}", None)],
    ("PUT", "/leases/{id}"): [("/leases/{reserved}", {"end_date": "2026-12-15 13:00"}), ("/leases/{lease}", {"name": "renamed"})],
    ("DELETE", "/leases/{id}"): [("/leases/{explanation}", None)],
    ("GET", "/os-hosts"): [("/os-hosts", None)],
    ("POST", "/os-hosts"): [("/os-hosts", {"name": HOSTS[3]})],
    ("GET", "/os-hosts/allocations"): [("/os-hosts/allocations", None)],
    ("GET", "/os-hosts/properties"): [("/os-hosts/properties?detail=true&all=true", None)],
    ("PATCH", "/os-hosts/properties/{name}"): [("/os-hosts/properties/owner", {"private": False})],
    ("GET", "/os-hosts/{id}"): [("/os-hosts/1", None)],
    ("PUT", "/os-hosts/{id}"): [("/os-hosts/1", {"gpu": "none"})],
    ("DELETE", "/os-hosts/{id}"): [("/os-hosts/1", None)],
    ("GET", "/os-hosts/{id}/allocation"): [("/os-hosts/1/allocation", None)],
    ("GET", "/floatingips"): [("/floatingips", None)],
    ("POST", "/floatingips"): [("/floatingips", {"floating_network_id": "n", "floating_ip_address": "10.0.0.1"})],
    ("GET", "/floatingips/{id}"): [("/floatingips/{lease}", None)],
    ("DELETE", "/floatingips/{id}"): [("/floatingips/{lease}", None)],
}
GROUP: Final = {"server_group": {"name": "mine", "policies": ["affinity"]}}
COMPUTE: Final[dict[tuple[str, str], list[Request]]] = {
    ("GET", "/os-server-groups"): [("/os-server-groups", None), ("/os-server-groups?all_projects=1", None)],
    ("POST", "/os-server-groups"): [("/os-server-groups", GROUP)],
    ("GET", "/os-server-groups/{id}"): [("/os-server-groups/{ensemble}", None)],
    ("DELETE", "/os-server-groups/{id}"): [("/os-server-groups/{explanation}", None)],
}
# fmt: on


def placement_request(method: str, path: str) -> Request:
    """Placement's routes are an operator's, whatever is asked: one request for each."""
    for name, value in (
        ("{uuid}", "{provider}"),
        ("{consumer_uuid}", "{server}"),
        ("{resource_class}", "VCPU"),
        ("{name}", "CUSTOM_X"),
    ):
        path = path.replace(name, value)
    if path == "/usages":
        path += "?project_id={project}"
    if path == "/allocation_candidates":
        path += "?resources=VCPU:1"
    return path, {} if method in {"POST", "PUT"} else None
