"""`/v1/flavors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.flavors import Flavor
from moorage.domain.nova.extra_specs import labels
from moorage.domain.nova.flavors import check_placement_terms, nova_flavor
from moorage.domain.nova_servers import FlavorSize
from moorage.domain.resources import amounts
from moorage.usecases.ledger.flavors import (
    delete_flavor,
    load_flavors,
    put_flavors,
)
from moorage.usecases.shared.role_resolution import known_flavor
from moorage.wire import flavors as wire

if TYPE_CHECKING:
    from moorage.domain.nova.server_request import NovaRules
    from moorage.wire.flavors import FlavorBody


def listing(call: Call) -> Reply:
    """GET: a page of flavors, by name."""
    return listed(call, "flavors", call.env.store.flavors, _view)


def show(call: Call) -> Reply:
    """GET: a flavor by id or name."""
    return Reply(wire.OneFlavor(_view(known_flavor(call.env.store, call.path["name"]))))


def create(call: Call) -> Reply:
    """POST: create a flavor, or replace the one with its id."""
    body: FlavorBody = call.body.flavor
    flavor = flavor_of(body, body.id or call.env.ids.uuid(), call.env.limits.nova)
    call.perform(put_flavors, [flavor])
    return Reply(wire.OneFlavor(_view(flavor)), location=f"{call.base}/flavors/{flavor.id}")


def load(call: Call) -> Reply:
    """POST: load the JSON of `openstack flavor list --long`; reports refused flavors."""
    loaded = call.perform(load_flavors, call.body.flavors)
    return Reply(
        wire.LoadedFlavors(
            [_view(one) for one in loaded.flavors],
            [view(wire.RefusedFlavor, one) for one in loaded.refused],
        )
    )


def delete(call: Call) -> Reply:
    """DELETE: delete a flavor."""
    call.perform(delete_flavor, call.path["name"])
    return Reply()


def flavor_of(body: FlavorBody, name: str, rules: NovaRules) -> Flavor:
    """A flavor from its body.

    Raises:
        InvalidDescription: extra specs that are not known, or contradict each other; or neither or
            both of resources and Nova's numbers.
    """
    if body.resources is UNSET:
        return _in_novas_terms(body, name, rules)
    if body.vcpus is not UNSET or body.ram is not UNSET:
        raise InvalidDescription("a flavor has resources, or vcpus and ram", path="flavor.vcpus")
    check_placement_terms(body.extra_specs, "flavor.extra_specs")
    return Flavor(
        id=name,
        name=body.name,
        resources=amounts(body.resources, path="flavor.resources"),
        required=tuple(
            frozenset({one}) if isinstance(one, str) else frozenset(one) for one in body.required
        ),
        forbidden=frozenset(body.forbidden),
        extra_specs=dict(body.extra_specs),
    )


def _in_novas_terms(body: FlavorBody, name: str, rules: NovaRules) -> Flavor:
    if body.vcpus is UNSET or body.ram is UNSET:
        raise InvalidDescription("a flavor needs resources, or vcpus and ram", path="flavor")
    if body.required or body.forbidden:
        raise InvalidDescription(
            "with vcpus and ram, traits are extra specs such as trait:CUSTOM_A=required",
            path="flavor.required" if body.required else "flavor.forbidden",
        )
    size = FlavorSize(body.vcpus, body.ram, body.disk, body.ephemeral, body.swap)
    return nova_flavor(name, body.name, size, body.extra_specs, rules, "flavor.extra_specs")


def _view(flavor: Flavor) -> wire.FlavorValue:
    return view(
        wire.FlavorValue,
        flavor,
        group_policy="isolate" if flavor.isolate else "none",
        labels=labels(flavor.extra_specs),
    )
