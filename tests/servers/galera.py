"""A real Galera cluster for the tests: three nodes of MariaDB on this machine, without root.

The nodes start from copies of one folder of data. One that was killed and comes back gets what it
missed from the write sets that the others keep; for the transfer of a whole folder, which is not
needed, a few lines stand in for the scripts of the packages.
"""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pymysql
import pytest
from tests.servers.mariadb import USER, MariadbServer, ask, is_mariadb, program
from tests.servers.ports import free_port
from tests.servers.proxy import ON_MARIADB, Proxy
from tests.servers.unprivileged import user

NODES: Final = 3
_PROVIDERS: Final = (
    *("/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib64/galera", "/usr/lib/galera-4"),
    *("/usr/local/lib/galera", "/opt/homebrew/lib"),
)
NONE_FOUND: Final = (
    "Galera was NOT tested: no program mariadbd, or no libgalera_smm.so beside it, was found"
)
# A node is taken for dead sooner than usual; what it may answer alone for a second must be over.
_GROUP: Final = (
    "evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT1.5S;"
    "evs.inactive_timeout=PT4S;evs.install_timeout=PT4S;gcache.size=32M"
)

_HAND_OVER: Final = """#!/bin/sh
# What a node that comes back is told about, beside the write sets it missed: where they begin.
while [ $# -gt 0 ]; do
  case "$1" in
    --role) role=$2 ;;
    --address) address=$2 ;;
    --datadir) data=$2 ;;
    --gtid) gtid=$2 ;;
    --bypass) bypass=yes ;;
  esac
  shift
done
if [ "$role" = joiner ]; then
  rm -f "$data/handed"
  echo "ready $data"
  while [ ! -s "$data/handed" ]; do sleep 0.05; done
  cat "$data/handed"
elif [ -n "$bypass" ]; then
  echo "$gtid" > "$address/handing" && mv "$address/handing" "$address/handed"
  echo "done $gtid"
else
  echo "a whole folder is not handed over here" >&2
  exit 22
fi
"""


@cache
def provider() -> Path | None:
    """The library that makes nodes of servers, where there is one and a server it is for."""
    server = program()
    if server is None or not is_mariadb(server):
        return None
    places = (Path(place) / "libgalera_smm.so" for place in _PROVIDERS)
    return next((found for found in places if found.exists()), None)


class Node(MariadbServer):
    """One of them. Its port is for clients; it talks to the others on the group's."""

    def __init__(self, folder: Path, group: tuple[int, ...], *, copied_from: "Node | None") -> None:
        folder.mkdir()
        super().__init__(folder, copied_from=copied_from)
        self._own, self._missed = group[0], free_port()
        self._members = ",".join(f"127.0.0.1:{port}" for port in sorted(group))
        transfer = folder / "wsrep_sst_copy"
        transfer.write_text(_HAND_OVER)
        transfer.chmod(0o755)

    def found(self) -> None:
        """Start it as the first of a cluster."""
        self._launch("--wsrep-new-cluster", *self._options())
        self.wait()

    def launch(self) -> None:
        """Start it as one more, without waiting until it is."""
        self._launch(*self._options(), f"--wsrep-start-position={self._recovered()}")

    def start(self) -> None:
        """See `MariadbServer`."""
        self.launch()
        self.wait()

    def _options(self) -> list[str]:
        group = (
            f"base_host=127.0.0.1;base_port={self._own};gcache.dir={self._data}"
            f";gmcast.listen_addr=tcp://127.0.0.1:{self._own}"
            f";ist.recv_addr=127.0.0.1:{self._missed};{_GROUP}"
        )
        return [
            *("--wsrep-on=ON", f"--wsrep-provider={provider()}", "--wsrep-slave-threads=4"),
            *("--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-sst-method=copy"),
            *("--wsrep-cluster-name=moorage", f"--wsrep-cluster-address=gcomm://{self._members}"),
            *("--wsrep-node-address=127.0.0.1", f"--wsrep-node-name={self._folder.name}"),
            f"--wsrep-provider-options={group}",
        ]

    def _recovered(self) -> str:
        """How far it had come when it ended, as the packages' start scripts find out."""
        words = [self._program, "--no-defaults", f"--datadir={self._data}", "--wsrep-recover"]
        told = subprocess.run(
            [*words, "--skip-networking", f"--socket={self._folder}/socket", *self._options()],
            user=user(),
            cwd="/",
            check=False,
            capture_output=True,
            timeout=60,
        )
        said = (told.stdout + told.stderr).decode()
        _, found, rest = said.partition("Recovered position:")
        assert found, said[-2000:]
        return rest.split()[0]

    def _greet(self) -> None:
        if not self.serves():
            raise pymysql.OperationalError("not one of the cluster yet")

    def serves(self) -> bool:
        """Whether it is one of those who are most, and has what they have."""
        return ask(self.url, "SHOW STATUS LIKE 'wsrep_ready'") == (("wsrep_ready", "ON"),)

    def isolate(self, *, alone: bool) -> None:
        """Cut it off from the others, not from its clients; or take that back."""
        option = f"gmcast.isolate={int(alone)}"
        ask(self.url, f"SET GLOBAL wsrep_provider_options = '{option}'")
        deadline = time.monotonic() + 100
        while self.serves() == alone:
            assert time.monotonic() < deadline
            time.sleep(0.02)


class Cluster:
    """Three nodes with the same data."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.nodes: list[Node] = []
        self._folder, self._made = folder, 0

    def start(self) -> None:
        """Returns when all of them serve."""
        folder = self._folder
        ports = tuple(free_port() for _ in range(NODES))
        groups = [(port, *(one for one in ports if one != port)) for port in ports]
        first = Node(folder / "node0", groups[0], copied_from=None)
        self.nodes.append(first)
        # So that all have one history, however short.
        first.found()
        first.stop()
        self.nodes += [
            Node(folder / f"node{number}", groups[number], copied_from=first)
            for number in range(1, NODES)
        ]
        first.found()
        for one in self.nodes[1:]:
            one.launch()
        for one in self.nodes[1:]:
            one.wait()

    def make(self) -> str:
        """A new, empty database; its name."""
        self._made += 1
        name = f"moorage_{self._made}"
        ask(self.nodes[0].url, f"CREATE DATABASE {name}")
        return name

    def urls(self, database: str) -> list[str]:
        """Of a database on each of the nodes."""
        return [url(database, one.port) for one in self.nodes]

    def end(self) -> None:
        """Throw all of them away."""
        for one in self.nodes:
            one.end()


class NodeProxy(Proxy):
    """A proxy before a cluster: connections lead to one node, the same as long as it serves."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = cluster.nodes
        super().__init__(self._nodes[0].port, ON_MARIADB)

    def _connect(self) -> socket.socket:
        used = next(one for one in self._nodes if one.port == self.target)
        self.target = next((one.port for one in (used, *self._nodes) if _serves(one)), used.port)
        return super()._connect()


def _serves(node: Node) -> bool:
    try:
        return node.serves()
    except pymysql.Error:
        return False


def url(database: str, port: int) -> str:
    """Of a database on the node, or behind the proxy, on this port."""
    return f"mysql://{USER}@127.0.0.1:{port}/{database}"


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """For a while, and thrown away after."""
    if provider() is None:
        pytest.skip(NONE_FOUND)
    folder = Path(tempfile.mkdtemp(prefix="moorage-galera-"))
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)
