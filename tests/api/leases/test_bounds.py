"""How long what the lease API is told may be: as long as in the native API, and typed errors."""

import json
from typing import Any

import pytest
from tests.api.leases.conftest import FLAVOR, Door, instances, whole

from moorage.testing.service import OPERATOR

LONG = "x" * 1_000_000
DATES = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"}


def refused(answer: Any, says: str) -> None:
    assert answer.status_code == 400, answer.text[:1_000]
    message = answer.json["error_message"]
    assert says in message
    assert len(message) < 1_000, "what was sent is not sent back"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "n" * 256}, "255"),
        ({"name": "two\nlines"}, "printable"),
        ({"start_date": LONG}, "format"),
        ({"before_end_date": LONG}, "format"),
        ({"reservations": [whole(before_end=LONG)]}, "before_end"),
        ({"reservations": [whole(before_end={"x": LONG})]}, "before_end"),
        ({"reservations": [whole(before_end="email")]}, "before_end"),
        (
            {"reservations": [whole(hypervisor_properties=json.dumps(["==", "$x", LONG]))]},
            "requirement",
        ),
        ({"reservations": [whole(resource_properties=["==", "$x", LONG])]}, "requirement"),
        ({"reservations": [instances(1, 1, resource_properties=LONG)]}, "requirement"),
        ({"reservations": [instances(1, 1, affinity=LONG)]}, "affinity"),
        ({"reservations": [{**instances(1, 1), "vcpus": LONG}]}, "vcpus"),
        ({"reservations": [{**FLAVOR, "amount": 1, "flavor_id": LONG}]}, "flavor_id"),
        ({"reservations": [{"resource_type": LONG}]}, "not supported"),
        (
            {
                "reservations": [
                    {"resource_type": "virtual:floatingip", "network_id": LONG, "amount": 1}
                ]
            },
            "network_id",
        ),
    ],
    ids=range(15),
)
def test_what_is_too_long_for_a_lease_is_refused_by_name(
    one: Door, change: dict[str, Any], says: str
) -> None:
    one.offer("n1")
    body = {"name": "l", **DATES, "reservations": [instances(1, 1)], **change}
    refused(one.call("POST", "/leases", body), says)
    assert one.call("GET", "/leases").json == {"leases": []}


def test_what_is_too_long_for_a_change_is_refused_by_name(one: Door) -> None:
    lease = one.lease("10:00", "12:00", instances(1, 1)).json["lease"]
    path = f"/leases/{lease['id']}"
    for change, says in (
        ({"name": "n" * 256}, "255"),
        ({"name": "\t"}, "printable"),
        ({"end_date": LONG}, "format"),
        ({"reservations": [{"id": LONG, "amount": 2}]}, "no reservation"),
    ):
        refused(one.call("PUT", path, change), says)
    assert one.call("PUT", path, {"name": "n" * 255}).status_code == 200


@pytest.mark.parametrize("word", ["", "default", "snapshot"])
def test_the_words_that_blazar_knows_are_kept(one: Door, word: str) -> None:
    one.offer("n1")
    made = one.lease("10:00", "12:00", whole(before_end=word)).json["lease"]
    assert made["reservations"][0]["before_end"] == word


def test_what_is_said_of_hosts_and_addresses_is_bounded(one: Door) -> None:
    def ask(method: str, path: str, body: dict[str, Any]) -> Any:
        return one.call(method, path, body, caller=OPERATOR)

    many = {f"key{number}": "v" for number in range(1_001)}
    refused(ask("POST", "/os-hosts", {"name": "n1", "rack": LONG}), "rack")
    refused(ask("POST", "/os-hosts", {"name": "n1", **many}), "1000 keys")
    one.offer("n1", rack="a" * 1_024)
    refused(ask("PUT", "/os-hosts/1", {"rack": LONG}), "rack")
    refused(ask("PUT", "/os-hosts/1", many), "1000 keys")
    address = {"floating_network_id": "net", "floating_ip_address": "198.51.100.7"}
    for key in (*address, "note"):
        refused(ask("POST", "/floatingips", {**address, key: LONG}), key)
    assert ask("POST", "/floatingips", address).status_code == 201
