"""Our request groups for generated flavors, images and ports are those of Nova itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import os_resource_classes
import os_traits
import pytest
from tests.conformance.nova_requests.cases import ALIASES, cases
from tests.conformance.nova_requests.recording import ask_nova, recorded

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.pci_devices import StandardNames, read_aliases
from moorage.domain.nova.server_request import NovaRules, translate
from moorage.domain.nova_servers import FlavorSize, NovaServer
from moorage.domain.port_requests import read_port_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.conformance.nova_requests.recording import Answer, Case

    from moorage.domain.request_groups import Group

STANDARD = StandardNames(
    frozenset(os_resource_classes.STANDARDS), frozenset(os_traits.get_traits())
)


def our_answer(case: Case) -> Answer:
    """The request of one case in the form of Nova's answers."""
    aliases = read_aliases(map(json.dumps, ALIASES), STANDARD)
    rules = NovaRules(aliases, **case["rules"], standard=STANDARD)
    ports = [
        read_port_request(one, f"port-{number}", f"ports[{number}]")
        for number, one in enumerate(case["ports"])
    ]
    of_ports = tuple(group for port in ports for group in port.groups)
    server = NovaServer(
        FlavorSize(**case["size"]),
        case["extra_specs"],
        case["image_properties"],
        case["from_volume"],
    )
    try:
        found = translate(server, rules, others=of_ports)
    except InvalidDescription as error:
        return {"refused": error.message}
    own = {
        "suffix": "",
        "resources": dict(found.resources),
        "required": sorted(frozenset().union(*found.required)),
        "forbidden": sorted(found.forbidden),
    }
    groups = [*found.groups, *of_ports]
    policy = case["extra_specs"].get("group_policy")
    return {
        "groups": sorted(
            [own] * any(own.values()) + [_plain(one) for one in groups],
            key=lambda group: group["suffix"],
        ),
        "group_policy": policy or ("none" if len(groups) > 1 else None),
        "root_required": sorted(found.root_required),
        "same_subtree": sorted(sorted(names) for port in ports for names in port.same_subtree),
        "numa": bool(set(found.host_checks) & NUMA_KEYS),
    }


NUMA_KEYS = frozenset(
    {
        *("hw:numa_nodes", "hw_numa_nodes", "hw:mem_page_size", "hw:pmem"),
        *("hw:cpu_policy", "hw_cpu_policy", "resources:PCPU"),
    }
)


def _plain(group: Group) -> dict[str, Any]:
    return {
        "suffix": group.name,
        "resources": dict(group.resources),
        "required": sorted(trait for some in group.required for trait in some),
        "forbidden": sorted(group.forbidden),
    }


def as_ours(case: dict[str, Any], answer: Case) -> Answer:
    """Nova's answer with our names of ports' groups."""
    if "refused" in answer:
        return answer
    names = {
        group["id"]: f"port-{number}" + (f"-{n}" if len(port["request_groups"]) > 1 else "")
        for number, port in enumerate(case["ports"])
        for n, group in enumerate(port["request_groups"])
    }
    groups = [
        {**one, "suffix": names.get(one["suffix"], one["suffix"])} for one in answer["groups"]
    ]
    subtrees = [sorted(names[one] for one in some) for some in answer["same_subtree"]]
    return {
        **answer,
        "groups": sorted(groups, key=lambda group: group["suffix"]),
        "same_subtree": sorted(subtrees),
    }


def placement_refuses(answer: Answer) -> bool:
    """Whether Placement refuses the query that Nova would send."""
    groups = answer["groups"]
    suffixed = [one for one in groups if one["suffix"]]
    if not groups or (len(suffixed) > 1 and answer["group_policy"] is None):
        return True
    return any(
        not one["resources"] or set(one["required"]) & set(one["forbidden"]) for one in groups
    )


def disagreement(case: Case, answer: Answer) -> str | None:
    """How our request differs from Nova's; None: it does not."""
    ours, theirs = our_answer(case), as_ours(case, answer)
    if "refused" in theirs or placement_refuses(theirs):
        return None if "refused" in ours else f"Nova refuses: {theirs}\nwe ask {ours}"
    if ours != theirs:
        return f"Nova asks {json.dumps(theirs)}\nwe       {json.dumps(ours)}"
    return None


def refuted(pairs: Iterable[tuple[Case, Answer]]) -> list[str]:
    """The cases of which our request differs from Nova's, and how."""
    found = ((case, disagreement(case, answer)) for case, answer in pairs)
    return [f"{json.dumps(case)}\n{said}" for case, said in found if said is not None]


def test_the_record_has_enough_of_every_kind() -> None:
    pairs = recorded()
    asked = [answer for _, answer in pairs if "refused" not in answer]
    assert len(asked) >= 200
    assert len({answer["refused"] for _, answer in pairs if "refused" in answer}) >= 12
    assert sum(len(answer["groups"]) > 1 for answer in asked) >= 60
    assert sum(bool(answer["root_required"]) for answer in asked) >= 30
    assert sum(answer["numa"] for answer in asked) >= 50


def test_requests_are_those_that_nova_recorded() -> None:
    wrong = refuted(recorded())
    assert not wrong, f"{len(wrong)} differ, the first:\n" + wrong[0]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(5))
def test_requests_are_those_that_nova_makes_now(seed: int) -> None:
    asked = cases(1_000 + seed, 1_000)
    wrong = refuted(zip(asked, ask_nova(asked), strict=True))
    assert not wrong, f"{len(wrong)} differ, the first:\n" + wrong[0]


@pytest.mark.nightly
def test_the_record_is_what_nova_answers_now() -> None:
    pairs = recorded()
    assert ask_nova([case for case, _ in pairs]) == [answer for _, answer in pairs]
