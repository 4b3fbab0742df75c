"""The plug-ins of `examples/`, and broken ones, as installed packages."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.output import USAGE
from moorage.domain.errors import BadPlugin, UnknownPolicy
from moorage.policies import discover, parse
from moorage.solver.portfolio import Portfolio
from moorage.solver.solver_plugins import check_strategies
from moorage.solver.strategies import Strategies, in_order
from moorage.testing.problems import statement, story_a
from moorage.testing.service import Service

ROOT = Path(__file__).parents[2]
PLUGINS = ("policy-plugin", "solver-plugin")
FLEET = (ROOT / "fleets/three-racks.yaml").read_text(encoding="utf-8")
MOORAGE = str(Path(sys.executable).with_name("moorage"))
SECONDS = 240
BROKEN = {
    "clash": ("moorage.policies", "spread", "moorage_quorum:Quorum", "Moorage itself has a policy"),
    "gone": ("moorage.policies", "gone", "no_such_module:Gone", "cannot be loaded: ModuleNotFound"),
    "misnamed": ("moorage.policies", "majority", "moorage_quorum:Quorum", "its type is 'quorum'"),
    "function": ("moorage.policies", "spare", "moorage_quorum:spare", "it is not a dataclass"),
    "half": ("moorage.policies", "half", "moorage.policies.contract:Weaker", "it has no parse"),
    "cpsat": ("moorage.solvers", "cpsat", "moorage_restarts:Restarts", "Moorage itself has a str"),
}
"""Entry points that no service can use: group, name, object, and what is said of it."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which both examples are installed, from copies of their sources."""
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("installed")
    for name in PLUGINS:
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "examples" / name, sources / name, ignore=leave_out)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    folders = [str(sources / name) for name in PLUGINS]
    subprocess.run([*command, *options, *folders], check=True, timeout=SECONDS)
    return target


@pytest.fixture
def plugged(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process has the plug-ins."""
    monkeypatch.syspath_prepend(str(installed))
    discover.cache_clear()
    yield
    monkeypatch.undo()
    discover.cache_clear()


@pytest.fixture
def broken(plugged: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Installs one of `BROKEN` beside the plug-ins; returns its folder."""

    def install(name: str) -> Path:
        group, word, target, _ = BROKEN[name]
        record = tmp_path / "broken-2.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.0\n")
        (record / "entry_points.txt").write_text(f"[{group}]\n{word} = {target}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        discover.cache_clear()
        return tmp_path

    return install


def own_strategy() -> None:
    check_strategies(("cpsat",))


def environment(*folders: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLUGINS)
def test_the_tests_of_an_example_pass(installed: Path, name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    ran = subprocess.run(
        [*command, "-n0", "--rootdir", str(ROOT), str(ROOT / "examples" / name)],
        env=environment(installed),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_commands_and_reference_show_the_policy(installed: Path) -> None:
    def said(*command: str) -> str:
        return subprocess.run(
            command,
            env=environment(installed, ROOT / "docs"),
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
        ).stdout

    listed = json.loads(said(MOORAGE, "policy", "list", "-f", "json"))
    assert "quorum" in {one["type"] for one in listed["policy_types"]}
    page = said(sys.executable, "-c", "from gen.policies import page; print(page())")
    assert "## `quorum` { #quorum }" in page
    assert "How many domains may fail at once." in page


def test_the_api_places_explains_and_relaxes_with_the_policy(plugged: None) -> None:
    service = Service(FLEET)
    types = service.call("GET", "/policy-types").json["policy_types"]
    assert "quorum" in {one["type"] for one in types}
    vote: dict[str, Any] = {"name": "vote", "type": "quorum", "members": ["etcd"], "level": "rack"}
    etcd = {"name": "etcd", "count": 5, "resources": {"VCPU": 1}}
    body = {"name": "e", "members": [etcd], "policies": [vote], "decide": {"hold": "PT10M"}}
    made = service.call("POST", "/ensembles", {"ensemble": body})
    assert made.status_code == 201, made.text
    (status,) = made.json["decision"]["policies"]
    assert (status["name"], status["satisfied"]) == ("vote", True)

    strict = {**body, "name": "f", "policies": [{**vote, "lose": 2}]}
    refused = service.call("POST", "/ensembles", {"ensemble": strict})
    assert refused.status_code == 409, refused.text
    explained = json.dumps(refused.json)
    assert "a majority of 5 x etcd outside any 2 racks" in explained
    assert '{"lose": [2, 1], "policy": "vote"}' in explained

    wrong = {**body, "name": "g", "policies": [{**vote, "lose": 0}]}
    bad = service.call("POST", "/ensembles", {"ensemble": wrong})
    assert bad.status_code == 400
    assert "lose" in bad.text
    service.close()


def test_an_ensemble_outlives_the_plug_in(
    plugged: None, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(FLEET)
    etcd = {"name": "etcd", "count": 3, "resources": {"VCPU": 1}}
    vote = {"name": "vote", "type": "quorum", "members": ["etcd"]}
    body = {"name": "e", "members": [etcd], "policies": [vote]}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    monkeypatch.undo()
    discover.cache_clear()
    assert service.call("GET", f"/ensembles/{made['id']}").json["ensemble"]["policies"]
    asked = {"decision": {"ensemble_id": made["id"]}}
    refused = service.call("POST", "/decisions", asked)
    assert (refused.status_code, refused.json["errors"][0]["code"]) == (
        400,
        "ensemble.unknown_policy",
    )
    path = f"/ensembles/{made['id']}/policies/vote"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    assert service.call("POST", "/decisions", asked).status_code == 201
    service.close()


def test_what_the_strategy_finds_is_verified_as_others_are(plugged: None) -> None:
    solver = Portfolio(in_order(("restarts", "cpsat")))
    built = story_a()
    found = solver.exact.solve(built.problem, time_limit=10_000_000, seed=1)
    assert found.proven, "cpsat proves what restarts found"
    alone = in_order(("restarts",)).solve(built.problem, time_limit=10_000_000, seed=1)
    assert alone.solver == "restarts"
    assert not alone.proven or alone.value == 0
    assert isinstance(in_order(("restarts",)), Strategies)


def test_without_the_package_the_policy_is_unknown() -> None:
    with pytest.raises(UnknownPolicy):
        parse(statement("vote", "quorum", "etcd"))
    with pytest.raises(BadPlugin, match="no strategy 'restarts' is installed; there are: cpsat"):
        check_strategies(("restarts",))
    with pytest.raises(BadPlugin, match="at least one"):
        check_strategies(())


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_plug_in_that_cannot_be_used_is_named(broken: Callable[[str], Path], name: str) -> None:
    broken(name)
    check: Callable[[], object] = (
        discover if BROKEN[name][0] == "moorage.policies" else own_strategy
    )
    with pytest.raises(BadPlugin) as caught:
        check()
    assert f"{BROKEN[name][1]} of broken 2.0" in caught.value.message
    assert BROKEN[name][3] in caught.value.message


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("gone", [], "policy plug-in gone of broken 2.0 cannot be loaded"),
        ("cpsat", [], "Moorage itself has a strategy of that name"),
        (None, ["--solver-strategies", "tabu"], "no strategy 'tabu' is installed"),
    ],
)
def test_the_service_does_not_start_with_it(
    installed: Path,
    broken: Callable[[str], Path],
    tmp_path: Path,
    name: str | None,
    options: list[str],
    said: str,
) -> None:
    folders = [installed] if name is None else [installed, broken(name)]
    ran = subprocess.run(
        [MOORAGE, "serve", "--port", "0", *options],
        env=environment(*folders) | {"XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert ran.returncode == USAGE, ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
