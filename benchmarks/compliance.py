"""How soon violations are recorded, and what that costs who writes: 10,000 ensembles and hosts.

    python -m benchmarks.compliance                        # ten minutes
    python -m benchmarks.compliance --ensembles 1000 --hosts 1000 --seconds 20
    python -m benchmarks.compliance --before ../other/src  # writers beside another version's

Every ensemble has six members and four policies. Measurements of one service on SQLite:

* while 200 allocations a second are written, hosts are disabled and enabled; from the answer to
  that until the event of a member out of service;
* a whole rack is disabled, and a topology is loaded in which every ensemble breaks a policy: until
  the last event, and what single writes take meanwhile;
* what writes take while the monitor runs and while it is stopped, in turns of one run: the median
  and the 99th percentile of each, and what the monitor adds to them;
* what writes take without any of this, with this version and with another (`--before`).

It also prints the memory of the process that judges. Times depend on the machine; compare those of
one run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.service import serving

from moorage.domain.changes import Changeset, PutEnsemble, PutTopology, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_statement
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.fleet_parts import FleetPart
from moorage.domain.member_names import MemberName
from moorage.domain.period import parse_instant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.store import open_store
from moorage.testing.ledger_copy import OPERATOR
from moorage.usecases.ledger.fleet_loading import load_fleet

HEADERS = {
    "X-Auth-Token": "admin",
    "X-User-Id": "u",
    "X-Project-Id": "p",
    "X-Roles": "admin",
    "Content-Type": "application/json",
    "OpenStack-API-Version": "placement 1.39",
}
IN_A_RACK = 40
POLICIES = (
    {"name": "ha", "type": "survive", "members": ["db"], "level": "rack", "keep": 2},
    {"name": "apart", "type": "anti-affinity", "members": ["*"]},
    {"name": "racks", "type": "spread", "members": ["web"], "level": "rack", "min_domains": 2},
    {"name": "zone", "type": "affinity", "members": ["db"], "level": "zone"},
)
OUT = ("member.at_risk", "member.lost")
MANY = 10**6
SIZE = {"VCPU": 1, "MEMORY_MB": 512}


def uuid_of(*parts: object) -> str:
    """The id of a host, an ensemble or a server; the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, " ".join(map(str, parts))))


def topology(hosts: int, *, flat: bool = False) -> Topology:
    """Racks of 40 hosts in four zones; `flat`: all hosts are in one rack."""
    racks = -(-hosts // IN_A_RACK)
    domains = [Domain(f"z{n}", "zone", "location", None) for n in range(4)]
    domains += [Domain(f"r{n}", "rack", "location", f"z{n * 4 // racks}") for n in range(racks)]
    attachments = [
        Attachment(f"h{n}", "r0" if flat else f"r{n // IN_A_RACK}", "location")
        for n in range(hosts)
    ]
    return Topology.build({"location": ("zone", "rack")}, domains, attachments)


def fill(url: str, hosts: int, ensembles: int) -> None:
    """A ledger with the fleet, and the ensembles placed by servers so that no policy is broken."""
    store = open_store(url)
    inventories = (Inventory("VCPU", 64, allocation_ratio=4.0), Inventory("MEMORY_MB", 262_144))
    providers = tuple(
        ResourceProvider(
            uuid=uuid_of("host", n),
            name=f"h{n}",
            parent_uuid=None,
            root_uuid=uuid_of("host", n),
            inventories=inventories,
            traits=frozenset(),
            aggregates=frozenset(),
        )
        for n in range(hosts)
    )
    load_fleet(store, OPERATOR, FleetPart(providers=providers, load=(), flavors=(), topology=None))
    store.commit(Changeset((PutTopology(topology(hosts)),)))
    statements = tuple(read_statement(one, f"policies[{n}]") for n, one in enumerate(POLICIES))
    roles = (Role("db", SIZE), Role("web", SIZE))
    choose = random.Random(1)
    quarter = hosts // 4
    for number in range(ensembles):
        zone = number % 4 * quarter
        racks = choose.sample(range(quarter // IN_A_RACK), min(6, quarter // IN_A_RACK))
        members, writes = [], []
        for at in range(6):
            host = zone + racks[at % len(racks)] * IN_A_RACK + choose.randrange(IN_A_RACK)
            name = MemberName(("db", "web")[at // 3], at % 3)
            server = uuid_of("server", number, at)
            members.append(Member(name, uuid_of("member", number, at), server))
            where = {uuid_of("host", host): SIZE}
            writes.append(ReplaceAllocations(Consumer(server, "p", "u"), where, None))
        one = Ensemble(
            uuid_of("ensemble", number),
            "p",
            "u",
            f"e{number}",
            roles,
            tuple(members),
            statements,
            salt="salt",
        )
        store.commit(Changeset((PutEnsemble(one, None), *writes)))
    store.close()


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """The answer's JSON, if there is any.

        Raises:
            SystemExit: the service refuses it.
        """
        sent = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, sent, HEADERS)
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # it was idle for long
            self._connection.close()
            self._connection.request(method, path, sent, HEADERS)
            answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= http.HTTPStatus.MULTIPLE_CHOICES:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text) if text else None


@dataclass
class Writers:
    """Threads that write allocations of new consumers at a steady rate."""

    port: int
    hosts: int
    rate: float
    threads: int = 4
    took: list[tuple[float, float]] = field(default_factory=list)
    """When each write began, and the seconds that it took."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._running = [
            threading.Thread(target=self._write, args=(number,)) for number in range(self.threads)
        ]
        for one in self._running:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for one in self._running:
            one.join()

    def _write(self, number: int) -> None:
        client, choose = Client(self.port), random.Random(number)
        every, due = self.threads / self.rate, time.time()
        while not self._stop.is_set():
            due += every
            time.sleep(max(0.0, due - time.time()))
            host = uuid_of("host", choose.randrange(self.hosts))
            body = {
                "allocations": {host: {"resources": {"VCPU": 1}}},
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
                "project_id": "q",
                "user_id": "u",
            }
            began = time.time()
            client.call("PUT", f"/placement/allocations/{uuid.uuid4()}", body)
            self.took.append((began, time.time() - began))

    def between(self, first: float, last: float) -> list[float]:
        """The milliseconds of the writes that began in this time."""
        return [took * 1000 for began, took in self.took if first <= began < last]


class Told:
    """The events of the service, from now on."""

    def __init__(self, port: int) -> None:
        self._client = Client(port)
        page = self._client.call("GET", "/v1/events?limit=1000&all_projects=true")
        while page["events"]:
            path = f"/v1/events?after={page['cursor']}&limit=1000&all_projects=true"
            page = self._client.call("GET", path)
        self._cursor = page["cursor"]

    def wait(self, number: int, seconds: float, *types: str) -> list[tuple[float, dict[str, Any]]]:
        """The next events of these types, with their instants: so many, or until time is up."""
        found: list[tuple[float, dict[str, Any]]] = []
        until = time.time() + seconds
        asked = f"&type={','.join(types)}" if types else ""
        while len(found) < number and time.time() < until:
            path = f"/v1/events?after={self._cursor}&limit=1000&all_projects=true&wait=1s{asked}"
            page = self._client.call("GET", path)
            self._cursor = page["cursor"]
            found += ((parse_instant(one["at"]) / 1e6, one) for one in page["events"])
        return found


def disable(client: Client, host: int, *, there: bool = True) -> None:
    """Set or clear the trait of disabled hosts."""
    path = f"/placement/resource_providers/{uuid_of('host', host)}/traits"
    found = client.call("GET", path)
    found["traits"] = ["COMPUTE_STATUS_DISABLED"] if there else []
    client.call("PUT", path, found)


def say(what: str, some: list[float], unit: str = "ms") -> None:
    """A line with median and 99th percentile."""
    if not some:
        print(f"{what}: none", flush=True)
        return
    high = sorted(some)[min(len(some) - 1, len(some) * 99 // 100)]
    print(
        f"{what}: median {statistics.median(some):.2f} {unit}, 99 % {high:.2f} {unit}"
        f" ({len(some)})",
        flush=True,
    )


def memory(supervisor: int) -> dict[str, int]:
    """Resident MB of the supervisor's descendants, by the end of their command line."""
    found: dict[str, int] = {}
    parents = {supervisor}
    for status in sorted(Path("/proc").glob("[0-9]*/status"), key=lambda one: int(one.parts[2])):
        try:
            text = status.read_text()
            words = status.with_name("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if int(fields["PPid"]) in parents:
            parents.add(int(fields["Pid"]))
            name = words[-2].decode(errors="replace")[-40:] if len(words) > 1 else "?"
            found[f"{fields['Pid']} {name}"] = int(fields["VmRSS"].split()[0]) // 1024
    return found


def ready(port: int) -> Client:
    """A client of the service, once all parts of that are usable.

    Raises:
        SystemExit: it is not within a minute.
    """
    client, deadline = Client(port), time.time() + 60
    while True:
        try:
            client.call("GET", "/readyz")
        except SystemExit:
            if time.time() > deadline:
                raise
            time.sleep(0.5)
        else:
            return client


def writers_share(supervisor: int, port: int, hosts: int, seconds: float) -> None:
    """Print what writes take with the monitor and without it, in turns.

    It runs in a planner, which is stopped for the turns without it; nothing else is asked of the
    planners meanwhile, and they log that a check took too long. The first second of each turn is
    left out: what was missed is judged then.
    """
    planners = [int(name.split()[0]) for name in memory(supervisor) if "planner_process" in name]
    turn, took = max(seconds / 10, 2.0), {signal.SIGCONT: list[float](), signal.SIGSTOP: []}
    with Writers(port, hosts, 200) as writers:
        time.sleep(5)
        try:
            for _ in range(5):
                for what, some in took.items():
                    for one in planners:
                        os.kill(one, what)
                    time.sleep(1)
                    began = time.time()
                    time.sleep(turn)
                    some.extend(writers.between(began, time.time() - 0.1))
        finally:
            for one in planners:
                os.kill(one, signal.SIGCONT)
    on, off = took[signal.SIGCONT], took[signal.SIGSTOP]
    say("writes, monitor on", on)
    say("writes, monitor off", off)
    for word, part in (("median", 50), ("99 %", 99)):
        with_it, without = (statistics.quantiles(some, n=100)[part - 1] for some in (on, off))
        print(f"the monitor adds to the {word} {(with_it / without - 1) * 100:+.1f} %", flush=True)


def writes_alone(database: str, hosts: int, seconds: float, source: str | None) -> list[float]:
    """The milliseconds of writes while nothing else happens."""
    with serving(source, "--database", database) as (_, port):
        ready(port)
        with Writers(port, hosts, 200) as writers:
            time.sleep(5)
            began = time.time()
            time.sleep(seconds)
        return writers.between(began, time.time())


def measure(database: str, hosts: int, seconds: float) -> None:
    """All that is measured of this version."""
    with serving(None, "--database", database) as (supervisor, port):
        client = ready(port)
        time.sleep(30)  # the judgement of everything at the start
        print(f"memory, MB: {memory(supervisor)}", flush=True)
        writers_share(supervisor, port, hosts, seconds)
        told, choose = Told(port), random.Random(2)
        visible: list[float] = []
        with Writers(port, hosts, 200) as writers:
            time.sleep(2)
            until = time.time() + seconds
            began = time.time()
            while time.time() < until:
                host = choose.randrange(hosts)
                disable(client, host)
                then = time.time()
                visible += (at - then for at, _ in told.wait(1, 10, *OUT)[:1])
                disable(client, host, there=False)
                time.sleep(choose.uniform(0.2, 1.2))
            say("violation visible after", visible, "s")
            say("writes meanwhile", writers.between(began, until))
            time.sleep(15)
            told.wait(MANY, 3, "member.*", "policy.*")
            rack = range(IN_A_RACK)
            for host in rack:
                disable(client, host)
            began = time.time()
            events = told.wait(MANY, 15, *OUT, "policy.violated")
            last = max((at for at, _ in events), default=began)
            print(f"loss of a rack: {len(events)} events, the last {last - began:.1f} s after")
            say("writes meanwhile", writers.between(began, last))
            for host in rack:
                disable(client, host, there=False)
            time.sleep(20)
            told.wait(MANY, 3, "member.*", "policy.*")
            flat = topology(hosts, flat=True)
            body = {
                "levels": {tree: list(names) for tree, names in flat.levels.items()},
                "domains": [
                    {"name": d.name, "level": d.level, "tree": d.tree, "parent": d.parent}
                    for d in flat.domains.values()
                ],
                "attachments": [
                    {"host": host, "domain": domain, "tree": tree}
                    for (tree, host), domain in flat.attachments.items()
                ],
            }
            client.call("PUT", "/v1/topology/domains", {"topology": body})
            began = time.time()
            events = told.wait(MANY, 60, "policy.violated")
            last = max((at for at, _ in events), default=began)
            print(
                f"a topology that breaks all: {len(events)} events, the last {last - began:.1f} s"
            )
            say("writes meanwhile", writers.between(began, last))
        print(f"memory, MB: {memory(supervisor)}", flush=True)


def main() -> None:
    """Parse the command line, fill a ledger and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--ensembles", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--before", help="the src of another version")
    parser.add_argument("--fill", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fill:
        fill(args.fill, args.hosts, args.ensembles)
        return
    with tempfile.TemporaryDirectory() as folder:
        sizes = ["--hosts", str(args.hosts), "--ensembles", str(args.ensembles)]
        urls = {}
        for name, source in (("this", None), ("before", args.before)):
            if name == "before" and source is None:
                continue
            urls[name] = f"sqlite:///{folder}/{name}.db"
            environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
            command = [sys.executable, "-m", "benchmarks.compliance", "--fill", urls[name], *sizes]
            subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
            print(f"{name}: filled", flush=True)
        for turn in range(3) if args.before else ():
            for name, source in (("before", args.before), ("this", None)):
                took = writes_alone(urls[name], args.hosts, args.seconds / 3, source)
                say(f"writes alone, {name}, turn {turn + 1}", took)
        measure(urls["this"], args.hosts, args.seconds)


if __name__ == "__main__":
    main()
