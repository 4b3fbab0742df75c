"""What writes do to the ledger, as the wire shows it: generations, moves, reshaping, holds."""

import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import Changeset, PutBookings
from moorage.domain.consumers import Consumer
from moorage.domain.period import HOUR, Period
from moorage.usecases.ports import Store


def new() -> str:
    return str(uuid.uuid4())


def body(
    allocations: Mapping[str, Mapping[str, int]], generation: int | None, **more: str
) -> dict[str, Any]:
    return {
        "allocations": {one: {"resources": given} for one, given in allocations.items()},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
        **more,
    }


def test_generations_of_a_provider(wire: Any) -> None:
    provider = wire.provider("host")
    base = f"/resource_providers/{provider}"
    seen = [wire.generation(provider)]

    def step(method: str, path: str, content: Any = None, version: str = "latest") -> None:
        answer = wire(method, base + path, content, version=version)
        assert answer.status in {200, 201, 204}, answer.raw
        seen.append(wire.generation(provider))

    def now(**more: Any) -> dict[str, Any]:
        return {"resource_provider_generation": seen[-1], **more}

    step("POST", "/inventories", {"resource_class": "VCPU", "total": 4})
    step("PUT", "/inventories", now(inventories={"VCPU": {"total": 4}}))
    step("PUT", "/inventories/VCPU", now(total=8))
    step("PUT", "/traits", now(traits=["HW_CPU_X86_AVX"]))
    step("PUT", "/traits", now(traits=["HW_CPU_X86_AVX"]))
    step("DELETE", "/traits")
    step("PUT", "/aggregates", [new()], version="1.18")
    step("PUT", "/aggregates", now(aggregates=[]))
    step("PUT", "", {"name": "renamed"})
    step("DELETE", "/inventories/VCPU")
    step("DELETE", "/inventories")
    assert seen == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8]


def test_generations_of_a_consumer_and_its_providers(wire: Any) -> None:
    here, there = wire.provider("here", VCPU=4), wire.provider("there", VCPU=4)
    consumer = new()
    path = f"/allocations/{consumer}"
    assert wire("PUT", path, body({here: {"VCPU": 1}}, 0)).status == 409
    assert wire("PUT", path, body({here: {"VCPU": 1}}, None)).status == 204
    assert wire("GET", path).json["consumer_generation"] == 1
    stale = wire("PUT", path, body({here: {"VCPU": 1}}, None))
    assert "expected 1 but got None" in stale.detail
    assert wire("PUT", path, body({there: {"VCPU": 1}}, 1)).status == 204
    assert (wire.generation(here), wire.generation(there)) == (2, 2), "one left behind stays"
    assert wire("PUT", path, body({}, 2)).status == 204
    assert wire.generation(there) == 3, "one cleared moves"
    assert wire("GET", path).json == {"allocations": {}}
    assert wire("PUT", path, body({here: {"VCPU": 1}}, None)).status == 204, "forgotten"
    assert wire("DELETE", path).status == 204
    assert wire.generation(here) == 3, "deleting allocations moves nothing"
    assert wire("DELETE", path).status == 404


def test_a_refused_write_leaves_nothing(wire: Any) -> None:
    provider = wire.provider("host", VCPU=4)
    consumers = {new(): body({provider: {"VCPU": 3}}, None) for _ in range(2)}
    refused = wire("POST", "/allocations", consumers)
    assert refused.status == 409
    assert "The requested amount would exceed the capacity." in refused.detail
    for consumer in consumers:
        assert wire("GET", f"/allocations/{consumer}").json == {"allocations": {}}
    usages = wire("GET", f"/resource_providers/{provider}/usages").json
    assert usages == {"resource_provider_generation": 1, "usages": {"VCPU": 0}}
    for allocations, sentence in (
        ({new(): {"VCPU": 1}}, "that does not exist"),
        ({provider: {"CUSTOM_NONE": 1}}, "No such resource class CUSTOM_NONE"),
    ):
        answer = wire("PUT", f"/allocations/{new()}", body(allocations, None))
        assert (answer.status, sentence in answer.detail) == (400, True), answer.detail
    without = wire("PUT", f"/allocations/{new()}", body({provider: {"DISK_GB": 1}}, None))
    assert (without.status, "invalid." in without.detail) == (409, True)


def test_one_request_moves_an_allocation_between_consumers(wire: Any) -> None:
    provider = wire.provider("host", VCPU=4)
    server, migration = new(), new()
    wire("PUT", f"/allocations/{server}", body({provider: {"VCPU": 4}}, None))
    answer = wire(
        "POST",
        "/allocations",
        {migration: body({provider: {"VCPU": 4}}, None), server: body({}, 1)},
    )
    assert answer.status == 204, answer.raw
    found = wire("GET", f"/resource_providers/{provider}/allocations").json["allocations"]
    assert list(found) == [migration]


def test_usages_by_type(wire: Any) -> None:
    provider = wire.provider("host", VCPU=9)
    wire("PUT", f"/allocations/{new()}", body({provider: {"VCPU": 1}}, None))
    wire("PUT", f"/allocations/{new()}", body({provider: {"VCPU": 2}}, None))
    wire.allocate(new(), {provider: {"VCPU": 4}})

    def usages(query: str = "", version: str = "latest") -> Any:
        return wire("GET", f"/usages?project_id=p{query}", version=version).json["usages"]

    instances = {"VCPU": 3, "consumer_count": 2}
    unknown = {"VCPU": 4, "consumer_count": 1}
    assert usages() == {"INSTANCE": instances, "unknown": unknown}
    assert usages("&consumer_type=INSTANCE") == {"INSTANCE": instances}
    assert usages("&consumer_type=unknown") == {"unknown": unknown}
    assert usages("&consumer_type=all") == {"all": {"VCPU": 7, "consumer_count": 3}}
    assert usages("&consumer_type=NONE") == {}
    assert usages(version="1.9") == {"VCPU": 7}
    assert usages("&user_id=nobody") == {}


def test_reshaping_moves_inventory_and_allocations_to_a_child(wire: Any) -> None:
    root = wire.provider("host", VGPU=4, VCPU=8)
    child = wire.provider("gpu", root)
    consumer = new()
    wire("PUT", f"/allocations/{consumer}", body({root: {"VGPU": 2, "VCPU": 1}}, None))

    def inventories(**totals: int) -> dict[str, Any]:
        return {name: {"total": total} for name, total in totals.items()}

    def reshape(given: int, allocations: Mapping[str, Mapping[str, int]]) -> Any:
        content = {
            "inventories": {
                root: {
                    "resource_provider_generation": given,
                    "inventories": inventories(VCPU=8),
                },
                child: {
                    "resource_provider_generation": 0,
                    "inventories": inventories(VGPU=4),
                },
            },
            "allocations": {consumer: body(allocations, 1)},
        }
        return wire("POST", "/reshaper", content)

    split = {root: {"VCPU": 1}, child: {"VGPU": 2}}
    left = reshape(3, {root: {"VCPU": 1, "VGPU": 2}})
    assert (left.status, left.json["errors"][0]["code"]) in {
        (409, "placement.inventory.inuse"),
        (409, "placement.undefined_code"),
    }
    assert reshape(2, split).json["errors"][0]["code"] == "placement.concurrent_update"
    assert wire.generation(root) == 3, "nothing of the refused ones stays"
    assert reshape(3, split).status == 204
    assert (wire.generation(root), wire.generation(child)) == (6, 3)
    shown = wire("GET", f"/allocations/{consumer}").json["allocations"]
    assert {one: given["resources"] for one, given in shown.items()} == split


def test_re_parenting(wire: Any) -> None:
    old, new_root = wire.provider("old"), wire.provider("new")
    middle = wire.provider("middle", old)
    leaf = wire.provider("leaf", middle)

    def put(parent: str | None, version: str) -> Any:
        content = {"name": "middle", "parent_provider_uuid": parent}
        return wire("PUT", f"/resource_providers/{middle}", content, version=version)

    assert "re-parenting" in put(new_root, "1.36").detail
    assert "un-parenting" in put(None, "1.36").detail
    assert "creating loop" in put(leaf, "1.37").detail
    assert "does not exist" in put(new(), "1.37").detail
    assert put(new_root, "1.37").json["root_provider_uuid"] == new_root
    below = wire("GET", f"/resource_providers/{leaf}").json
    assert (below["root_provider_uuid"], below["generation"]) == (new_root, 0)
    assert put(None, "1.37").json["root_provider_uuid"] == middle
    tree = wire("GET", f"/resource_providers?in_tree={leaf}").json["resource_providers"]
    assert {one["name"] for one in tree} == {"middle", "leaf"}


def test_holds_show_nowhere_but_take_room(wire: Any, store: Store) -> None:
    host = wire.provider("host", VCPU=4)
    member = Consumer(new(), "p", "u")
    now = store.now()
    hold = Booking(
        member.uuid, host, {"VCPU": 3}, Period(now), BookingState.HELD, lapses_at=now + HOUR
    )
    store.commit(Changeset((PutBookings(member, (hold,)),)))
    assert wire("GET", f"/allocations/{member.uuid}").json == {"allocations": {}}
    assert wire("GET", f"/resource_providers/{host}/allocations").json["allocations"] == {}
    usages = wire("GET", f"/resource_providers/{host}/usages").json
    assert usages == {"resource_provider_generation": 1, "usages": {"VCPU": 0}}
    assert wire("GET", "/usages?project_id=p").json["usages"] == {}

    def candidates(amount: int) -> int:
        answer = wire("GET", f"/allocation_candidates?resources=VCPU:{amount}")
        return len(answer.json["allocation_requests"])

    assert (candidates(1), candidates(2)) == (1, 0)
    assert wire.allocate(new(), {host: {"VCPU": 2}}).status == 409
    assert wire.allocate(new(), {host: {"VCPU": 1}}).status == 204


def test_summaries_follow_every_change(wire: Any) -> None:
    host = wire.provider("host", VCPU=4)

    def summary() -> Any:
        answer = wire("GET", "/allocation_candidates?resources=VCPU:1")
        return answer.json["provider_summaries"][host]

    assert summary()["resources"] == {"VCPU": {"capacity": 4, "used": 0}}
    wire.allocate(new(), {host: {"VCPU": 1}})
    assert summary()["resources"] == {"VCPU": {"capacity": 4, "used": 1}}
    content = {"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": 2}
    assert wire("PUT", f"/resource_providers/{host}/traits", content).status == 200
    assert summary()["traits"] == ["HW_CPU_X86_AVX"]
    top = wire.provider("top")
    content = {"name": "host", "parent_provider_uuid": top}
    assert wire("PUT", f"/resource_providers/{host}", content).status == 200
    assert summary()["root_provider_uuid"] == top


def test_the_limit_counts_candidates(wire: Any) -> None:
    for number in range(5):
        wire.provider(f"host{number}", VCPU=4)
    answer = wire("GET", "/allocation_candidates?resources=VCPU:1&limit=3").json
    assert len(answer["allocation_requests"]) == 3
    assert len(answer["provider_summaries"]) == 3


def test_of_parallel_writes_for_the_last_room_exactly_one_wins(wire: Any) -> None:
    host = wire.provider("host", VCPU=4)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: wire.allocate(new(), {host: {"VCPU": 3}}), range(16)))
    assert sorted(answer.status for answer in answers) == [204] + [409] * 15
    usages = wire("GET", f"/resource_providers/{host}/usages").json
    assert usages == {"resource_provider_generation": 2, "usages": {"VCPU": 3}}
