"""`/v1/flavors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import any_of
from moorage.api.native.paging import listed
from moorage.domain.extra_specs import check_stored
from moorage.domain.flavors import Flavor
from moorage.domain.resources import amounts
from moorage.usecases.ledger.flavors import delete_flavor, load_flavors, put_flavors
from moorage.wire import flavors as wire

if TYPE_CHECKING:
    from moorage.wire.flavors import FlavorBody


def listing(call: Call) -> Reply:
    """GET: a page of flavors, by name."""
    return listed(call, "flavors", call.env.store.flavors, _view)


def show(call: Call) -> Reply:
    """GET: a flavor by id or name."""
    return Reply(wire.OneFlavor(_view(call.env.store.flavor(call.path["name"]))))


def create(call: Call) -> Reply:
    """POST: create a flavor, or replace the one with its id."""
    body: FlavorBody = call.body.flavor
    flavor = flavor_of(body, body.id or call.env.ids.uuid())
    call.perform(put_flavors, [flavor], dry_run=call.dry_run)
    return Reply(wire.OneFlavor(_view(flavor)), location=f"{call.base}/flavors/{flavor.id}")


def load(call: Call) -> Reply:
    """POST: load the JSON of `openstack flavor list --long`; reports refused flavors."""
    loaded = call.perform(load_flavors, call.body.flavors, dry_run=call.dry_run)
    return Reply(
        wire.LoadedFlavors(
            [_view(one) for one in loaded.flavors],
            [
                wire.RefusedFlavor(one.row, one.id, one.name, one.path, one.why)
                for one in loaded.refused
            ],
        )
    )


def delete(call: Call) -> Reply:
    """DELETE: delete a flavor."""
    call.perform(delete_flavor, call.path["name"], dry_run=call.dry_run)
    return Reply()


def flavor_of(body: FlavorBody, name: str) -> Flavor:
    """A flavor from its body.

    Raises:
        InvalidDescription: extra specs that may decide the place.
    """
    check_stored(body.extra_specs, "flavor.extra_specs")
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


def _view(flavor: Flavor) -> wire.FlavorValue:
    return wire.FlavorValue(
        id=flavor.id,
        name=flavor.name,
        resources=dict(flavor.resources),
        required=any_of(flavor.required),
        forbidden=sorted(flavor.forbidden),
        extra_specs=dict(flavor.extra_specs),
    )
