"""Clients that do everything at once to a few replicas, and remember what they were told.

Each client owns its consumers, so it knows after every answer what must stand; hosts belong to
all. Half of the hosts only ever get allocations: on them generations can be counted and use
never exceeds the inventory. The other half is shrunk, grown and reshaped meanwhile.
"""

import random
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from tests.servers.replica import MEMBER, Replica, Unacknowledged

ADMIN = {
    "X-Auth-Token": "admin",
    "Content-Type": "application/json",
    "OpenStack-API-Version": "placement 1.39",
}
STEADY = tuple(str(uuid.UUID(int=number + 1)) for number in range(16))
MOVING = tuple(str(uuid.UUID(int=number + 101)) for number in range(16))
TOTAL = 20
"""VCPU of each host: few enough that many claims are refused."""
AGAIN = (429, 503)
"""Answers that ask a tenant to send the request again."""
PATIENCE = 10
"""How often a tenant's request is sent again."""
TENANTS = 16
"""Projects that the clients' decisions are of."""
OWN = 12
"""Consumers of one client."""

Held = dict[str, int]
"""Host -> VCPU; empty: no allocation."""


@dataclass
class Client:
    """See the module."""

    number: int
    replicas: Sequence[Replica]
    dice: random.Random
    killing: bool = False
    """Whether services are killed meanwhile, so that answers may stay away."""
    stands: dict[str, Held] = field(default_factory=dict)
    generation: dict[str, int] = field(default_factory=dict)
    doubtful: dict[str, Held] = field(default_factory=dict)
    """Consumers whose last answer never came, with what was asked for."""
    moved: Counter[str] = field(default_factory=Counter)
    """How far acknowledged writes moved each host's generation."""
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds until each answer."""

    def run(self, stop: Event) -> None:
        """Go on until told to stop, or until an answer is wrong."""
        steps = (
            (self.claim, 8),
            (self.move, 3),
            (self.delete, 4),
            (self.resize, 2),
            (self.reshape, 1),
            (self.decide, 1),
        )
        actions = [step for step, weight in steps for _ in range(weight)]
        while not stop.is_set() and not self.wrong:
            step = self.dice.choice(actions)
            try:
                step()
            except Unacknowledged as error:
                if not self.killing:
                    self.wrong.append(f"{step.__name__}: {error!r}")
                time.sleep(0.05)

    # --- asking -------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> tuple[int, Any]:
        """One request to any replica."""
        replica, began = self.dice.choice(self.replicas), time.monotonic()
        headers = more.get("headers", ADMIN)
        status, content = replica.ask(method, path, body, headers)
        self.waits.append(time.monotonic() - began)
        self.done[f"{method} {path.split('/')[2]} {status}"] += 1
        busy = status == 503 and (self.killing or path == "/v1/ensembles")
        if status >= 500 and not busy:
            self.wrong.append(f"{method} {path}: {status} {content}")
        return status, content

    def consumer(self) -> str:
        """One of its own, by chance."""
        return str(uuid.UUID(int=(self.number + 1 << 64) + self.dice.randrange(OWN)))

    # --- steps --------------------------------------------------------------------------------

    def claim(self) -> None:
        """Allocate where nothing stands; a full host is the only good reason to refuse."""
        name = self.consumer()
        if not self.stands.get(name):
            self.put(name)

    def move(self) -> None:
        """Replace what stands."""
        name = self.consumer()
        if self.stands.get(name):
            self.put(name)

    def put(self, name: str) -> None:
        """Write one or two hosts for a consumer whose generation is known."""
        self.settle(name)
        hosts = self.dice.sample(STEADY + MOVING, self.dice.choice((1, 1, 2)))
        wanted = {host: self.dice.randint(1, 4) for host in hosts}
        body = {
            "allocations": {host: {"resources": {"VCPU": n}} for host, n in wanted.items()},
            "consumer_generation": self.generation.get(name),
            "consumer_type": "INSTANCE",
            "project_id": f"project-{self.number}",
            "user_id": "ann",
        }
        self.doubtful[name] = wanted
        status, content = self.ask("PUT", f"/placement/allocations/{name}", body)
        if status == 204:
            self.know(name, wanted, (self.generation.get(name) or 0) + 1)
            self.moved.update(list(wanted))
            self.look(name)
        elif status == 409:
            # Who names no generation of a provider never loses a race for one.
            if "Unable to allocate inventory" not in str(content):
                self.wrong.append(f"PUT allocations: {content}")
            del self.doubtful[name]
        elif status != 503:
            self.wrong.append(f"PUT allocations: {status} {content}")

    def delete(self) -> None:
        """Give everything back; generations of providers stay."""
        name = self.consumer()
        self.settle(name)
        if self.stands.get(name):
            self.doubtful[name] = {}
            status, content = self.ask("DELETE", f"/placement/allocations/{name}")
            if status == 204:
                self.know(name, {}, None)
                self.look(name)
            elif status != 503:
                self.wrong.append(f"DELETE allocations: {status} {content}")

    def know(self, name: str, held: Held, generation: int | None) -> None:
        """Note what was acknowledged."""
        self.stands[name] = held
        self.doubtful.pop(name, None)
        if generation is None:
            self.generation.pop(name, None)
        else:
            self.generation[name] = generation

    def look(self, name: str) -> None:
        """What was acknowledged is seen at once, on whichever replica."""
        held, generation = self.seen(name)
        if (held, generation) != (self.stands[name], self.generation.get(name)):
            self.wrong.append(
                f"{name} has {held} at {generation}, acknowledged was"
                f" {self.stands[name]} at {self.generation.get(name)}"
            )

    def seen(self, name: str) -> tuple[Held, int | None]:
        """What a replica says of a consumer."""
        status, content = self.ask("GET", f"/placement/allocations/{name}")
        if status != 200:
            raise OSError(f"{status}: {content}")
        found = {host: one["resources"]["VCPU"] for host, one in content["allocations"].items()}
        return found, content.get("consumer_generation")

    def settle(self, name: str) -> None:
        """After an answer that never came: one of two things stands, nothing in between."""
        if name in self.doubtful:
            held, generation = self.seen(name)
            before, wanted = self.stands.get(name, {}), self.doubtful[name]
            was = self.generation.get(name)
            if (held, generation) == (wanted, (was or 0) + 1 if wanted else None):
                self.moved.update(list(wanted))
            elif (held, generation) != (before, was):
                self.wrong.append(
                    f"{name} has {held} at {generation}, neither {before} at {was} nor {wanted}"
                )
            self.know(name, held, generation)

    def resize(self) -> None:
        """Change an inventory; losing a race for the generation is the caller's to see."""
        host = self.dice.choice(MOVING)
        path = f"/placement/resource_providers/{host}/inventories/VCPU"
        _, content = self.ask("GET", path)
        if "resource_provider_generation" in content:
            total = self.dice.choice((TOTAL // 2, TOTAL, TOTAL * 2))
            generation = content["resource_provider_generation"]
            body = {"total": total, "resource_provider_generation": generation}
            self.expect("PUT inventories", self.ask("PUT", path, body), {200, 409})

    def reshape(self) -> None:
        """Give a host a class more or less, and keep the allocations that stand."""
        host = self.dice.choice(MOVING)
        path = f"/placement/resource_providers/{host}/inventories"
        status, content = self.ask("GET", path)
        if status == 200:
            stock = {name: {"total": one["total"]} for name, one in content["inventories"].items()}
            if stock.pop("DISK_GB", None) is None:
                stock["DISK_GB"] = {"total": 100}
            generation = content["resource_provider_generation"]
            of_host = {"resource_provider_generation": generation, "inventories": stock}
            body = {"inventories": {host: of_host}, "allocations": {}}
            self.expect("POST reshaper", self.ask("POST", "/placement/reshaper", body), {204, 409})

    def decide(self) -> None:
        """Hold places for three members jointly, and let go of them."""
        name = str(uuid.UUID(int=self.dice.getrandbits(128), version=4))
        members = [{"name": "web", "count": 3, "flavor": "m1.small"}]
        apart = {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"}
        ensemble = {"name": f"soak {name}", "id": name, "members": members, "policies": [apart]}
        body = {"ensemble": {**ensemble, "decide": {"hold": "PT20S"}}}
        answer = self.patiently("POST", "/v1/ensembles", body)
        self.expect("POST ensembles", answer, {201, 409})
        if answer[0] == 201:
            told = {"If-Match": f'"{answer[1]["ensemble"]["generation"]}"'}
            path = f"/v1/ensembles/{answer[1]['ensemble']['id']}"
            gone = self.patiently("DELETE", path, **told)
            self.expect("DELETE ensembles", gone, {200, 202, 204})

    def patiently(
        self, method: str, path: str, body: object = None, **more: str
    ) -> tuple[int, Any]:
        """A tenant's request, sent again when asked to: who does so must succeed in the end."""
        project = f"soak-{self.number % TENANTS}"
        headers = {**MEMBER, "X-Auth-Token": f"{project}-user:{project}", **more}
        answer, patience = self.ask(method, path, body, headers=headers), PATIENCE
        while answer[0] in AGAIN and patience:
            patience -= 1
            time.sleep(self.dice.uniform(0.1, 1))
            answer = self.ask(method, path, body, headers=headers)
        if answer[0] in AGAIN and not self.killing:
            self.wrong.append(f"{method} {path}: {answer[1]} {PATIENCE} times")
        return answer

    def expect(self, what: str, answer: tuple[int, Any], good: set[int]) -> None:
        """Note an answer that should not be; 5xx only while services are killed."""
        if answer[0] not in good and answer[0] not in AGAIN and answer[0] < 500:
            self.wrong.append(f"{what}: {answer[0]} {answer[1]}")
