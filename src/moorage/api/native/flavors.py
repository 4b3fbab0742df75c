"""`/v1/flavors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import answers_operator as told
from moorage.api.native import views
from moorage.api.native.call import Call, Reply
from moorage.domain.flavors import Flavor
from moorage.domain.resources import amounts
from moorage.usecases.flavor_listing import read_listing
from moorage.usecases.flavors import delete_flavor, put_flavors

if TYPE_CHECKING:
    from moorage.api.native.requests_operator import FlavorBody


def listing(call: Call) -> Reply:
    """GET: every flavor, by name."""
    return Reply(told.Flavors([_view(one) for one in call.parts.store.flavors()]))


def show(call: Call) -> Reply:
    """GET: a flavor by id or name."""
    return Reply(told.OneFlavor(_view(call.parts.store.flavor(call.path["name"]))))


def create(call: Call) -> Reply:
    """POST: write a flavor; one of the same id is replaced."""
    body: FlavorBody = call.body.flavor
    flavor = flavor_of(body, body.id or call.parts.ids.uuid())
    put_flavors(call.parts, call.caller, [flavor], dry_run=call.dry_run)
    return Reply(told.OneFlavor(_view(flavor)), location=f"{call.base}/flavors/{flavor.id}")


def load(call: Call) -> Reply:
    """POST: load what `openstack flavor list --long -f json` prints, all or nothing."""
    flavors = read_listing(call.body.flavors)
    put_flavors(call.parts, call.caller, flavors, dry_run=call.dry_run)
    return Reply(told.Flavors([_view(one) for one in flavors]))


def delete(call: Call) -> Reply:
    """DELETE: forget a flavor."""
    delete_flavor(call.parts, call.caller, call.path["name"], dry_run=call.dry_run)
    return Reply()


def flavor_of(body: FlavorBody, name: str) -> Flavor:
    """A flavor from its body."""
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


def _view(flavor: Flavor) -> told.FlavorValue:
    return told.FlavorValue(
        id=flavor.id,
        name=flavor.name,
        resources=dict(flavor.resources),
        required=views.any_of(flavor.required),
        forbidden=sorted(flavor.forbidden),
        extra_specs=dict(flavor.extra_specs),
    )
