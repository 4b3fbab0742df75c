"""Nova's server groups as ensembles: what of an ensemble's policies Nova has a word for.

A server group is an ensemble whose policy holds for all of its members. Nova's four words are
affinity and anti-affinity of hosts, each required or preferred (`soft-`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.describe import NOVA_SHORTHAND, read_statement
from moorage.domain.ensembles import ALL_PHASES
from moorage.domain.topology import DEFAULT_TREE, HOST

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble, PolicyStatement

IMPORTED: Final = ("moorage:imported_from", "nova")
"""Metadata of an ensemble that was imported from a server group of Nova's: Nova still has it."""
JOINABLE: Final = ("moorage:members", "join")
"""Metadata of an ensemble whose members come with the servers that name it as their group."""
ANTI_AFFINITY: Final = "anti-affinity"
_LIMIT: Final = "max_per_domain"
_WORDS: Final = MappingProxyType(
    {(kind, weight is None): word for word, (kind, weight) in NOVA_SHORTHAND.items()}
)


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """The policy of a server group, in Nova's words."""

    word: str
    """`affinity`, `anti-affinity`, `soft-affinity` or `soft-anti-affinity`."""
    max_server_per_host: int | None = None
    """Nova's rule of that name; None: one with `anti-affinity`, and no limit with the others."""

    def statement(self) -> PolicyStatement:
        """The policy as an ensemble states it, of all members.

        Raises:
            InvalidDescription: the word is none of Nova's.
        """
        stated = read_statement(self.word, "policy")
        if self.max_server_per_host is None:
            return stated
        limit = {_LIMIT: self.max_server_per_host}
        return replace(stated, parameters=MappingProxyType({**stated.parameters, **limit}))


def group_policy(ensemble: Ensemble) -> GroupPolicy | None:
    """The ensemble's policy in Nova's words: its first required one that has any, or the first.

    None: no policy of it can be said so. Of the others nothing is shown.
    """
    found = [
        (one.required, policy)
        for one in ensemble.policies
        if (policy := _in_novas_words(ensemble, one)) is not None
    ]
    required = (policy for needed, policy in found if needed)
    return next(required, found[0][1] if found else None)


def _in_novas_words(ensemble: Ensemble, stated: PolicyStatement) -> GroupPolicy | None:
    word = _WORDS.get((stated.type, stated.required))
    given = stated.parameters
    at = (given.get("tree", DEFAULT_TREE), given.get("level", HOST))
    if word is None or at != (DEFAULT_TREE, HOST) or stated.phases != ALL_PHASES:
        return None
    if stated.zip or not _of_all_members(ensemble, stated):
        return None
    limit = given.get(_LIMIT)
    if not isinstance(limit, int):
        return GroupPolicy(word)
    if word != ANTI_AFFINITY:
        return GroupPolicy(word) if limit == 1 else None
    return GroupPolicy(word, limit)


def _of_all_members(ensemble: Ensemble, stated: PolicyStatement) -> bool:
    if any(selector.everyone for selector in stated.members):
        return True
    edges = ensemble.edges(stated)
    return len(edges) == 1 and len(edges[0]) == len(ensemble.members)
