"""A hook that says it has ended a server and has not: a real program, and the ledger that knows."""

from dataclasses import replace
from pathlib import Path

from tests.usecases.leases.conftest import World, build

from moorage.domain.changes import Changeset, DeleteAllocations
from moorage.domain.effects import EffectKind, EffectState, Lane
from moorage.outward.program import HookProgram
from moorage.usecases.effect_dispatch import EFFECT_RETRY, EffectResult, OutwardActions, carry_out
from moorage.usecases.leases.lease_sweeper import LeaseSweeper

LIES = """#!/bin/sh
echo "$MOORAGE_EFFECT_ID" >> {log}
echo "ended"
"""


def asked(world: World, outside: OutwardActions) -> list[EffectResult]:
    """What came of every end of a server that is due."""
    due = world.service.store.due_effects(10, Lane.END)
    return [carry_out(world.service.env, outside, one) for one in due]


def test_a_program_that_ends_nobody_is_asked_again_until_the_server_is_gone(
    tmp_path: Path,
) -> None:
    here = build(4)
    try:
        log, hook = tmp_path / "log", tmp_path / "hook"
        hook.write_text(LIES.format(log=log))
        hook.chmod(0o755)
        outside = OutwardActions(
            end=HookProgram(str(hook), 10.0), retry=replace(EFFECT_RETRY, attempts=2)
        )
        server = here.server(4, until=2)
        made = here.lease(3, 5, vcpu=4)
        here.go_to(2)
        lookout = LeaseSweeper(here.service.env)
        lookout.run_round()
        store = here.service.store
        for hour in (2, 3, 4):
            here.go_to(hour)
            assert asked(here, outside) == [EffectResult.AGAIN]
            lookout.run_round()
            # The arithmetic believes the ledger: the server is in the lease's way.
            assert store.lease(made.lease.id).missing == 1
        (effect,) = (one for one in store.effects(server) if one.kind is EffectKind.DELETE)
        assert effect.outcome == "the hook has run: ended; the server is there still"
        # Each time under the same id, and no more often than it was due.
        assert log.read_text().split() == [effect.id] * 3

        store.commit(Changeset((DeleteAllocations(server),)))
        here.go_to(4.5)
        lookout.run_round()
        assert asked(here, outside) == [EffectResult.DONE]
        assert len(log.read_text().split()) == 3
        (effect,) = (one for one in store.effects(server) if one.kind is EffectKind.DELETE)
        assert (effect.state, effect.outcome) == (EffectState.DONE, "the server is gone")
        assert store.lease(made.lease.id).missing == 0
    finally:
        here.service.close()
