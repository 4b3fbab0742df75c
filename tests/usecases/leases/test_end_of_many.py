"""The end of a lease costs as many statements for many servers as for few."""

from collections.abc import Callable
from dataclasses import replace

from tests.usecases.leases.conftest import World

from moorage.domain.changes import Changeset, PutEnsemble, SwapHold
from moorage.domain.consumers import Consumer
from moorage.domain.effects import EffectKind, Lane
from moorage.testing.statements import said
from moorage.usecases.leases.lifecycle import carry_out

Make = Callable[..., World]


def servers_of(here: World, count: int) -> str:
    """A lease whose places all have servers, at its end; its id."""
    made = here.lease(1, 10, members=count)
    here.go_to(2)
    here.begin(made.lease.id)
    stored = here.service.store.ensemble(made.ensemble.id)
    ids = {one.uuid: here.service.env.ids.uuid() for one in stored.members}
    swaps = (
        SwapHold(member, Consumer(server, stored.project_id, "ann", "INSTANCE"))
        for member, server in ids.items()
    )
    members = tuple(replace(one, server_id=ids[one.uuid]) for one in stored.members)
    put = PutEnsemble(replace(stored, members=members), stored.generation)
    here.service.store.commit(Changeset((*swaps, put)))
    here.go_to(10)
    return made.lease.id


def test_many_servers_are_ended_by_as_many_statements_as_few(world: Make) -> None:
    found = {}
    for count in (2, 60):
        here = world(100)
        lease = servers_of(here, count)
        store = here.service.store
        (end,) = (one for one in store.effects(lease) if one.kind is EffectKind.END)
        with said() as sent:
            told = carry_out(here.service.env, end)
        found[count] = len(sent)
        assert told.endswith(f"{count} servers to be ended)")
        portion = store.due_effects(10, Lane.END)
        assert len(portion) == min(10, count)
        assert all(one.kind is EffectKind.DELETE for one in portion)
    assert found[2] == found[60]
