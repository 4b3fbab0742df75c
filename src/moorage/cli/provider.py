"""`moorage provider tree`: a host's resource providers in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import Shown
from moorage.cli.parser import Option
from moorage.client.errors import Missing
from moorage.domain.words import natural

if TYPE_CHECKING:
    import argparse

    from rich.console import RenderableType

    from moorage.client.fleets import Placement, Provider


class Tree(Command):
    """Show a resource provider tree, with inventories and traits.

    A host is a provider; NUMA nodes, network cards and accelerators are providers below it. In
    braces are the totals of each, in brackets its traits.
    """

    examples = """
        moorage provider tree n2
        moorage provider tree n2/numa1 -f json
    """
    options = (Option("provider", metavar="PROVIDER", help="its name or UUID"),)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            tree = _read(client.placement, args.provider)
        return Shown({"provider": tree}, _drawn(tree))


def _read(placement: Placement, wanted: str) -> dict[str, Any]:
    """The provider with its children as a tree.

    Raises:
        Missing: there is none of that name.
    """
    found = placement.named(wanted)
    if not found:
        raise Missing("resource provider", wanted)
    below: dict[str | None, list[Provider]] = {}
    for one in placement.in_tree(found[0].uuid):
        below.setdefault(one.parent_provider_uuid, []).append(one)
    return _with_children(placement, found[0], below)


def _with_children(
    placement: Placement, one: Provider, below: dict[str | None, list[Provider]]
) -> dict[str, Any]:
    traits, generation = placement.traits(one.uuid)
    children = sorted(below.get(one.uuid, ()), key=lambda child: natural(child.name))
    return {
        "uuid": one.uuid,
        "name": one.name,
        "generation": generation,
        "inventories": dict(placement.inventories(one.uuid)),
        "traits": sorted(traits),
        "children": [_with_children(placement, child, below) for child in children],
    }


def _drawn(provider: dict[str, Any]) -> RenderableType:
    from rich.tree import Tree as Branches

    def grow(branch: Branches, parent: dict[str, Any]) -> None:
        for child in parent["children"]:
            name = child["name"].removeprefix(f"{provider['name']}/")
            name = name.removeprefix(f"{parent['name'].removeprefix(provider['name'] + '/')}/")
            grow(branch.add(_line(child, name)), child)

    root = Branches(_line(provider, provider["name"]))
    grow(root, provider)
    return root


def _line(provider: dict[str, Any], name: str) -> str:
    """A provider on one line: `pf0 {SRIOV_NET_VF: 8} [CUSTOM_PHYSNET_A HW_NIC_SRIOV]`."""
    totals = ", ".join(f"{key}: {one['total']}" for key, one in provider["inventories"].items())
    parts = [name, f"{{{totals}}}" if totals else "", f"[{' '.join(provider['traits'])}]"]
    return " ".join(part for part in parts if part not in {"", "[]"})
