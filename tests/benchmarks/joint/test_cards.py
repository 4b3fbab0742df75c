"""Requests with cards: what is planted is true, and a wrong answer is seen."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from benchmarks.joint import cards, report
from benchmarks.joint.card_families import CARD_FAMILIES, CardDraft, draft_with_cards
from benchmarks.joint.card_fleet import (
    CARD,
    CardFleet,
    after_a_card_commit,
    make_card_fleet,
    snapshot_of_cards,
)
from benchmarks.joint.checker import faults
from benchmarks.joint.draft import Instance
from benchmarks.joint.families import SETS

from moorage.domain.member_names import MemberName
from moorage.domain.placement import Place

HOSTS = 200


@pytest.fixture(scope="module")
def fleet() -> CardFleet:
    return make_card_fleet(HOSTS, load=0.6, seed=3)


def planted_places(instance: Instance, draft: CardDraft) -> dict[MemberName, Place]:
    fleet, found = draft.cards, {}
    assert instance.planted is not None
    for member, row in instance.planted.items():
        role, host = instance.request.role_of(member), draft.fleet.names[row]
        taken: dict[str, dict[str, int]] = {host: dict(role.resources)}
        groups = {}
        for group, card in zip(role.groups, draft.given[member], strict=True):
            mine = taken.setdefault(fleet.names[card], {CARD: 0})
            mine[CARD] += group.resources[CARD]
            groups[group.name] = fleet.names[card]
        found[member] = Place(host, MappingProxyType(taken), groups=MappingProxyType(groups))
    return found


@pytest.mark.parametrize("members", [1, 12])
@pytest.mark.parametrize("family", CARD_FAMILIES)
@pytest.mark.parametrize("number", range(3))
def test_a_planted_answer_holds(fleet: CardFleet, family: str, members: int, number: int) -> None:
    instance, draft = draft_with_cards(family, fleet, members, SETS["tune"] + number)
    assert instance.planted is not None
    assert len(instance.request.members) == members
    assert faults(fleet.hosts, instance.request, instance.planted) == []
    given = planted_places(instance, draft)
    assert list(cards.card_faults(fleet, instance.request, instance.planted, given)) == []
    again, _ = draft_with_cards(family, fleet, members, SETS["tune"] + number)
    assert again.planted == instance.planted
    assert again.request == instance.request


def test_wrong_cards_are_seen(fleet: CardFleet) -> None:
    instance, draft = draft_with_cards("pairs", fleet, 2, SETS["tune"])
    assert instance.planted is not None
    given = planted_places(instance, draft)
    member = MemberName("train", 0)
    row = instance.planted[member]
    model = int(fleet.model[row])

    def seen(changed: CardFleet, place: Place) -> str:
        planted = instance.planted or {}
        found = cards.card_faults(changed, instance.request, planted, {**given, member: place})
        return "; ".join(found)

    other = np.where(np.arange(HOSTS) == row, (model + 1) % 6, fleet.model)
    assert "gets a CUSTOM_GPU" in seen(replace(fleet, model=other), given[member])
    assert "gives 1000" in seen(replace(fleet, used=fleet.used + 1), given[member])
    strange = fleet.names[int(np.flatnonzero(fleet.host != row)[0])]
    moved = replace(given[member], groups=MappingProxyType({"gpu0": strange, "gpu1": strange}))
    assert "no card of its host" in seen(fleet, moved)
    assert "is given" in seen(fleet, replace(given[member], allocations=MappingProxyType({})))


def test_the_snapshot_says_what_the_columns_say(fleet: CardFleet) -> None:
    snapshot = snapshot_of_cards(fleet)
    used = snapshot.classes[CARD].used
    assert sorted(used.tolist()) == sorted(fleet.used.tolist())
    changed, following = after_a_card_commit(fleet, snapshot, 1, avoid=())
    assert following.classes[CARD].used.sum() == used.sum() + 250
    assert changed.used.sum() == fleet.used.sum() + 250
    assert (changed.free >= 0).all()


def test_a_small_measurement_has_nothing_wrong(fleet: CardFleet) -> None:
    rows = list(cards.measure(len(fleet.hosts.names), 60, "tune", 1))
    assert [row["wrong"] for row in rows] == [[]] * len(rows)
    assert sum(row["undecided"] for row in rows) == 0
    machine = {"processor": "any", "cores": 2, "python": "3"}
    page = "\n".join(report.page({"devices": [row | {"machine": machine} for row in rows]}))
    assert "| 20 x 200 |" in page
