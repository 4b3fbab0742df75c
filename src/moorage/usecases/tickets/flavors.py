"""The Nova flavors whose servers take the places of a held decision."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.decisions import DecisionState
from moorage.domain.tickets import ticket_flavor
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.tickets import TicketFlavor
    from moorage.usecases.ports import Store

SERVER = "server"
"""The kind of role whose members are servers of Nova."""


def ticket_flavors(
    store: Store, decision: Decision, ensemble: Ensemble
) -> tuple[TicketFlavor, ...]:
    """A flavor for each role of servers; none unless the decision is held, for no lease."""
    if not decision.ticket or decision.state_at(store.now()) is not DecisionState.HELD:
        return ()
    return tuple(
        ticket_flavor(ensemble.name, role, decision.ticket, _specs(store, role.flavor))
        for role in ensemble.roles
        if role.kind == SERVER
    )


def _specs(store: Store, flavor: str | None) -> Mapping[str, str]:
    """The extra specs of the flavor that a role was described by, if it is still there."""
    stored = None if flavor is None else if_stored(store.flavor, flavor)
    return MappingProxyType({}) if stored is None else stored.extra_specs
