"""`moorage topology show|load`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.compliance import begun
from moorage.cli.files import reading
from moorage.cli.fleet_reading import Taking, placing
from moorage.cli.output import Shown
from moorage.cli.parser import DRY_RUN, INPUT_FILE
from moorage.domain.words import counted, natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator, Mapping

    from rich.console import RenderableType
    from rich.tree import Tree

    from moorage.client.moorage import Moorage
    from moorage.domain.topology import Topology
    from moorage.domain.topology_rules import HostFacts, TopologyRules


class Show(Command):
    """Show the trees of domains, with the number of hosts and of pools in each.

    A tenant sees the levels, and the domains that policies may name.
    """

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            answer = client.topology.show()
            sharing = client.placement.that_share() if answer.value["attachments"] else ()
            pools = {one.name for one in sharing}
        return Shown(answer.body, drawn(answer.value, pools))


def drawn(topology: Mapping[str, Any], pools: Collection[str]) -> RenderableType:
    """The trees, drawn; `pools` are the names of sharing providers."""
    from rich.console import Group
    from rich.tree import Tree

    there: Counter[tuple[str, str, str]] = Counter(
        (one["tree"], one["domain"], "pool" if one["host"] in pools else "host")
        for one in topology["attachments"]
    )
    drawn_trees = []
    for tree, levels in topology["levels"].items():
        root = Tree(f"{tree}: {' > '.join([*levels, 'host'])}")
        domains = [one for one in topology["domains"] if one["tree"] == tree]
        _grow(root, domains, None, there)
        drawn_trees.append(root)
    return Group(*drawn_trees) if drawn_trees else "no topology is loaded"


def _grow(
    branch: Tree, domains: list[Any], parent: str | None, there: Counter[tuple[str, str, str]]
) -> None:
    below = [one for one in domains if one["parent"] == parent]
    for one in sorted(below, key=lambda one: natural(one["name"])):
        counts = {what: there[one["tree"], one["name"], what] for what in ("host", "pool")}
        said = ", ".join(counted(count, what) for what, count in counts.items() if count)
        text = f"{one['level']} {one['name']}" + (f"  {said}" if said else "")
        _grow(branch.add(text), domains, one["name"], there)


class Load(Command):
    """Replace the topology by that of a fleet file.

    Of the file, `topology` has the trees, `hosts` the places of hosts by name, and `rules` those of
    all others by their names, traits and aggregates. `moorage fleet export --topology` writes the
    present one. With the line `revision` it is refused if the topology was changed since it was
    exported; without the line it is loaded in any case.
    """

    examples = """
        moorage fleet export --topology > racks.yaml
        moorage topology load racks.yaml --dry-run      # which policies would it break?
        moorage topology load racks.yaml
    """
    options = (INPUT_FILE, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.fleet_body import topology as body_of
        from moorage.domain.topology_rules import apply

        rules, revision = placing(args.file, Taking(revision=True), self.app.stderr)
        with self.client() as client:
            hosts = _facts(client, rules)
            with reading(args.file):
                topology = apply(rules, hosts)
                answer = client.topology.replace(
                    body_of(topology), revision=revision, dry_run=args.dry_run
                )
        said = ", ".join(counted(count, level) for level, count in _counts(topology))
        done = "topology can be loaded" if args.dry_run else "topology loaded"
        lines = [f"{done}: {said or 'no domains'}"]
        lines += begun(answer.value.get("breaks"), dry_run=args.dry_run)
        return Shown(answer.body, "\n".join(lines))


def _facts(client: Moorage, rules: TopologyRules) -> list[HostFacts]:
    """What the service knows of its hosts, and of placed pools, as far as the rules ask for it."""
    from moorage.domain.topology_rules import HostFacts

    placed = {one.host for one in rules.attachments}
    wanted = {uuid for rule in rules.rules for uuid in rule.aggregates or ()}
    members: dict[str, set[str]] = {}
    for aggregate in wanted:
        for provider in client.placement.in_aggregate(aggregate):
            members.setdefault(provider.uuid, set()).add(aggregate)
    return [
        HostFacts(one["name"], frozenset(one["traits"]), frozenset(members.get(one["uuid"], ())))
        for one in client.fleet.show().value["hosts"]
        if not one["shares"] or one["name"] in placed
    ]


def _counts(topology: Topology) -> Iterator[tuple[str, int]]:
    for tree, levels in topology.levels.items():
        for level in levels:
            some = sum((one.tree, one.level) == (tree, level) for one in topology.domains.values())
            if some:
                yield level, some
