"""Where the cloud's files and programs are, and at which ports its services answer."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.ports import free_port

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = ROOT / ".cache" / "minicloud"
"""What `make minicloud` installs from the lock."""
HOME: Final = ROOT / ".cache" / "minicloud-run"
"""What a running cloud writes; removed when it is stopped."""
PASSWORD: Final = "only-on-loopback"
COMPUTES: Final = 3
SERVICES: Final = ("keystone", "glance", "neutron", "nova", "heat", "moorage")
PORTS: Final = (*SERVICES, "database", "broker", "broker-nodes", "broker-names")


@dataclass(frozen=True)
class Layout:
    """One cloud's folder and ports."""

    home: Path
    ports: dict[str, int]

    @classmethod
    def made(cls, home: Path = HOME) -> "Layout":
        """A new folder, and ports that are free now.

        Raises:
            FileExistsError: a cloud was started there and not stopped.
        """
        home.mkdir(parents=True)
        layout = cls(home, {name: free_port() for name in PORTS})
        (home / "ports.json").write_text(json.dumps(layout.ports))
        return layout

    @classmethod
    def found(cls, home: Path = HOME) -> "Layout | None":
        """The cloud that was started there, if any."""
        try:
            return cls(home, json.loads((home / "ports.json").read_text()))
        except FileNotFoundError:
            return None

    def folder(self, name: str) -> Path:
        """The folder of a service or program."""
        made = self.home / name
        made.mkdir(exist_ok=True)
        return made

    def url(self, service: str, path: str = "") -> str:
        return f"http://127.0.0.1:{self.ports[service]}{path}"

    @property
    def identity(self) -> str:
        return self.url("keystone", "/v3")

    @property
    def broker(self) -> str:
        """As oslo.messaging writes it."""
        return f"rabbit://guest:guest@127.0.0.1:{self.ports['broker']}/"

    def database(self, name: str) -> str:
        """As SQLAlchemy writes it."""
        return f"mysql+pymysql://root@127.0.0.1:{self.ports['database']}/{name}?charset=utf8mb4"

    @property
    def computes(self) -> list[str]:
        """Names of the hosts."""
        return [f"compute{number}" for number in range(1, COMPUTES + 1)]

    @property
    def environ(self) -> dict[str, str]:
        """For programs of the cloud: nothing of the caller's but where programs are."""
        return {
            "PATH": os.pathsep.join([str(ENVIRONMENT / "bin"), os.environ["PATH"]]),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            # Nova's filter and Heat's plug-in are Moorage's own, imported from our sources.
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(self.home / "plugins")]),
            "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1",
        }

    def remove(self) -> None:
        shutil.rmtree(self.home)


def inside(name: str) -> str:
    """A program or script of the cloud's environment."""
    return str(ENVIRONMENT / "bin" / name)


def ours(name: str) -> str:
    """A program of the environment that this runs in."""
    return str(Path(sys.executable).with_name(name))
