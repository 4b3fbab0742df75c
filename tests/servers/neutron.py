"""Neutron's ports and trunks, in memory: a part of the small server of `tests.servers.nova`."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.servers.nova_answers import Lost, Reply

Json = Any


@dataclass
class Neutron:
    """What it has, how it fails, and what was done."""

    ports: dict[str, Json] = field(default_factory=dict)
    trunks: dict[str, Json] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    """Names of all ports that were made."""
    quota: int = 100
    faults: list[int | None] = field(default_factory=list)
    """Statuses of the answers to the next requests that change something; None: an ordinary one."""
    lose_answers: int = 0
    """So many requests that change something are carried out without an answer."""

    def answer(self, method: str, path: str, query: dict[str, str], body: Json) -> tuple[int, Json]:
        if method == "GET":
            return 200, self._read(path, query)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise Reply(fault)
        found = self._change(method, path, body)
        if self.lose_answers:
            self.lose_answers -= 1
            raise Lost
        return found

    def add_trunk(self, name: str, server: str) -> Json:
        """A trunk whose parent port is attached to a server."""
        parent = self._port({"name": "parent", "device_id": server})
        trunk = {"id": str(uuid.uuid4()), "name": name, "port_id": parent["id"], "sub_ports": []}
        self.trunks[trunk["id"]] = trunk
        return trunk

    def add_port(self, **fields: str) -> Json:
        """A port that somebody has made."""
        return self._port(fields)

    def _port(self, fields: Json) -> Json:
        port = {"id": str(uuid.uuid4()), "description": "", "device_id": "", **fields}
        self.ports[port["id"]] = port
        return port

    def _read(self, path: str, query: dict[str, str]) -> Json:
        kind, _, id_ = path.partition("/")
        every = {"ports": self.ports, "trunks": self.trunks}[kind]
        if not id_:
            wanted = query.items()
            return {kind: [one for one in every.values() if wanted <= one.items()]}
        if id_ not in every:
            raise Reply(404, f"{kind} {id_} could not be found.")
        return {kind.removesuffix("s"): every[id_]}

    def _change(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        match method, path.split("/"):
            case "POST", ["ports"]:
                if len(self.ports) >= self.quota:
                    raise Reply(409, "Quota exceeded for resources: ['port'].")
                self.created.append(body["port"]["name"])
                return 201, {"port": self._port(body["port"])}
            case "DELETE", ["ports", id_]:
                if self.ports[id_]["device_id"] or self._on_trunk(id_):
                    raise Reply(409, f"Port {id_} is in use.")
                del self.ports[id_]
                return 204, None
            case "PUT", ["trunks", id_, "add_subports"]:
                for one in body["sub_ports"]:
                    there = self.trunks[id_]["sub_ports"]
                    assert one["segmentation_id"] not in {sub["segmentation_id"] for sub in there}
                    there.append(one)
                return 200, self.trunks[id_]
            case "PUT", ["trunks", id_, "remove_subports"]:
                gone = {one["port_id"] for one in body["sub_ports"]}
                kept = [one for one in self.trunks[id_]["sub_ports"] if one["port_id"] not in gone]
                self.trunks[id_]["sub_ports"] = kept
                return 200, self.trunks[id_]
        raise Reply(404)

    def _on_trunk(self, port_id: str) -> bool:
        subs = [one for trunk in self.trunks.values() for one in trunk["sub_ports"]]
        return any(one["port_id"] == port_id for one in subs)
