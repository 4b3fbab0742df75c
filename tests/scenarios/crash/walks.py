"""Applications on their way through decide, claim, active and confirm, over HTTP."""

import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.servers.replica import Replica, Unacknowledged

from moorage.domain.idempotency import record_id

MEMBERS = 3
HOLD = 6
"""Seconds that a place is held, and that a claim lives."""
PROJECT = "project-a"
STEPS = ("decide", "claim", "active", "confirm")

CONFIRMED = "confirmed"
REFUSED = "refused with 503"
LAPSED = "lapsed: slower than its hold"
UNHEARD = "cut off: an answer never came"

_SLEW = 0.2
"""Seconds by which the ledger's clock may be set while a walk goes on."""
_EXPIRED = "ensemble.hold_expired"


class Declined(Exception):
    """The service said no, as it may: nothing was acknowledged."""


@dataclass
class Walk:
    """One application on its way, and what the service has acknowledged of it."""

    number: int
    key: str
    """The idempotency key of its ensemble."""
    decision: str | None = None
    claims: dict[str, str] = field(default_factory=dict)
    """Member -> claim."""
    servers: dict[str, str] = field(default_factory=dict)
    """Member -> server, once its claim is active."""
    confirmed: bool = False
    hold: int = HOLD
    asked: float = 0.0
    """When it asked for its decision, by the monotonic clock: its hold begins no earlier."""
    ended: str = ""
    """How: one of the words above."""

    @property
    def ensemble(self) -> str:
        """The id of its ensemble, also where no answer has told it."""
        return record_id(self.key, PROJECT)

    def go(self, service: Replica, dice: random.Random) -> Iterator[str]:
        """Take one step after the other; yields the name of the step before it is sent."""
        try:
            yield from self._steps(service, dice)
        except Declined as declined:
            self.ended = str(declined)
        except Unacknowledged:
            self.ended = UNHEARD
        else:
            self.ended = CONFIRMED

    def _steps(self, service: Replica, dice: random.Random) -> Iterator[str]:
        yield "decide"
        self.asked = time.monotonic()
        made = self._ask(service, "POST", "/v1/ensembles", {"ensemble": self._wanted()})
        self.decision = made["decision"]["id"]
        for index in range(2):
            member = f"web[{index}]"
            yield "claim"
            wanted = {
                "member": member,
                "server": {"flavorRef": "m1.small"},
                "lifetime": f"PT{self.hold}S",
            }
            path = f"/v1/decisions/{self.decision}/claims"
            made = self._ask(service, "POST", path, {"claim": wanted})
            self.claims[member] = made["claim"]["id"]
        server = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        yield "active"
        told = {"claim": {"status": "active", "server_id": server}}
        self._ask(service, "PATCH", f"/v1/claims/{self.claims['web[0]']}", told)
        self.servers["web[0]"] = server
        yield "confirm"
        self._ask(service, "POST", f"/v1/decisions/{self.decision}/confirm", {})
        self.confirmed = True

    def _wanted(self) -> dict[str, object]:
        apart = {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"}
        return {
            "name": f"walk-{self.number}",
            "id": self.key,
            "members": [{"name": "web", "count": MEMBERS, "flavor": "m1.small"}],
            "policies": [apart],
            "decide": {"hold": f"PT{self.hold}S"},
        }

    def _ask(self, service: Replica, method: str, path: str, body: object) -> Any:
        """The body of a good answer.

        Two others are allowed: 503, come again; and that the hold has lapsed, but only where a
        loaded machine really took longer than it was to last.
        """
        status, content = service.ask(method, path, body)
        if status == 503:
            raise Declined(REFUSED)
        if status == 409 and content["errors"][0]["code"] == _EXPIRED:
            took = time.monotonic() - self.asked
            assert took > self.hold - _SLEW, f"lapsed after {took:.2f} s of {self.hold}"
            raise Declined(LAPSED)
        assert status < 300, content
        return content
