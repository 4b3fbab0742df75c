"""`moorage topology show|load`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.output import Shown
from moorage.cli.parser import INPUT_FILE
from moorage.cli.placement_map import natural
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType


class Show(Command):
    """Show the trees of domains, with the number of hosts in each."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            answer = client.topology.show()
        return Shown(answer.body, drawn(answer.value))


def _read(name: str) -> dict[str, Any]:
    from moorage.client.topology_rules_file import read_topology

    with reading(name):
        return read_topology(read_text(name))


def drawn(topology: Mapping[str, Any]) -> RenderableType:
    """The trees, drawn."""
    from rich.console import Group
    from rich.tree import Tree

    hosts: dict[tuple[str, str], int] = {}
    for one in topology["attachments"]:
        place = (one["tree"], one["domain"])
        hosts[place] = hosts.get(place, 0) + 1
    drawn_trees = []
    for tree, levels in topology["levels"].items():
        root = Tree(f"{tree}: {' > '.join([*levels, 'host'])}")
        domains = [one for one in topology["domains"] if one["tree"] == tree]
        _grow(root, domains, None, lambda name, tree=tree: hosts.get((tree, name), 0))
        drawn_trees.append(root)
    return Group(*drawn_trees) if drawn_trees else "no topology is loaded"


def _grow(branch: Any, domains: list[Any], parent: str | None, hosts: Any) -> None:  # noqa: ANN401
    below = [one for one in domains if one["parent"] == parent]
    for one in sorted(below, key=lambda one: natural(one["name"])):
        count = hosts(one["name"])
        text = f"{one['level']} {one['name']}" + (f"  {counted(count, 'host')}" if count else "")
        _grow(branch.add(text), domains, one["name"], hosts)


class Load(Command):
    """Replace the topology by that of a file.

    The file is YAML, as `topology show -f yaml` prints it: `levels` (tree to levels, from the top
    down), `domains` (name, level, tree, parent) and `attachments` (host, domain, tree). With the
    line `revision` it is refused if the topology was changed since it was shown; without the line
    it is loaded in any case.
    """

    examples = """
        moorage topology show -f yaml > racks.yaml
        moorage topology load racks.yaml
    """
    options = (INPUT_FILE,)

    def act(self, args: argparse.Namespace) -> Shown:
        body = _read(args.file)
        revision = body.pop("revision", None)
        with self.client() as client:
            answer = client.topology.replace(body, revision=revision)
        said = ", ".join(counted(count, level) for level, count in _counts(body))
        return Shown(answer.body, f"topology loaded: {said or 'no domains'}")


def _counts(body: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for tree, levels in body["levels"].items():
        for level in levels:
            count = sum(
                one["level"] == level and one.get("tree", "location") == tree
                for one in body["domains"]
            )
            if count:
                yield level, count
