"""kill -9 of the services that judge ensembles: each violation is told once, and none is lost.

Two services watch one ledger while hosts are disabled and enabled; one of them, or a worker of it,
is killed again and again. In the end the stored violations are those of a judgement of everything.
"""

import random
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from tests.scenarios.kills import SEED, SERVICE, Kills, database, services, stock, wait_for

from moorage.domain.changes import Changeset, PutEnsemble, PutTraits, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_statement
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.events import BEGINNING, EVERYTHING
from moorage.domain.host_states import DISABLED_TRAIT
from moorage.domain.member_names import MemberName
from moorage.store import Ledger, open_store
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance_ports import ViolationFilter
from moorage.usecases.paging import Page

HOSTS = tuple(str(uuid.UUID(int=number + 1)) for number in range(6))
ENSEMBLES, MEMBERS, ROUNDS = 12, 3, 4
HA = {"name": "ha", "type": "survive", "members": ["a"], "level": "host", "keep": 2}


def fill(url: str) -> None:
    """Hosts, and ensembles whose servers are each on a host of its own."""
    store = open_store(url)
    stock(store, 1_000, HOSTS)
    for number in range(ENSEMBLES):
        servers = [str(uuid.UUID(int=number * 10 + at + 1_000, version=4)) for at in range(MEMBERS)]
        members = tuple(Member(MemberName("a", at), one, one) for at, one in enumerate(servers))
        ensemble = Ensemble(
            str(uuid.UUID(int=number + 100_000, version=4)),
            "p",
            "u",
            f"e{number}",
            (Role("a", {"VCPU": 1}),),
            members,
            (read_statement(HA, "policies[0]"),),
        )
        hosts = [HOSTS[(number + at) % len(HOSTS)] for at in range(MEMBERS)]
        writes = [
            ReplaceAllocations(Consumer(one, "p", "u"), {host: {"VCPU": 1}}, None)
            for one, host in zip(servers, hosts, strict=True)
        ]
        store.commit(Changeset((PutEnsemble(ensemble, None), *writes)))
    store.close()


def expected(store: Ledger) -> set[tuple[str, str]]:
    """Ensemble and subject of every violation that there is now."""
    snapshot = store.snapshot()
    found = set()
    for one in store.ensembles(project_id=None):
        judged = judge(snapshot, one)
        found |= {(one.id, f"policy {each.policy}") for each in judged.violations}
        found |= {(one.id, f"member {each}") for each in judged.out_of_service}
    return found


def stored(store: Ledger) -> set[tuple[str, str]]:
    records = store.compliance.page(ViolationFilter(), Page(10_000))
    found = {(one.ensemble_id, one.key) for one in records}
    assert len(found) == len(records), "two open records of one subject"
    return found


def toggle(store: Ledger, host: str) -> None:
    one = store.provider(host)
    store.commit(Changeset((PutTraits(host, one.traits ^ {DISABLED_TRAIT}, one.generation),)))


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "kind",
    [
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.nightly),
        pytest.param("mariadb", marks=pytest.mark.nightly),
    ],
)
def test_each_violation_is_told_once_whoever_dies(tmp_path: Path, kind: str) -> None:
    dice = random.Random(SEED)
    with database(kind, tmp_path) as (url, _):
        fill(url)
        options = ("--planners", "1", "--host-settle-time", "1s")
        with closing(open_store(url)) as store, services(tmp_path, [url], 2, *options) as served:
            kills = Kills(None)
            for number in range(ROUNDS):
                for host in dice.sample(HOSTS, 2):
                    toggle(store, host)
                kills.kill_and_start(SERVICE, served[number % 2])
                toggle(store, dice.choice(HOSTS))
            wait_for(lambda: stored(store) == expected(store), served[0])
            assert expected(store) or stored(store) == set()
            page = store.event_log.page(None, BEGINNING, EVERYTHING, 10_000)
            begun, ended = list[object](), list[object]()
            for one in page.events:
                if one.type in {"policy.violated", "member.at_risk"}:
                    begun.append(one.body["violation"])
                elif one.type in {"policy.restored", "member.recovered"}:
                    ended.append(one.body["violation"])
            every = store.compliance.page(ViolationFilter(open=None), Page(10_000))
            assert sorted(map(str, begun)) == sorted(one.id for one in every)
            assert sorted(map(str, ended)) == sorted(one.id for one in every if not one.open)
            assert every, "nothing was judged at all"
