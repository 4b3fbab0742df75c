"""Opaque labels that tenants see instead of the names of hosts and domains.

A label tells a tenant which of an ensemble's members share a domain, and nothing else: it is
made with the ensemble's own secret salt, so labels of different ensembles cannot be compared.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from moorage.domain.topology import DEFAULT_TREE, HOST, SERVER, Level
from moorage.engine.state.server_locations import NOWHERE

if TYPE_CHECKING:
    from moorage.domain.topology import Topology
    from moorage.engine.state.snapshot import Snapshot

ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz023456789"
"""32 letters and digits that are hard to confuse."""

LENGTH: Final = 5
"""Length of a label. With 32^5 labels, two of 60 domains collide in one of 19,000 ensembles."""


@lru_cache(maxsize=4096)
def label(salt: str, level: Level, name: str) -> str:
    """The opaque label of a domain (or host) in one ensemble: `r-a1f9k` for a rack."""
    text = f"{level.tree}\x00{level.name}\x00{name}"
    digest = hmac.digest(salt.encode(), text.encode(), hashlib.sha256)
    number = int.from_bytes(digest[:8])
    letters = []
    for _ in range(LENGTH):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return f"{level.name[:1].lower()}-{''.join(letters)}"


def domains_of(snapshot: Snapshot, row: int) -> dict[Level, str]:
    """Level -> name of the domain that contains a host, with the host itself at level HOST.

    A server provider is in the domains of its server's host, and itself at level SERVER.
    """
    topology, at = snapshot.topology, int(snapshot.locations.hosts[row])
    trees = list(topology.levels)[:1]
    found = {Level(tree, SERVER): snapshot.names[row] for tree in trees if at != row}
    if at == NOWHERE:
        return found
    found |= {Level(tree, HOST): snapshot.names[at] for tree in trees}
    for level in topology.every_level:
        number = int(snapshot.domains_of_hosts(level)[at])
        if number >= 0:
            found[level] = snapshot.domain_names(level)[number]
    return found


def place_label(salt: str, topology: Topology, name: str) -> str:
    """The opaque label of a name in a policy: a domain of any tree, or else a host."""
    trees = list(topology.levels)
    for tree in trees:
        domain = topology.domains.get((tree, name))
        if domain is not None:
            return label(salt, Level(tree, domain.level), name)
    return label(salt, Level(trees[0] if trees else DEFAULT_TREE, HOST), name)
