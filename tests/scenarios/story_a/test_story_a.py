"""Story A as operators and tenants live it, in structure and numbers."""

import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.cli.program import Program
from moorage.cli.sim_process import end
from moorage.client import registry

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
FLAVORS = {"web": "m1.small", "app": "m1.medium", "db": "m1.xlarge"}
Moorage = Callable[..., tuple[int, str]]


SOUND = "OK 3 roles, 9 members, 4 policies; statically satisfiable on any fleet with >= 3 racks\n"


def run(line: str, *, project: str | None = None) -> tuple[int, str]:
    """Status and output of one command line."""
    out = io.StringIO()
    words = (["--project", project] if project else []) + line.split()
    with contextlib.redirect_stderr(out):
        status = Program(stdout=out, stderr=out).run(words)
    return status, out.getvalue()


@pytest.fixture(scope="module")
def sims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A simulation of three racks, and an environment that finds nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("OS_", "MOORAGE_")):
                patch.delenv(name)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("COLUMNS", "120")
        patch.chdir(ROOT / "examples")
        started = run("sim start --fleet three-racks.yaml --now 2026-11-21T09:00:00Z")
        assert started[0] == 0, started
        patch.setenv("OS_CLOUD", "moorage-sim")
        yield
        for one in list(registry.running(registry.state_directory(os.environ))):
            end(one.pid)


@pytest.fixture
def moorage(sims: None) -> Iterator[Moorage]:
    """The program, over a fleet on which no ensemble stands yet."""
    yield run
    listed = json.loads(run("ensemble list --all-projects -f json")[1])
    for ensemble in listed["ensembles"]:
        assert run(f"ensemble delete {ensemble['id']}")[0] == 0


def test_the_story(moorage: Moorage, tmp_path: Path) -> None:
    assert moorage("ensemble check shop.yaml") == (0, SOUND)
    status, said = moorage("ensemble create -f shop.yaml --dry-run")
    dry = re.fullmatch(
        r"verdict feasible \(computed at revision \d+\)   racks used 3   hosts used (\d)\n", said
    )
    assert status == 0
    assert dry is not None, said
    assert int(dry[1]) <= 9
    status, said = moorage("ensemble create -f shop.yaml --hold 10m")
    made = re.fullmatch(
        r"id (\w+)  decision \w+ held until 09:10:00Z  policies 4/4  max additional: web 5\n",
        said,
    )
    assert made is not None, said
    shop = made[1][:4]
    assert moorage("sim replay shop.yaml --sequential --order web,app,db") == (
        0,
        'FAIL at db[1]: proximity "pair" and survive "db-ha" leave no host\n',
    )
    status, said = moorage("ensemble create -f shop.yaml --name second")
    assert status == 3, "exactly one shop fits"
    status, said = moorage(f"claim create {shop} db[0] --flavor m1.xlarge --image debian")
    claim = re.match(
        r"claim (\w+)  building   db\[0\] at zone az1, rack r\d, host h\d\n"
        r"present as X-Openstack-Request-Id: req-(\S+)\n",
        said,
    )
    assert claim is not None, said
    assert claim[2].startswith(claim[1])
    status, said = moorage(f"claim create {shop} db[1] --flavor m1.2xlarge --image debian")
    assert status == 4
    assert said.startswith(
        "409 ensemble.description_mismatch: flavor.VCPU described 8 requested 16 (exceeds)"
    )
    assert said.endswith("   remedies: resubmit, redecide, supersede\n")
    placed = tmp_path / "placed.yaml"
    status, said = moorage(f"hot place shop-hot.yaml -e env.yaml --ensemble {shop} --emit {placed}")
    assert status == 0, said
    assert placed.read_text("utf-8").startswith("heat_template_version")
    for role, flavor in FLAVORS.items():
        for index in range(3):
            if (role, index) != ("db", 0):
                status, said = moorage(f"claim create {shop} {role}[{index}] --flavor {flavor}")
                assert status == 0, said
    assert moorage(f"ensemble confirm {shop}") == (0, "confirmed 9/9 claimed, 0 released\n")
    change = f"ensemble set {shop} --member db:count=4 --policy db-ha:keep=3 --dry-run"
    status, said = moorage(change)
    assert status == 3
    first, second = said.splitlines()
    assert re.fullmatch(
        r"infeasible \[policy\]  conflict \(minimal\): db-ha needs 4 racks.*"
        r"  <->  racks usable for m1\.xlarge: 3",
        first,
    ), first
    assert second == (
        "relaxations (each solved): 1. db-ha keep 3->2: fits now   2. db count 4->5: fits now"
    )
    status, said = moorage(f"ensemble show {shop} --survivability")
    assert re.search(r"^lose any 1 rack: .*\bdb keeps 2 of 3 OK", said, re.MULTILINE)
    assert re.search(r"^lose any 1 host: .*\bweb keeps 2 of 3 OK", said, re.MULTILINE)


@pytest.mark.parametrize(
    "change", ["--member db:count=4", "--member db:count=5 --policy db-ha:keep=3"]
)
def test_each_relaxation_taken_works(moorage: Moorage, change: str) -> None:
    moorage("ensemble create -f shop.yaml --hold 10m")
    status, said = moorage(f"ensemble set shop {change} --dry-run")
    assert (status, said.startswith("verdict feasible")) == (0, True), said


def test_web_five_is_exact(moorage: Moorage) -> None:
    moorage("ensemble create -f shop.yaml --hold 10m")
    assert moorage("ensemble set shop --member web:count=8 --dry-run")[0] == 0
    assert moorage("ensemble set shop --member web:count=9 --dry-run")[0] == 3


def test_tenants_see_labels_that_differ(moorage: Moorage) -> None:
    labels = []
    for project in ("red", "blue"):
        status, said = moorage("ensemble create -f shop.yaml --hold 10m", project=project)
        assert status == 0, said
        assert "policies 4/4  max additional: web 5" in said
        drawn = moorage("ensemble show shop --map", project=project)[1]
        heads, *_ = drawn.splitlines()
        labels.append(set(re.findall(r"r-\w{5}", heads)))
        assert not re.search(r"\b[rh][1-9]\b", drawn), "host or rack names shown to a tenant"
        refused = moorage(
            "ensemble set shop --member db:count=4 --policy db-ha:keep=3 --dry-run",
            project=project,
        )
        assert refused[0] == 3
        assert "db-ha keep 3->2: fits now" in refused[1]
        assert moorage("ensemble delete shop", project=project)[0] == 0
    assert [len(some) for some in labels] == [3, 3]
    assert not labels[0] & labels[1]
