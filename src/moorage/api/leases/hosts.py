"""`/os-hosts` and `/floatingips`: reservable hosts and addresses, properties and allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.api.leases import shapes
from moorage.api.leases.call import Call, Collection, Reply
from moorage.api.leases.dates import stamped
from moorage.domain.bookings import BookingState
from moorage.domain.errors import Forbidden, InvalidDescription
from moorage.usecases.blazar import reservable_hosts, reservables
from moorage.usecases.leases.annotations import reservations_of
from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.leases import Lease


def listing(call: Call) -> Reply:
    """GET: every reservable host."""
    require_operator(call.caller)
    found = reservables.offered_hosts(call.env.store, call.env.store.snapshot())
    return Reply(Collection("hosts", (shapes.host(one) for one in found)))


def show(call: Call) -> Reply:
    """GET: one reservable host."""
    require_operator(call.caller)
    store = call.env.store
    found = reservables.offered_host(store, store.snapshot(), call.path["id"])
    return Reply({"host": shapes.host(found)})


def create(call: Call) -> Reply:
    """POST: make a host of the fleet reservable, by its name."""
    body = dict(call.object())
    require_operator(call.caller)
    name = body.pop("name", None) or body.pop("id", None)
    if not isinstance(name, str):
        raise Forbidden("A host needs a name")
    made = reservable_hosts.offer_host(call.env, call.caller, name, _texts(body))
    return Reply({"host": shapes.host(made)}, status=201)


def update(call: Call) -> Reply:
    """PUT: change a host's properties; null removes a key."""
    body = call.object()
    changed = {key: None if value is None else _text(key, value) for key, value in body.items()}
    found = reservable_hosts.describe_host(call.env, call.caller, call.path["id"], changed)
    return Reply({"host": shapes.host(found)})


def delete(call: Call) -> Reply:
    """DELETE: make a host unreservable."""
    reservable_hosts.withdraw_host(call.env, call.caller, call.path["id"])
    return Reply(None, status=204)


def properties(call: Call) -> Reply:
    """GET: property keys of hosts, with `detail` their values, with `all` private ones too."""
    require_operator(call.caller)
    store = call.env.store
    private = reservables.private_keys(store)
    told: list[dict[str, Any]] = []
    for key, values in reservables.host_keys(store).items():
        if key in private and not _truth(call.query.get("all")):
            continue
        more = (
            {"private": False, "values": list(values)} if _truth(call.query.get("detail")) else {}
        )
        told.append({"property": key, **more})
    return Reply({"resource_properties": told})


def mark(call: Call) -> Reply:
    """PATCH: set whether a property key is private."""
    private = call.object().get("private")
    if not isinstance(private, bool):
        raise InvalidDescription("private is true or false")
    found = reservables.mark_key(call.env, call.caller, call.path["name"], private=private)
    return Reply(
        {
            "resource_property": {
                "id": found.id,
                "resource_type": "physical:host",
                "property_name": found.name,
                "private": private,
                "created_at": stamped(found.created_at),
                "updated_at": stamped(found.updated_at),
            }
        }
    )


def allocations(call: Call) -> Reply:
    """GET: allocations of every host, including hosts without any."""
    require_operator(call.caller)
    found = _allocations(call)
    shown = (shapes.allocation(id_, rows) for id_, rows in found.items())
    return Reply(Collection("allocations", shown))


def allocation(call: Call) -> Reply:
    """GET: allocations of one host."""
    require_operator(call.caller)
    store = call.env.store
    reservables.offered_host(store, store.snapshot(), call.path["id"])
    rows = _allocations(call)[call.path["id"]]
    return Reply({"allocation": shapes.allocation(call.path["id"], rows)})


def _allocations(call: Call) -> dict[str, list[tuple[str, Lease]]]:
    """Per host id the reservations with places there, and their leases."""
    store = call.env.store
    snapshot = store.snapshot()
    found: dict[str, list[tuple[str, Lease]]] = {}
    for one in reservables.offered_hosts(store, snapshot):
        rows = snapshot.tree(snapshot.row_of[one.root]).tolist()
        decisions = {
            (booking.decision, booking.consumer)
            for row in rows
            for booking in snapshot.bookings_of(row)
            if booking.decision is not None and booking.state in _RESERVED
        }
        found[one.reservable.id] = [
            (reservation, lease)
            for reservation, lease in reservations_of(store, decisions)
            if call.query.get("lease_id") in (None, lease.id)
            and call.query.get("reservation_id") in (None, reservation)
        ]
    return found


_RESERVED = frozenset(BookingState)


# --- addresses ------------------------------------------------------------------------------


def list_addresses(call: Call) -> Reply:
    """GET: every reservable address."""
    found = reservables.addresses(call.env.store)
    return Reply({"floatingips": [shapes.floating_ip(one) for one in found]})


def show_address(call: Call) -> Reply:
    """GET: one reservable address."""
    found = reservables.address(call.env.store, call.path["id"])
    return Reply({"floatingip": shapes.floating_ip(found)})


def create_address(call: Call) -> Reply:
    """POST: make an address of a network reservable."""
    body = dict(call.object())
    network, text = (body.pop(key, None) for key in ("floating_network_id", "floating_ip_address"))
    if not isinstance(network, str) or not isinstance(text, str):
        raise InvalidDescription("floating_network_id and floating_ip_address are needed")
    made = reservables.offer_address(call.env, call.caller, network, text, _texts(body))
    return Reply({"floatingip": shapes.floating_ip(made)}, status=201)


def delete_address(call: Call) -> Reply:
    """DELETE: make an address unreservable."""
    reservables.withdraw_address(call.env, call.caller, call.path["id"])
    return Reply(None, status=204)


def _texts(body: Mapping[str, Any]) -> dict[str, str]:
    return {key: _text(key, value) for key, value in body.items() if value is not None}


def _text(key: str, value: object) -> str:
    if isinstance(value, dict | list):
        raise InvalidDescription(f"{key} must be a text or number")
    return str(value)


def _truth(text: str | None) -> bool:
    return (text or "").lower() in {"true", "1"}
