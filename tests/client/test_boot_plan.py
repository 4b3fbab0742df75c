"""What is done next about a member follows from what is seen of it, whatever happened before."""

import os
import uuid

import pytest

from moorage.client.boot_plan import (
    Action,
    OnFailure,
    Rules,
    Seen,
    SeenClaim,
    SeenServer,
    State,
    is_own_claim,
    new_key,
    next_step,
)

CLAIM = "11111111-0000-4000-8000-000000000001"
OWN = SeenClaim(CLAIM, "building", 60.0, own=True)
OTHERS = SeenClaim(CLAIM, "building", 60.0, own=False)
BUILDING = SeenServer("s1", "BUILD")
THERE = SeenServer("s1", "ACTIVE")
BROKEN = SeenServer("s1", "ERROR", "no disk")


def seen(status: str, claim: SeenClaim | None = None, server: SeenServer | None = None) -> Seen:
    return Seen("db[0]", status, None, claim, server)


@pytest.mark.parametrize(
    ("known", "action"),
    [
        (seen("held"), Action.CLAIM),
        (seen("building", SeenClaim(CLAIM, "building", 0.0, own=True, fresh=True)), Action.CREATE),
        # An earlier run may have sent the request just before it was killed.
        (seen("building", SeenClaim(CLAIM, "building", 1.0, own=True)), Action.LOOK),
        (seen("building", OWN), Action.CREATE),
        (seen("building"), Action.LOOK),
        (seen("building", OWN, BUILDING), Action.LOOK),
        (seen("held", None, BUILDING), Action.LOOK),
        (seen("building", OWN, THERE), Action.MARK),
        (seen("building", OTHERS, SeenServer("s1", "SHUTOFF")), Action.MARK),
    ],
)
def test_what_is_done_next(known: Seen, action: Action) -> None:
    assert next_step(known, Rules()).action is action


@pytest.mark.parametrize(
    ("known", "state"),
    [
        (Seen("db[0]", "active", "s1", None, THERE), State.ACTIVE),
        (Seen("db[0]", "active", "s2", None, THERE), State.FAILED),
        (Seen("db[0]", "active", "s1"), State.FAILED),
        (seen("held", None, THERE), State.FAILED),
        (seen("unplaced", None, THERE), State.FAILED),
        (seen("unplaced"), State.UNPLACED),
        (seen("building", OTHERS), State.TAKEN),
        (seen("held", None, BROKEN), State.FAILED),
    ],
)
def test_how_it_ends(known: Seen, state: State) -> None:
    step = next_step(known, Rules())
    assert (step.action, step.state) == (Action.END, state)
    assert step.message or state is State.ACTIVE


def test_a_failed_server_is_replaced_once() -> None:
    rules = Rules(OnFailure.DELETE)
    assert next_step(seen("held", None, BROKEN), rules).action is Action.REPLACE
    again = Seen("db[0]", "held", None, None, BROKEN, renewed=1)
    assert next_step(again, rules).message == "no disk"


def test_a_server_that_ran_once_is_never_deleted() -> None:
    lost = Seen("db[0]", "active", "s1", None, SeenServer("s1", "ERROR", "host down", ran=True))
    step = next_step(lost, Rules(OnFailure.DELETE))
    assert (step.action, step.state) == (Action.END, State.FAILED)
    assert "left alone" in step.message


def test_nobody_waits_if_not_asked_to() -> None:
    rules = Rules(wait=False)
    assert next_step(seen("building", OWN, BUILDING), rules).state is State.CREATED
    assert next_step(seen("building", OWN, THERE), rules).action is Action.MARK


def test_a_claim_says_which_member_it_was_made_for() -> None:
    ensemble = str(uuid.uuid4())
    made = {new_key(ensemble, "db[0]", os.urandom(8)) for _ in range(100)}
    assert len(made) == 100
    for claim in made:
        assert uuid.UUID(claim).variant == uuid.RFC_4122
        assert is_own_claim(claim, ensemble, "db[0]")
        assert not is_own_claim(claim, ensemble, "db[1]")
        assert not is_own_claim(claim, str(uuid.uuid4()), "db[0]")
    assert not any(is_own_claim(str(uuid.uuid4()), ensemble, "db[0]") for _ in range(100))
