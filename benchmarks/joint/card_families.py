"""Families of requests whose members take cards, each with an answer that is known."""

from __future__ import annotations

import zlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from benchmarks.joint.card_fleet import CARD, MODELS, WHOLE
from benchmarks.joint.draft import Draft, NotPlantable
from benchmarks.joint.fleet import MEMORY, VCPU

from moorage.domain.ensembles import Role
from moorage.domain.request_groups import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.joint.card_fleet import CardFleet
    from benchmarks.joint.draft import Instance
    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName

    Ints: TypeAlias = NDArray[np.int64]

_TRIES: Final = 5


class CardDraft(Draft):
    """Members are put on hosts and cards one by one, within what is free there."""

    def __init__(self, cards: CardFleet, dice: np.random.Generator) -> None:
        super().__init__(cards.hosts, dice)
        self.cards = cards
        self.left = cards.free.copy()
        """[C] what is free of each card now."""
        self.given: dict[MemberName, tuple[int, ...]] = {}
        """Member -> the card of each of its groups."""

    def with_cards(
        self, name: str, cores: int, amount: int, *, groups: int = 1, model: int | None = None
    ) -> str:
        """Add a role whose members take so much of a card for each group; 2 GiB per core."""
        wanted = () if model is None else (frozenset({MODELS[model]}),)
        self._roles[name] = Role(
            name,
            MappingProxyType({MEMORY: 2 * cores, VCPU: cores}),
            groups=tuple(
                Group(f"gpu{n}", MappingProxyType({CARD: amount}), required=wanted)
                for n in range(groups)
            ),
        )
        self._counts[name] = 0
        return name

    def slots(self, role: str) -> Ints:
        """[H] how many members of the role alone fit on each host now."""
        found, groups = super().slots(role), self._roles[role].groups
        if not groups:
            return found
        parts = self.left // groups[0].resources[CARD]
        on_cards = np.bincount(self.cards.host, parts, len(found)).astype(np.int64)
        found = np.minimum(found, on_cards // len(groups))
        return np.where(self._of_model(groups[0]), found, 0)

    def _of_model(self, group: Group) -> NDArray[np.bool_]:
        models = {MODELS.index(trait) for any_of in group.required for trait in any_of}
        every = np.ones(len(self.fleet.names), dtype=np.bool_)
        return np.isin(self.cards.model, list(models)) if models else every

    def put(self, role: str, row: int) -> MemberName:
        """Put the role's next member on a host, each group on the card with least left."""
        member, given = super().put(role, row), list[int]()
        for group in self._roles[role].groups:
            amount = group.resources[CARD]
            fitting = [card for card in self.cards.cards(row) if self.left[card] >= amount]
            card = min(fitting, key=lambda one: (int(self.left[one]), one))
            self.left[card] -= amount
            given.append(card)
        self.given[member] = tuple(given)
        return member


def shares(draft: CardDraft, members: int, seed: int) -> Instance:
    """Each member takes a quarter of any card; few on a host, even over zones."""
    infer = draft.with_cards("infer", 4, WHOLE // 4)
    draft.plant(infer, members, most={"host": 2}, even="zone")
    limit = draft.fullest(infer, "host")
    draft.policy("infer-apart", "anti-affinity", infer, max_per_domain=limit)
    draft.policy("infer-zones", "spread", infer, level="zone", max_skew=1)
    return draft.instance("shares", seed)


def pairs(draft: CardDraft, members: int, seed: int) -> Instance:
    """Half the members take two whole cards of one model each, the others a part of any card."""
    count = -(-members // 2)
    rooms = [
        int(draft.slots(draft.with_cards("any", 8, WHOLE, groups=2, model=number)).sum())
        for number in range(len(MODELS))
    ]
    train = draft.with_cards("train", 8, WHOLE, groups=2, model=int(np.argmax(rooms)))
    racks = max(1, -(-3 * count // len(draft.fleet.called["rack"])))
    draft.plant(train, count, most={"rack": racks})
    draft.policy(
        "train-racks",
        "anti-affinity",
        train,
        level="rack",
        max_per_domain=draft.fullest(train, "rack"),
    )
    if members > count:
        infer = draft.with_cards("infer", 2, WHOLE // 4)
        draft.plant(infer, members - count, most={"host": 1})
        draft.policy("infer-apart", "anti-affinity", infer)
    return draft.instance("pairs", seed)


def last_cards(draft: CardDraft, members: int, seed: int) -> Instance:
    """Members that take every whole card that is left on the hosts they are fenced to."""
    whole = draft.with_cards("whole", 1, WHOLE)
    slots, chosen, left = draft.slots(whole), list[int](), members
    on_cards = np.bincount(draft.cards.host, draft.left // WHOLE, len(slots))
    for row in draft.dice.permutation(np.flatnonzero(slots > 0)).tolist():
        if slots[row] == on_cards[row] and slots[row] <= left:
            chosen.append(row)
            left -= int(slots[row])
    if left:
        raise NotPlantable
    for row in chosen:
        for _ in range(int(slots[row])):
            draft.put(whole, row)
    draft.policy("pool", "fence", "*", domains=[draft.fleet.names[row] for row in chosen])
    return draft.instance("last-cards", seed)


CARD_FAMILIES: Final[Mapping[str, Callable[[CardDraft, int, int], Instance]]] = {
    "shares": shares,
    "pairs": pairs,
    "last-cards": last_cards,
}
"""Families of requests with cards; all can be placed."""


def draft_with_cards(
    family: str, cards: CardFleet, members: int, seed: int
) -> tuple[Instance, CardDraft]:
    """An instance of a family on a fleet, and what it was made with; the same for the same seed.

    Raises:
        NotPlantable: the fleet is too small or too full for it.
    """
    for attempt in range(_TRIES):
        dice = np.random.default_rng([seed, zlib.crc32(family.encode()), members, attempt])
        draft = CardDraft(cards, dice)
        try:
            return CARD_FAMILIES[family](draft, members, seed), draft
        except NotPlantable:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")
