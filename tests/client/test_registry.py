import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from moorage.client import registry
from moorage.client.registry import Registration
from moorage.domain.errors import InvalidDescription


def registered(pid: int, name: str = "sim") -> Registration:
    return Registration(
        name=name,
        endpoint="http://127.0.0.1:1",
        pid=pid,
        born=registry.start_time(pid) or "",
        token="admin",
        directory="/nowhere",
    )


def test_a_running_process_is_found_by_name(tmp_path: Path) -> None:
    registry.write(tmp_path, registered(os.getpid()))
    found = registry.read(tmp_path, "sim")
    assert found is not None
    assert found.pid == os.getpid()
    assert [one.name for one in registry.running(tmp_path)] == ["sim"]


def test_a_dead_process_is_forgotten(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        registry.write(tmp_path, registered(process.pid))
        assert registry.read(tmp_path, "sim") is not None
        process.kill()
    assert registry.read(tmp_path, "sim") is None
    assert list(tmp_path.iterdir()) == []


def test_a_killed_one_whose_directory_is_there_stays_known(tmp_path: Path) -> None:
    gone = Registration("sim", "http://127.0.0.1:1", 2**22 - 1, "1", "admin", str(tmp_path))
    registry.write(tmp_path, gone)
    assert registry.read(tmp_path, "sim") is None
    assert registry.known(tmp_path, "sim") == gone
    assert list(registry.running(tmp_path)) == []
    assert list(registry.registrations(tmp_path)) == [gone]


def test_another_process_of_the_same_id_is_not_taken_for_it(tmp_path: Path) -> None:
    reused = Registration("sim", "http://127.0.0.1:1", os.getpid(), "1", "admin", "/nowhere")
    registry.write(tmp_path, reused)
    assert registry.read(tmp_path, "sim") is None


def test_a_damaged_registration_is_removed(tmp_path: Path) -> None:
    (tmp_path / "sim.json").write_text("{", encoding="utf-8")
    assert registry.read(tmp_path, "sim") is None
    assert not (tmp_path / "sim.json").exists()


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "a b", "x" * 65, "ä"])
def test_a_name_must_be_a_file_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="not a name"):
        registry.check_name(name)
    assert registry.read(tmp_path, name) is None


def test_the_state_directory_follows_xdg(tmp_path: Path) -> None:
    named = registry.state_directory({"XDG_STATE_HOME": str(tmp_path)})
    assert named == tmp_path / "moorage" / "sims"
    assert registry.state_directory({}) == Path.home() / ".local/state/moorage/sims"


def test_running_simulations_are_clouds_of_openstack(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    state = registry.state_directory(environment)
    clouds = tmp_path / "config" / "openstack" / "clouds.yaml"
    registry.write(state, registered(os.getpid()))
    assert registry.publish(environment) is None
    assert clouds.stat().st_mode & 0o777 == 0o600
    one = registered(os.getpid())
    assert yaml.safe_load(clouds.read_text()) == {
        "clouds": {
            one.name: {
                "auth_type": "admin_token",
                "auth": {"endpoint": one.endpoint, "token": one.token},
            }
        }
    }
    registry.forget(state, one.name)
    assert registry.publish(environment) is None
    assert not clouds.exists()


@pytest.mark.parametrize("theirs", ["clouds: {prod: {}}\n", "", "\xff"])
def test_a_clouds_yaml_of_the_user_is_never_written(tmp_path: Path, theirs: str) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    state = registry.state_directory(environment)
    clouds = tmp_path / "config" / "openstack" / "clouds.yaml"
    clouds.parent.mkdir(parents=True)
    clouds.write_text(theirs, encoding="latin-1")
    one = registered(os.getpid())
    registry.write(state, one)
    named = registry.publish(environment)
    assert named is not None
    assert list(yaml.safe_load(named.read_text())["clouds"]) == [one.name]
    assert clouds.read_text(encoding="latin-1") == theirs
    registry.forget(state, one.name)
    assert registry.publish(environment) is None
    assert not named.exists()
    assert clouds.read_text(encoding="latin-1") == theirs
