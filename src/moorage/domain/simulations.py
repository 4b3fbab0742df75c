"""Simulations: what is supposed of the fleet and of ensembles, to see what would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from moorage.domain.describe import EnsembleDescription
from moorage.domain.period import Duration, Instant

MOST_CHANGES: Final = 100
"""Changes of one simulation."""
MOST_ADDED: Final = 1_000
"""Hosts that one change adds."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Hosts stop running: one, or all of a domain."""

    what: str
    """A host's name or UUID, or a domain: `rack/r2`, `power:feed/f1`, `r2`."""


@dataclass(frozen=True, slots=True)
class Closure:
    """Nothing new is placed on hosts: one, or all of a domain."""

    what: str
    """As of a loss."""


@dataclass(frozen=True, slots=True)
class Addition:
    """Hosts are added."""

    count: int
    like: str
    """The host that they are like: its name or UUID."""
    domains: tuple[str, ...] = ()
    """Where they are, at most one domain of each tree; empty: where the other host is."""


@dataclass(frozen=True, slots=True)
class Admission:
    """An ensemble is created and placed."""

    description: EnsembleDescription


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A policy of an ensemble is added, or some of its fields are replaced."""

    ensemble_id: str
    name: str
    fields: Mapping[str, object]


SupposedChange: TypeAlias = Loss | Closure | Addition | Admission | PolicyChange


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """What is supposed, in this order."""

    changes: tuple[SupposedChange, ...]
    at: Instant | None = None
    """When; None: now."""
    flavors: tuple[str, ...] = ()
    """Names of the flavors whose capacity is counted; empty: the first of all."""
    time_limit: Duration | None = None
