"""Decisions over the API beside an exhaustive search that reads policies from their documentation.

What is granted is valid, what is refused has no placement, each relaxation is granted as it is
told, and so are further members up to `max_additional`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.contract.decisions.every_placement import (
    Body,
    Fleet,
    FleetHost,
    Member,
    PlacementQuestion,
)
from tests.corpus.world import opened

AGGREGATES = ("11111111-1111-4111-8111-0000000000a1", "11111111-1111-4111-8111-0000000000a2")
TRAITS = ("CUSTOM_A", "CUSTOM_B")
PROJECT = "project-a"
VERSION = {"OpenStack-API-Version": "placement 1.38"}
MOST = 7
"""Members of an ensemble."""


class Cloud:
    """A service over a random fleet, and the fleet as it should be."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.racks = {
            f"r{i}": f"z{i % 2}" if dice.random() < 0.8 else None for i in range(dice.randint(1, 3))
        }
        self.hosts: Fleet = {f"h{i}": self._host() for i in range(dice.randint(2, 4))}
        self.hosts["h0"] = replace(self.hosts["h0"], aggregates=frozenset(AGGREGATES))

    def _host(self) -> FleetHost:
        dice, domains = self.dice, {}
        if dice.random() < 0.85:
            domains["rack"] = dice.choice(sorted(self.racks))
            domains |= {"zone": zone} if (zone := self.racks[domains["rack"]]) else {}
        return FleetHost(
            {"VCPU": dice.choice((2, 4, 6)), "MEMORY_MB": dice.choice((4, 8))},
            frozenset(one for one in TRAITS if dice.random() < 0.5),
            frozenset(one for one in AGGREGATES if dice.random() < 0.5),
            domains,
        )

    @property
    def file(self) -> str:
        """The fleet as a file."""
        zones = [{"name": one, "level": "zone"} for one in ("z0", "z1")]
        racks = [
            {"name": name, "level": "rack", **({"parent": zone} if zone else {})}
            for name, zone in self.racks.items()
        ]
        hosts = [
            {
                "name": name,
                "inventories": dict(one.capacity),
                "traits": sorted(one.traits),
                "aggregates": sorted(one.aggregates),
                **({"place": {"location": one.domains["rack"]}} if one.domains else {}),
            }
            for name, one in self.hosts.items()
        ]
        tree = {"levels": ["zone", "rack"], "domains": [*zones, *racks]}
        return json.dumps({"fleet": "random", "topology": {"location": tree}, "hosts": hosts})

    def serve(self, client: httpx.Client) -> None:
        """Use this service, and put consumers of other projects on some hosts."""
        self.client = client
        for trait in TRAITS:
            self.ask("PUT", f"/placement/traits/{trait}")
        answer = self.ask("GET", "/placement/resource_providers")[1]
        uuids = {one["name"]: one["uuid"] for one in answer["resource_providers"]}
        for number, (name, host) in enumerate(self.hosts.items()):
            if self.dice.random() < 0.35:
                project = self.dice.choice((PROJECT, "project-b"))
                body = {
                    "allocations": {uuids[name]: {"resources": {"VCPU": 1}}},
                    "consumer_generation": None,
                    "consumer_type": "INSTANCE",
                    "project_id": project,
                    "user_id": "u",
                }
                consumer = f"00000000-0000-4000-8000-{number:012x}"
                status, _ = self.ask("PUT", f"/placement/allocations/{consumer}", body)
                assert status == 204
                host.used["VCPU"] += 1
                host.projects.append(project)

    def ask(self, method: str, path: str, body: Body | None = None) -> tuple[int, Any]:
        """As an operator of the project: names and numbers are exact."""
        headers = {"X-Auth-Token": f"ann:{PROJECT}", "X-Roles": "admin", **VERSION}
        headers |= {"If-Match": "*"} if method == "PATCH" else {}
        answer = self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 500, (method, path, answer.text)
        return answer.status_code, answer.json() if answer.content else None

    def places(self, ensemble: str) -> dict[Member, str]:
        """The host of each member."""
        members = self.ask("GET", f"/v1/ensembles/{ensemble}/members")[1]["members"]
        named = {one["name"].removesuffix("]").partition("["): one["host"] for one in members}
        return {(role, int(index)): host for (role, _, index), host in named.items()}

    def role(self, name: str) -> Body:
        """A random role."""
        dice, odd = self.dice, self.dice.random()
        return {
            "name": name,
            "count": dice.randint(1, 3),
            "resources": {"VCPU": dice.choice((1, 1, 2, 3))}
            | ({"MEMORY_MB": dice.choice((1, 2, 4))} if dice.random() < 0.3 else {}),
            "tags": ["t"] if dice.random() < 0.3 else [],
            "required": ["CUSTOM_A"] if odd < 0.1 else [list(TRAITS)] if odd < 0.15 else [],
            "forbidden": ["CUSTOM_A"] if 0.15 < odd < 0.22 else [],
            "member_of": [AGGREGATES[0]] if 0.22 < odd < 0.28 else [],
        }

    def policy(self, name: str, roles: list[Body]) -> Body:
        """A random policy over some of the roles."""
        dice = self.dice
        words = [*(one["name"] for one in roles), "*", f"{roles[0]['name']}[0]"]
        chosen = dice.sample(words, k=min(len(words), dice.choice((1, 1, 2))))
        key = "zip" if len(chosen) > 1 and dice.random() < 0.45 else "members"
        level = {"level": dice.choice(("host", "rack", "zone"))}
        first, *others = [one["name"] for one in roles]
        named = dice.sample([*sorted(self.racks)[:1], "z0", "h0", *AGGREGATES], k=2)
        by_trait = {"traits": dice.sample(TRAITS, k=dice.randint(1, 2))}
        kinds: list[Body] = [
            {"type": "affinity", **level},
            {"type": "anti-affinity", "max_per_domain": dice.choice((1, 1, 2)), **level},
            {"type": "spread", "min_domains": dice.randint(1, 3), **level},
            {"type": "spread", "max_skew": dice.randint(0, 2), **level},
            {"type": "spread", "max_skew": 0, "fenced_domains": "count", **level},
            {
                "type": "survive",
                "keep": dice.randint(1, 2),
                "lose": dice.choice((1, 1, 2)),
                **level,
            },
            {"type": "exclusive", "against": dice.choice(("others", "other_projects")), **level},
            {"type": dice.choice(("fence", "ban")), "domains": named},
            {"type": dice.choice(("fence", "ban")), **by_trait},
            {"type": "proximity", "max_distance": dice.randint(0, 2)},
            {"type": "separation", "min_distance": dice.randint(1, 3)},
            {"type": "separation", "between": "roles", **level},
        ]
        found = {"name": name, key: chosen, **dice.choice(kinds)}
        if others and dice.random() < 0.15:
            kind = dice.choice(("proximity", "separation"))
            return {"name": name, "type": kind, "between": [[first], others], **level}
        return found


def changed(change: Body, roles: list[Body], policies: list[Body]) -> tuple[list[Body], list[Body]]:
    """The roles and policies with a relaxation applied as it is told."""
    roles, policies, change = deepcopy(roles), deepcopy(policies), dict(change)
    name = change.pop("policy", None) or change["member"]
    (one,) = (each for each in (*roles, *policies) if each["name"] == name)
    change.pop("member", None)
    ((field, (_, after)),) = change.items()
    lists = {"required", "forbidden", "member_of"}
    one[field] = (
        [text.split("|") if "|" in text else text for text in after] if (field in lists) else after
    )
    return roles, policies


def stories(seeds: range) -> Iterator[Cloud]:
    for seed in seeds:
        cloud = Cloud(random.Random(seed))
        with opened(cloud.file, {}) as world:
            transport = httpx.WSGITransport(world.app)
            with httpx.Client(transport=transport, base_url="http://moorage.invalid") as client:
                cloud.serve(client)
                yield cloud


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(one, marks=pytest.mark.nightly) for one in range(30, 600, 30))]
)
def test_decisions_agree_with_every_placement(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed, cloud in enumerate(stories(range(first, first + 30)), start=first):
        dice = cloud.dice
        roles = [cloud.role(name) for name in "abc"[: dice.choice((1, 2, 2, 3))]]
        policies = [cloud.policy(f"p{i}", roles) for i in range(dice.choice((1, 1, 2, 3)))]
        body = {"name": "e", "members": roles, "policies": policies}
        decide = {"hold": "PT1H", "max_additional": [one["name"] for one in roles]}
        status, answer = cloud.ask(
            "POST", "/v1/ensembles", {"ensemble": {**body, "decide": decide}}
        )
        asked = PlacementQuestion(cloud.hosts, PROJECT, roles, policies)
        told = (seed, roles, policies, answer)
        seen[f"create {status}"] += 1
        if status != 201:
            code = answer["errors"][0]["code"]
            assert code in {"ensemble.infeasible", "ensemble.contradiction"}, told
            assert not asked.is_possible, told
        if status == 409:
            for one in answer["errors"][0]["explanation"]["relaxations"]:
                if one["result"] == "fits now":
                    weaker = dict(
                        zip(
                            ("members", "policies"),
                            changed(one["change"], roles, policies),
                            strict=True,
                        )
                    )
                    again = {"ensemble": {"name": "e", **weaker, "decide": {"hold": "PT1H"}}}
                    status, _ = cloud.ask("POST", "/v1/ensembles?dry_run=true", again)
                    assert status < 300, (one, told)
                    seen["relaxation"] += 1
        if status == 201 and "ensemble" in answer:
            _grows(cloud, answer, roles, policies, seen, told)
    assert min(seen["create 201"], seen["create 409"], seen["relaxation"], seen["extend 200"]) > 2


def _grows(
    cloud: Cloud,
    answer: Any,
    roles: list[Body],
    policies: list[Body],
    seen: Counter[str],
    told: object,
) -> None:
    """What stands is valid, and as many more members come as are told to."""
    ensemble = answer["ensemble"]["id"]
    places = cloud.places(ensemble)
    asked = PlacementQuestion(cloud.hosts, PROJECT, roles, policies)
    assert not asked.broken(places), told
    for role in roles:
        for name in (one for member, one in places.items() if member[0] == role["name"]):
            cloud.hosts[name].used.update(role["resources"])
    for host in cloud.hosts.values():
        assert all(host.used[key] <= host.capacity[key] for key in host.used), told
    for role in roles:
        more = answer["decision"]["max_additional"][role["name"]]
        for count in range(1, 4):
            if len(places) + count > MOST:
                break
            coming = {(role["name"], role["count"] + i) for i in range(count)}
            grown = PlacementQuestion(cloud.hosts, PROJECT, roles, policies, places, coming)
            extend = {"extend": {"role": role["name"], "count": count}}
            path = f"/v1/ensembles/{ensemble}/extend?dry_run=true"
            status, _ = cloud.ask("POST", path, extend)
            seen[f"extend {status}"] += 1
            assert (status == 200) is grown.is_possible, (role["name"], count, told)
            if count <= more["count"] and count % more["step"] == 0:
                assert status == 200, (more, told)
            if count > more["count"] and more["exact"]:
                assert status != 200, (more, told)
