"""Policies of the phases steady and transition while Nova moves servers of several members."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_member_moves import WEB, Running
from tests.api.placement.test_tickets import NATIVE, PLACEMENT, ROOT

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import HandClock

EVER = ["create", "steady", "transition"]
AT_REST = ["create", "steady"]
IN_MOTION = ["create", "transition"]
ONCE = ["create"]


class Moving(Running):
    """The shop whose web servers keep apart in some phases, with two of them at hand."""

    def __init__(self, client: TestClient, clock: HandClock, phases: list[str]) -> None:
        super().__init__(client, clock)
        self.change("DELETE", "web-racks")
        self.change("PUT", "web-apart", type="anti-affinity", members=["web"], phase=phases)
        (self.first, self.home), (self.second, _), _ = self.servers("web").items()
        taken = set(self.servers("web").values())
        self.free = min(self.hosts_for(str(uuid4()), WEB) - taken)

    def change(self, method: str, policy: str, **written: Any) -> None:
        """Write or remove a policy."""
        answer = self.client.simulate_request(
            method,
            f"/v1/ensembles/{self.ensemble}/policies/{policy}",
            json={"policy": written} if written else None,
            headers={**NATIVE, "If-Match": "*"},
        )
        assert answer.status_code < 300, answer.text

    def begin(self) -> str:
        """Move the first server to a free host, without confirming it; the migration."""
        migration = self.begin_move(self.first)
        assert self.enter(self.first, self.free, WEB).status_code == 204
        return migration

    def second_enters(self, host: str) -> Any:
        """The answer to the second server's move to a host, as Nova writes it."""
        self.begin_move(self.second)
        return self.enter(self.second, host, WEB)


Make = Callable[[list[str]], Moving]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def made(phases: list[str]) -> Moving:
            clock, database = HandClock(), "sqlite://"
            racks = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
            store = private_ledger(clock, racks)
            stack.callback(store.close)
            settings = configure(read({"database": database}, {}, ()))
            application = create_app(settings, store=store, clock=clock)
            return Moving(TestClient(application), clock, phases)

        yield made


@pytest.mark.parametrize(
    ("phases", "where", "status"),
    [
        (EVER, "home", 409),
        (EVER, "free", 409),
        (AT_REST, "home", 204),
        (AT_REST, "free", 409),
        (IN_MOTION, "home", 409),
        (IN_MOTION, "free", 409),
        (ONCE, "home", 204),
        (ONCE, "free", 204),
    ],
)
def test_a_server_that_moves_counts_where_it_comes_from_and_where_it_goes(
    make: Make, phases: list[str], where: str, status: int
) -> None:
    cloud = make(phases)
    cloud.begin()
    host = cloud.home if where == "home" else cloud.free
    answer = cloud.second_enters(host)
    assert answer.status_code == status, answer.text
    if status == 409:
        assert "would break web-apart" in answer.text
        assert not cloud.allocations(cloud.second)


@pytest.mark.parametrize(("phases", "offered"), [(EVER, False), (AT_REST, True)])
def test_candidates_show_what_may_be_written(
    make: Make, phases: list[str], *, offered: bool
) -> None:
    cloud = make(phases)
    cloud.begin()
    cloud.begin_move(cloud.second)
    for host in cloud.hosts_for(str(uuid4()), WEB):
        offers = host in cloud.hosts_for(cloud.second, WEB)
        status = cloud.enter(cloud.second, host, WEB).status_code
        assert status == (204 if offers else 409)
        if host == cloud.home:
            assert offers is offered
        if status == 204:
            assert cloud.post({cloud.second: {}}).status_code == 204


def test_a_confirmed_move_counts_by_its_end(make: Make) -> None:
    cloud = make(EVER)
    migration = cloud.begin()
    assert cloud.second_enters(cloud.home).status_code == 409
    path = f"/placement/allocations/{migration}"
    assert cloud.client.simulate_delete(path, headers=PLACEMENT).status_code == 204
    assert cloud.enter(cloud.second, cloud.home, WEB).status_code == 204


def test_a_reverted_move_counts_where_it_began(make: Make) -> None:
    cloud = make(EVER)
    migration = cloud.begin()
    back = cloud.post({cloud.first: cloud.allocations(migration), migration: {}})
    assert back.status_code == 204, back.text
    assert cloud.second_enters(cloud.free).status_code == 204


@pytest.mark.parametrize(("phases", "status"), [(EVER, 409), (AT_REST, 204)])
def test_a_server_whose_move_has_no_target_yet_counts_where_it_is(
    make: Make, phases: list[str], status: int
) -> None:
    cloud = make(phases)
    cloud.begin_move(cloud.first)
    assert cloud.second_enters(cloud.home).status_code == status


@pytest.mark.parametrize("host", ["home", "free"])
def test_an_evacuated_server_counts_on_both_hosts(make: Make, host: str) -> None:
    cloud = make(EVER)
    both = {one: {"resources": WEB} for one in (cloud.home, cloud.free)}
    written = cloud.put(both, cloud.first, consumer_generation=cloud.generation(cloud.first))
    assert written.status_code == 204, written.text
    answer = cloud.second_enters(cloud.home if host == "home" else cloud.free)
    assert answer.status_code == 409, answer.text


def test_a_group_that_shares_a_rack_moves_one_by_one_only_if_it_may_part(make: Make) -> None:
    """Both in one request: at its end they are together, in between they need not be."""
    for phases, status in ((EVER, 409), (AT_REST, 204)):
        cloud = make(ONCE)
        third = list(cloud.servers("web"))[2]
        member = next(
            one["name"]
            for one in cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
            if one["server_id"] == third
        )
        cloud.native("DELETE", f"/ensembles/{cloud.ensemble}/members/{member}")
        assert cloud.post({cloud.first: {}}).status_code == 204
        second_home = next(iter(cloud.allocations(cloud.second)))
        assert cloud.enter(cloud.first, second_home, WEB).status_code == 204
        cloud.change("DELETE", "web-apart")
        cloud.change("PUT", "together", type="affinity", members=["web"], phase=phases)
        cloud.begin_move(cloud.first)
        cloud.begin_move(cloud.second)
        size = {"resources": WEB}
        moved = cloud.post({cloud.first: {cloud.free: size}, cloud.second: {cloud.free: size}})
        assert moved.status_code == status, (phases, moved.text)


@pytest.mark.parametrize(("phases", "status"), [(EVER, 409), (AT_REST, 200)])
def test_new_members_keep_away_from_where_a_server_may_still_run(
    make: Make, phases: list[str], status: int
) -> None:
    cloud = make(phases)
    cloud.begin()
    room = cloud.hosts_for(str(uuid4()), WEB) - set(cloud.servers("web").values())
    assert cloud.home in room
    answer = cloud.client.simulate_post(
        f"/v1/ensembles/{cloud.ensemble}/extend",
        json={"extend": {"role": "web", "count": len(room)}},
        headers=NATIVE,
    )
    assert answer.status_code == status, answer.text
    if status == 409:
        assert "web-apart would be broken while web[" in answer.text


@pytest.mark.parametrize("seed", range(4))
def test_no_accepted_step_breaks_the_policy_wherever_the_servers_are(make: Make, seed: int) -> None:
    cloud, dice = make(EVER), random.Random(seed)
    webs = list(cloud.servers("web"))
    hosts = sorted(cloud.hosts_for(str(uuid4()), WEB))
    migrations: dict[str, str] = {}
    accepted = refused = 0
    for _ in range(30):
        server = dice.choice(webs)
        migration = migrations.get(server)
        if migration is None:
            migrations[server] = cloud.begin_move(server)
        elif not cloud.allocations(server):
            status = cloud.enter(server, dice.choice(hosts), WEB).status_code
            accepted += status == 204
            refused += status == 409
        elif dice.random() < 0.5:
            assert cloud.post({migration: {}}).status_code == 204
            del migrations[server]
        else:
            back = cloud.post({server: cloud.allocations(migration), migration: {}})
            assert back.status_code == 204, back.text
            del migrations[server]
        where = [
            {*cloud.allocations(one), *cloud.allocations(migrations.get(one, one))} for one in webs
        ]
        for one in product(*where):
            assert len(set(one)) == len(webs), where
    assert accepted
    assert refused


@pytest.mark.parametrize(
    ("phases", "status"),
    [(["create"], 409), (["transition"], 409), (["steady"], 200), (["steady", "transition"], 409)],
)
def test_growth_beside_servers_is_a_step(make: Make, phases: list[str], status: int) -> None:
    cloud = make(phases)
    room = cloud.hosts_for(str(uuid4()), WEB) - set(cloud.servers("web").values())
    one_too_many = {"extend": {"role": "web", "count": len(room) + 1}}
    path = f"/v1/ensembles/{cloud.ensemble}/extend"
    answer = cloud.client.simulate_post(path, json=one_too_many, headers=NATIVE)
    assert answer.status_code == status, answer.text
    if status == 409:
        assert "web-apart" in answer.text


@pytest.mark.parametrize(
    ("phases", "status"), [(["create"], 200), (["transition"], 409), (["steady"], 409)]
)
def test_shrinking_is_a_step(make: Make, phases: list[str], status: int) -> None:
    cloud = make(ONCE)
    cloud.change("PUT", "many", type="spread", members=["web"], min_domains=3, phase=phases)
    path = f"/v1/ensembles/{cloud.ensemble}/shrink"
    fewer = {"shrink": {"role": "web", "count": 1, "servers": True}}
    answer = cloud.client.simulate_post(path, json=fewer, headers=NATIVE)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(("phases", "shown"), [(ONCE, []), (IN_MOTION, []), (AT_REST, ["pack"])])
def test_compliance_shows_what_must_hold_at_rest(
    make: Make, phases: list[str], shown: list[str]
) -> None:
    cloud = make(ONCE)
    cloud.change("DELETE", "web-apart")
    cloud.change("PUT", "pack", type="affinity", members=["web"], level="host", phase=phases)
    path = f"/ensembles/{cloud.ensemble}?compliance=true"
    found = cloud.native("GET", path)["ensemble"]["compliance"]
    assert [one["policy"] for one in found] == shown
