"""`moorage lease create --wait` and `moorage waitlist` against a served fleet."""

from typing import Any

import pytest

WHEN = ("--start", "2027-03-01T08:00Z", "--duration", "8h")
MOST = ("--flavor", "m1.small", "--name", "w", "--wait")


def test_a_lease_that_can_be_had_is_granted(sim: Any) -> None:
    made = sim("lease", "create", *MOST, *WHEN, "--latest", "2027-03-02", "-f", "json")
    assert made.status == 0, made
    assert made.body["lease"]["start"] == "2027-03-01T08:00:00Z"
    sim("lease", "cancel", made.body["lease"]["id"])


def test_it_waits_is_shown_and_given_up(sim: Any) -> None:
    quota = sim("quota", "set", "busy", "--lease-units", "1")
    assert quota.status == 0, quota
    many = ("--project", "busy", "lease", "create", *MOST, "--count", "2", *WHEN)
    told = sim(*many)
    assert told.status == 0, told
    assert "waiting for quota  first in line\nlease-units limit 1" in told.out
    assert "estimate: none: lease-units limit 1" in told.out
    dry = sim(*many, "--wait-until", "2027-02-01", "--dry-run")
    assert dry.out.startswith("would wait for quota"), dry
    listed = sim("--project", "busy", "waitlist", "list", "--status", "waiting", "-f", "json")
    (one,) = listed.body["entries"]
    assert one["id"][:8] in sim("--project", "busy", "waitlist", "list").out
    shown = sim("--project", "busy", "waitlist", "show", "w").out
    for said in ("waits for  quota", "latest     2027-03-01T08:00Z", "places     2"):
        assert said in shown
    no_lease = sim("--project", "busy", "lease", "show", "w")
    assert (no_lease.status, no_lease.err) == (6, "no lease w yet: it is on the waitlist\n")
    given_up = sim("--project", "busy", "waitlist", "cancel", one["id"][:8])
    assert given_up.out == f"waitlist entry {one['id'][:8]}  cancelled\n"
    assert sim("--project", "busy", "waitlist", "cancel", one["id"]).status == 4
    sim("quota", "unset", "busy")


@pytest.mark.parametrize(
    "words",
    [("--latest", "2027-03-02"), ("--wait-until", "2027-03-02"), ("--wait", "--latest", "x")],
)
def test_bad_words_are_a_usage_error(sim: Any, words: tuple[str, ...]) -> None:
    answer = sim("lease", "create", "--flavor", "m1.small", *WHEN, *words)
    assert answer.status == 2, answer
