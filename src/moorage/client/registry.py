"""The registry of simulations: one small JSON file each in the user's state directory.

A file outlives a killed simulation, so every read checks that its process still runs. A process is
identified by its id and its start time, since ids are used again. A killed simulation stays
registered as long as its directory exists: it can be resumed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_STARTED: Final = 19
"""Index of the start time among the fields of /proc/<pid>/stat after the command's name."""


class Registration(msgspec.Struct, frozen=True):
    """A started simulation. `directory` holds its database and its log."""

    name: str
    endpoint: str
    pid: int
    born: str
    """The process's start time, or empty where the system does not show it."""
    token: str
    directory: str
    fleet: str = ""


def state_directory(environment: Mapping[str, str]) -> Path:
    """Where registrations live: `$XDG_STATE_HOME/moorage/sims`."""
    home = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "moorage" / "sims"


def check_name(name: str) -> str:
    """The name, if it is valid.

    Raises:
        InvalidDescription: it could not be a file's name.
    """
    if NAME.fullmatch(name) is None:
        raise InvalidDescription(
            f"not a name for a simulation: {name!r} (letters, digits, '.', '_' and '-')"
        )
    return name


def start_time(pid: int) -> str | None:
    """When the process started: empty where the system does not show it, None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "" if not Path("/proc/self/stat").exists() and _answers_signals(pid) else None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[_STARTED]


def _answers_signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def alive(registration: Registration) -> bool:
    """Whether the registered process still runs."""
    return start_time(registration.pid) == registration.born


def write(directory: Path, registration: Registration) -> None:
    """Write a registration, replacing an older one atomically."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / f"{registration.name}.json"
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(msgspec.json.encode(registration))
    fresh.replace(path)


def known(directory: Path, name: str) -> Registration | None:
    """The simulation of that name, running or killed, or None.

    A registration that nothing can be made of is removed: a damaged one, or that of a killed
    simulation whose directory is gone.
    """
    if NAME.fullmatch(name) is None:
        return None
    path = directory / f"{name}.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Registration)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        path.unlink(missing_ok=True)
        return None
    if not alive(found) and not Path(found.directory).is_dir():
        path.unlink(missing_ok=True)
        return None
    return found


def read(directory: Path, name: str) -> Registration | None:
    """The running simulation of that name, or None."""
    found = known(directory, name)
    return None if found is None or not alive(found) else found


def forget(directory: Path, name: str) -> None:
    """Remove a registration, if there is one."""
    (directory / f"{name}.json").unlink(missing_ok=True)


_OURS: Final = "# Written by `moorage sim`: its running simulations, and nothing else.\n"
"""The first line of a `clouds.yaml` that may be rewritten and removed."""


def publish(environment: Mapping[str, str]) -> Path | None:
    """Write the running simulations to a `clouds.yaml`, so that `openstack` knows them, too.

    It is the user's where that is not there, or is ours; with simulations no more it is removed. A
    file of the user's stays as it is. Then it is one in the state directory, whose path is
    returned: `OS_CLIENT_CONFIG_FILE` names it.
    """
    state = state_directory(environment)
    config = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    usual, own = Path(config) / "openstack" / "clouds.yaml", state / "clouds.yaml"
    found = list(running(state))
    try:
        foreign = usual.exists() and not usual.read_text(encoding="utf-8").startswith(_OURS)
        if not foreign:
            own.unlink(missing_ok=True)
            _write_clouds(usual, found)
            return None
    except (OSError, ValueError):
        pass  # it cannot be read or written: as one that is not ours
    _write_clouds(own, found)
    return own if found else None


def _write_clouds(path: Path, found: Sequence[Registration]) -> None:
    if not found:
        path.unlink(missing_ok=True)
        return
    clouds = {
        one.name: {
            "auth_type": "admin_token",
            "auth": {"endpoint": one.endpoint, "token": one.token},
        }
        for one in found
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.touch(mode=0o600)
    # JSON is YAML, and needs no library.
    text = msgspec.json.format(msgspec.json.encode({"clouds": clouds}), indent=2).decode()
    fresh.write_text(f"{_OURS}{text}\n", encoding="utf-8")
    fresh.replace(path)


def registrations(directory: Path) -> Iterator[Registration]:
    """Every simulation, running or killed, by name."""
    for path in sorted(directory.glob("*.json")):
        found = known(directory, path.stem)
        if found is not None:
            yield found


def running(directory: Path) -> Iterator[Registration]:
    """Every running simulation, by name."""
    return (one for one in registrations(directory) if alive(one))
