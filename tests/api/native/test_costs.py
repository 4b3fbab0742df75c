"""What an answer costs grows with the ensemble, not with its square."""

import sys
from dataclasses import replace
from types import FrameType
from typing import Any, Self

from moorage.domain.actors import Actor
from moorage.domain.changes import Changeset, Committed
from moorage.engine.state.snapshot import Snapshot
from moorage.store.ledger import Ledger
from moorage.testing.service import OPERATOR, Service

FACTOR = 4


def described(service: Service, number: int) -> str:
    """An ensemble of so many roles of one member each; its id."""
    members = [{"name": f"r{i}", "count": 1, "resources": {"VCPU": 1}} for i in range(number)]
    body = {"ensemble": {"name": f"e{number}", "members": members, "decide": {"hold": "10m"}}}
    answer = service.call("POST", "/ensembles", body, caller=OPERATOR)
    assert answer.status_code == 201, answer.text
    return str(answer.json["ensemble"]["id"])


def steps(service: Service, path: str) -> int:
    """Calls of functions, and resumptions of generators, that an answer takes."""
    count = 0

    def counted(_frame: FrameType, _event: str, _about: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        answer = service.call("GET", path, caller=OPERATOR)
    finally:
        sys.setprofile(before)
    assert answer.status_code == 200, answer.text
    return count


def test_ensembles_and_members_are_shown_in_linear_time(service: Service) -> None:
    few, many = described(service, 20), described(service, 20 * FACTOR)
    for path in ("/ensembles/{}", "/ensembles/{}/members"):
        service.call("GET", path.format(few), caller=OPERATOR)  # what is made once is made
        short = steps(service, path.format(few))
        assert steps(service, path.format(many)) < 1.3 * FACTOR * short


class Observed:
    """The store, with a record of who asks for what."""

    def __init__(self, store: Ledger) -> None:
        self._store = store
        self.asked: list[str] = []

    def commit(self, changeset: Changeset) -> Committed:
        self.asked.append("commit")
        return self._store.commit(changeset)

    def snapshot(self) -> Snapshot:
        self.asked.append("snapshot")
        return self._store.snapshot()

    def by(self, actor: Actor) -> Self:
        """This one, whoever acts."""
        del actor
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_decision_is_shown_by_one_snapshot(service: Service) -> None:
    """So that its parts agree with each other and with the revision that the answer names."""
    store = Observed(service.store)
    service.env = replace(service.env, store=store)
    path = f"/ensembles/{described(service, 3)}"
    after = store.asked[store.asked.index("commit") + 1 :]
    assert after == ["snapshot"]
    body = {"ensemble": {"members": [{"name": "r0", "count": 2}], "decide": {"hold": "10m"}}}
    store.asked.clear()
    answer = service.call("PATCH", path, body, caller=OPERATOR, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    # The second is judged: what the change breaks.
    assert store.asked[store.asked.index("commit") + 1 :] == ["snapshot", "snapshot"]
