"""The operator's own check of leases, over real sockets and with a real program."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.outward.conftest import Answer, Receiver, Request, receiving, told
from tests.usecases.leases.conftest import World, described

from moorage.domain.effects import Lane
from moorage.domain.errors import Busy, CheckRefused
from moorage.outward.config import OutwardConfig
from moorage.outward.outgoing_calls import lease_check, outgoing_calls
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases import effect_dispatch
from moorage.usecases.leases.cancel import cancel_lease

Make = Callable[..., World]


def checked_by(here: World, where: str, **more: Any) -> OutwardConfig:
    config = OutwardConfig(check=where, check_timeout=more.pop("timeout", 2.0), **more)
    here.service.env = replace(here.service.env, check=lease_check(config))
    return config


def asked_of(receiver: Receiver) -> list[tuple[str, Any]]:
    return [(one.path, told(one)) for one in receiver.requests]


def end(here: World, config: OutwardConfig) -> list[str]:
    """Carry out what the check is to be told; what came of it."""
    due = here.service.store.due_effects(10, Lane.CHECK)
    return [
        effect_dispatch.carry_out(here.service.env, outgoing_calls(config), one).value
        for one in due
    ]


def test_it_is_asked_before_a_lease_is_granted_or_changed_and_told_of_its_end(
    world: Make,
) -> None:
    here = world(64)
    with receiving(lambda _: Answer(204)) as receiver:
        config = checked_by(here, f"{receiver.url}/leases/", webhook_secret="s3cret")
        lease = here.lease(1, 3, members=2).lease
        here.lease(1, 3, body=described(name="f"), dry_run=True)
        here.change(lease.id, name="other")
        here.change(lease.id, end=4, counts={"web": 3})
        cancel_lease(here.service.env, TENANT, lease.id)
        assert end(here, config) == ["done"]
        (_, first), (_, second), (_, third) = asked = asked_of(receiver)
    assert [path for path, _ in asked] == [
        f"/leases/{what}" for what in ("check-create", "check-update", "on-end")
    ]
    assert all("x-moorage-signature" in one.headers for one in receiver.requests)
    assert first["context"]["project_id"] == TENANT.project_id
    assert first["lease"]["start_date"] == "2026-11-21 10:00"
    assert (first["lease"]["id"], first["lease"]["units"]) == (lease.id, 2)
    assert first["lease"]["reservations"][0]["amount"] == 2
    assert (second["current_lease"]["units"], second["lease"]["units"]) == (2, 3)
    assert (third["lease"]["id"], third["lease"]["units"]) == (lease.id, 3)


def test_what_it_refuses_is_not_granted_and_its_words_are_passed_on(world: Make) -> None:
    here = world(64)
    lease = here.lease(1, 3).lease
    answer = json.dumps({"message": "no budget left"}).encode()
    with receiving(lambda _: Answer(403, answer)) as receiver:
        checked_by(here, receiver.url)
        for caller in (TENANT, OPERATOR):
            with pytest.raises(CheckRefused, match="no budget left"):
                here.lease(1, 3, body=described(name="f"), caller=caller)
        with pytest.raises(CheckRefused):
            here.change(lease.id, end=4)
    assert [one.id for one in here.service.store.leases(project_id=None)] == [lease.id]
    assert here.service.store.lease(lease.id).terms == lease.terms


def slow(_: Request) -> Answer:
    time.sleep(1.0)
    return Answer(204)


def endless(_: Request) -> Answer:
    return Answer(403, b'{"message": "' + b"x" * 300_000)


@pytest.mark.parametrize(
    ("answering", "why"),
    [
        (slow, "did not answer"),
        (lambda _: Answer(200, b"{}"), "answered 200"),
        (lambda _: Answer(302, headers={"Location": "http://127.0.0.1:9/"}), "answered 302"),
        (lambda _: Answer(500), "answered 500"),
    ],
)
def test_no_answer_refuses_or_allows_as_the_operator_says(
    world: Make, answering: Callable[[Request], Answer], why: str
) -> None:
    here = world(64)
    with receiving(answering) as receiver:
        # A machine may be busy: only who is to be late is given little time.
        checked_by(here, receiver.url, timeout=0.2 if answering is slow else 20.0)
        with pytest.raises(Busy, match=why):
            here.lease(1, 3)
        assert here.service.store.leases(project_id=None) == []
        checked_by(here, receiver.url, timeout=0.2, check_else_allow=True)
        here.lease(1, 3)


@pytest.mark.parametrize("answering", [endless, lambda _: Answer(403, b"[1]\xff")])
def test_a_refusal_that_says_nothing_or_far_too_much_is_a_refusal(
    world: Make, answering: Callable[[Request], Answer]
) -> None:
    here = world(64)
    with receiving(answering) as receiver:
        checked_by(here, receiver.url)
        with pytest.raises(CheckRefused, match="the check of leases refuses it"):
            here.lease(1, 3)


def test_nobody_there_is_no_answer_and_an_end_is_told_later(world: Make) -> None:
    here = world(64)
    with receiving(lambda _: Answer(204)) as receiver:
        config = checked_by(here, receiver.url)
        lease = here.lease(1, 3).lease
    with pytest.raises(Busy, match="did not answer"):
        here.lease(1, 3, body=described(name="f"))
    cancel_lease(here.service.env, TENANT, lease.id)
    assert end(here, config) == ["again"]


def test_a_program_is_asked_by_its_exit_status(world: Make, tmp_path: Path) -> None:
    here = world(64)
    program = tmp_path / "check"
    program.write_text(
        "#!/bin/sh\ncat > $(dirname $0)/asked\n. $(dirname $0)/answer\n", encoding="utf-8"
    )
    program.chmod(0o755)
    config = checked_by(here, str(program))

    def say(answer: str) -> None:
        (tmp_path / "answer").write_text(answer, encoding="utf-8")

    say("exit 0")
    lease = here.lease(1, 3).lease
    assert json.loads((tmp_path / "asked").read_text())["kind"] == "check-create"
    say("echo too late; exit 3")
    with pytest.raises(CheckRefused, match="too late"):
        here.change(lease.id, end=4)
    say("exit 7")
    with pytest.raises(Busy, match="status 7"):
        here.change(lease.id, end=4)
    cancel_lease(here.service.env, TENANT, lease.id)
    assert end(here, config) == ["again"]
    here.service.clock.pass_by(60_000_000)
    say("exit 0")
    assert end(here, config) == ["done"]
    assert json.loads((tmp_path / "asked").read_text())["kind"] == "on-end"
