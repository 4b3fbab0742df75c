"""What commands say of members whose hosts are out of service."""

from typing import Any

from moorage.cli.decision_text import out_of_service
from moorage.cli.host_text import state_and_why
from moorage.wire.hosts import Closing
from moorage.wire.members import Member


def member(name: str, **more: Any) -> Member:
    return Member(name, "web", "server", "held", None, {}, **more)


def closing(why: Any, start: str | None = None, user: str | None = None) -> Closing:
    return Closing(why, start, None, None, None, "memory errors" if user else "", user)


def test_tenants_read_that_a_host_is_out_of_service_and_no_name() -> None:
    some = {name: member(name, out_of_service=True) for name in ("web[0]", "web[1]", "web[4]")}
    assert out_of_service(some | {"web[2]": member("web[2]")}) == [
        "web[0-1,4]: host out of service"
    ]
    assert out_of_service({"web[2]": member("web[2]")}) == []


def test_operators_read_which_host_and_why() -> None:
    since = "2026-11-21T09:00:00Z"
    closed = [closing("operator", since, "ann"), closing("service down", since)]
    some = {
        "web[0]": member("web[0]", out_of_service=True, host="h1", closed=closed),
        "web[1]": member("web[1]", out_of_service=True, host="h2", closed=[closing("disabled")]),
    }
    assert out_of_service(some) == [
        (
            "web[0] on h1: closed by ann since 2026-11-21T09:00Z (memory errors);"
            " service down since 2026-11-21T09:00Z"
        ),
        "web[1] on h2: disabled",
    ]


def test_a_state_is_not_said_twice() -> None:
    assert state_and_why("open", "") == "open"
    assert state_and_why("closed", "closed by ann") == "closed by ann"
    assert state_and_why("down", "closed by ann; forced down") == "down: closed by ann; forced down"
