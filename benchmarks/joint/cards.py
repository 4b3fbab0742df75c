"""Measures and judges decisions whose members take cards."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from benchmarks.joint import engine
from benchmarks.joint.card_families import CARD_FAMILIES, draft_with_cards
from benchmarks.joint.card_fleet import (
    CARD,
    MODELS,
    after_a_card_commit,
    make_card_fleet,
    snapshot_of_cards,
)
from benchmarks.joint.cells import quantiles
from benchmarks.joint.checker import faults
from benchmarks.joint.draft import NotPlantable
from benchmarks.joint.families import SETS

from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.joint.card_fleet import CardFleet
    from benchmarks.joint.draft import Instance

    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Place
    from moorage.domain.requests import EnsembleRequest

MEMBERS: Final = (1, 20, 100)


def measure(hosts: int, load: int, which: str, instances: int) -> Iterator[dict[str, Any]]:
    """Every family at every number of members; `load` in percent. A commit precedes each."""
    cards = make_card_fleet(hosts, load=load / 100, seed=SETS[which] + hosts)
    snapshot, commits = snapshot_of_cards(cards), 0
    for members in MEMBERS:
        for family in CARD_FAMILIES:
            times: dict[str, list[float]] = {}
            wrong, undecided, planted, first = list[str](), 0, 0, True
            for number in range(instances):
                seed = SETS[which] + number
                try:
                    instance, _ = draft_with_cards(family, cards, members, seed)
                except NotPlantable:
                    continue
                planted, commits = planted + 1, commits + 1
                avoid = set((instance.planted or {}).values())
                if first:  # what is kept for these roles is made once
                    anew = snapshot.with_states(topology=snapshot.topology)
                    cold = engine.first_answer(anew, instance.request)
                    times["cold cpu of build"] = [cold.taken.cpu["build"]]
                    engine.first_answer(snapshot, instance.request)
                    first = False
                cards, snapshot = after_a_card_commit(cards, snapshot, commits, avoid)
                decided = engine.first_answer(snapshot, instance.request)
                for what, value in (
                    ("first", decided.seconds),
                    ("first cpu", decided.cpu_seconds),
                    ("cpu of build", decided.taken.cpu["build"]),
                ):
                    times.setdefault(what, []).append(value)
                undecided += decided.verdict is Verdict.UNKNOWN
                wrong += _wrong(cards, instance, decided)
            yield {
                "family": family,
                "members": members,
                "hosts": hosts,
                "providers": hosts + len(cards.host),
                "load": load,
                "set": which,
                "instances": planted,
                "undecided": undecided,
                "wrong": wrong,
                "found": {what: quantiles(values) for what, values in sorted(times.items())},
            }


def _wrong(cards: CardFleet, instance: Instance, decided: engine.Decided) -> Iterator[str]:
    if decided.verdict is Verdict.INFEASIBLE:
        yield f"{instance.seed}: refused, and there is an answer"
    if decided.hosts is None or decided.outcome.hosts is None:
        return
    rows = {member: cards.hosts.row_of[host] for member, host in decided.hosts.items()}
    found = faults(cards.hosts, instance.request, rows)
    given = places(decided.built, decided.outcome.hosts)
    for fault in [*found, *card_faults(cards, instance.request, rows, given)][:3]:
        yield f"{instance.seed}: {fault}"


def card_faults(
    cards: CardFleet,
    request: EnsembleRequest,
    rows: Mapping[MemberName, int],
    given: Mapping[MemberName, Place],
) -> Iterator[str]:
    """What is wrong with the cards that members get: whose they are, their model, how much."""
    taken: Counter[str] = Counter()
    for member in request.members:
        role, host, place = request.role_of(member), cards.hosts.names[rows[member]], given[member]
        mine: Counter[str] = Counter()
        for group in role.groups:
            card = place.groups.get(group.name, "")
            number = cards.card_of.get(card)
            if number is None or cards.hosts.names[cards.host[number]] != host:
                yield f"{member} gets no card of its host for {group.name}"
                continue
            model = MODELS[int(cards.model[cards.host[number]])]
            if not all(model in any_of for any_of in group.required):
                yield f"{member} gets a {model}"
            mine[card] += group.resources[CARD]
        told = {card: amounts[CARD] for card, amounts in place.allocations.items() if card != host}
        if told != mine or place.allocations.get(host, {}) != role.resources:
            yield f"{member} is given {dict(place.allocations)}"
        taken += mine
    for card, amount in taken.items():
        if amount > cards.free[cards.card_of[card]]:
            yield f"{card} gives {amount}"
