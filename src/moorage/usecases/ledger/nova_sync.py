"""Keep the ledger in step with Nova: its flavors, and where its hosts are.

Both may be repeated at any time: what is in step is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DeleteFlavor, PutFlavor, PutTopology
from moorage.domain.errors import Conflict
from moorage.domain.nova.extra_specs import labels
from moorage.domain.topology import Attachment, Topology
from moorage.domain.topology_rules import HostFacts, TopologyRules, apply, unplaced
from moorage.domain.words import counted
from moorage.usecases.ledger.flavors import hides_specs, read_listing
from moorage.usecases.ledger.fleet_loading import topology_event
from moorage.usecases.ledger.hypervisor_rows import hypervisor_rows
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.nova_hosts import NovaHost
    from moorage.domain.topology import Domain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ledger.flavors import UnreadableFlavor
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class FlavorSync:
    """What was done to bring the flavors in step; all by name."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int
    refused: tuple[UnreadableFlavor, ...]
    """Nova's flavors that Moorage cannot place, or whose extra specs it may not see."""
    labels: tuple[str, ...]
    """Extra specs of the others that Nova does not read when it places a server."""

    @property
    def steps(self) -> int:
        """How many flavors were written or deleted."""
        return len(self.created) + len(self.changed) + len(self.deleted)


def sync_flavors(env: UseCaseEnvironment, caller: Caller, rows: Sequence[object]) -> FlavorSync:
    """Create, change and delete flavors as Nova's listing has them, in one commit.

    A flavor in Placement's terms is the operator's own and stays. One of Nova's that cannot be read
    (any more) is deleted: what it was is not what Nova would ask for. One whose extra specs Nova
    does not show is refused and stays as it was: what Nova would ask for is not known.

    Raises:
        Forbidden: the caller is no operator.
        Conflict: the listing is empty, and the ledger has flavors of Nova's.
    """
    require_operator(caller)
    stored = {one.id: one for one in env.store.flavors()}
    theirs = [one for one in stored.values() if one.size is not None]
    if theirs and not rows:
        raise Conflict(
            f"Nova lists no flavor, and the ledger has {counted(len(theirs), 'flavor')} of Nova's:"
            " none is deleted; may this user see Nova's flavors?"
        )
    hidden = {str(row.get("id")) for row in rows if isinstance(row, Mapping) and hides_specs(row)}
    kept = [one for one in stored.values() if one.size is None or one.id in hidden]
    listing = read_listing(env, rows, kept)
    wanted = {one.id: one for one in listing.flavors}
    created = [one for id_, one in wanted.items() if id_ not in stored]
    changed = [one for id_, one in wanted.items() if id_ in stored and stored[id_] != one]
    deleted = [one for one in theirs if one.id not in wanted and one.id not in hidden]
    if created or changed or deleted:
        # Names are unique: those that are given up go first.
        gone = tuple(DeleteFlavor(one.id) for one in (*deleted, *changed))
        env.store.commit(Changeset((*gone, *(PutFlavor(one) for one in (*changed, *created)))))
    return FlavorSync(
        created=_names(created),
        changed=_names(changed),
        deleted=_names(deleted),
        unchanged=len(wanted) - len(created) - len(changed),
        refused=listing.refused,
        labels=labels({key for one in listing.flavors for key in one.extra_specs}),
    )


def _names(flavors: Sequence[Flavor]) -> tuple[str, ...]:
    return tuple(sorted(one.name for one in flavors))


@dataclass(frozen=True, slots=True)
class HostMove:
    """A host whose domain in a tree was changed; None: it has none there."""

    host: str
    tree: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class TopologySync:
    """What was done to bring the topology in step."""

    moves: tuple[HostMove, ...]
    unplaced: Mapping[str, Sequence[str]]
    """Tree -> hosts to which the rules give no place."""
    changed: bool
    """Whether there was anything to write: moves, domains or levels."""


def sync_topology(
    env: UseCaseEnvironment,
    caller: Caller,
    rules: TopologyRules,
    hosts: Sequence[NovaHost],
) -> TopologySync:
    """Place all hosts of the ledger by rules over what it and Nova say of them.

    Trees of which the rules do not speak stay. A host that Nova does not list keeps its place.
    One that it lists is found by its UUID, else by its name.

    Raises:
        Forbidden: the caller is no operator.
        InvalidDescription: the rules contradict each other for these hosts; see `apply`.
        Busy: the topology was changed too often meanwhile.
    """
    require_operator(caller)

    def attempt() -> TopologySync:
        snapshot = env.store.snapshot()
        rows = hypervisor_rows(snapshot, hosts)
        known = {snapshot.names[rows[one.name]]: one for one in hosts if one.name in rows}
        before = snapshot.topology
        facts = list(_facts(snapshot, known))
        kept = [one for one in facts if one.name not in known]
        after = _beside(before, apply(_with_kept(rules, before, kept), facts))
        changed = after != before
        if changed:
            seen = snapshot.topology_revision
            changes = PutTopology(after), topology_event(caller, after)
            env.store.commit(Changeset(changes, topology_revision=seen))
        ruled = replace(after, levels={tree: after.levels[tree] for tree in rules.levels})
        return TopologySync(tuple(_moves(before, after)), unplaced(ruled, facts), changed)

    return retry(env, attempt)


def _facts(snapshot: Snapshot, known: Mapping[str, NovaHost]) -> Iterator[HostFacts]:
    for row in snapshot.hosts.tolist():
        provider = snapshot.state(row).provider
        told = known.get(provider.name)
        facts = HostFacts(provider.name, provider.traits, provider.aggregates)
        if told is not None:
            facts = replace(facts, zone=told.zone, metadata=told.metadata)
        yield facts


def _with_kept(rules: TopologyRules, before: Topology, hosts: Sequence[HostFacts]) -> TopologyRules:
    """The rules, with the present places of these hosts as their mapping has others."""
    mapped = {(one.tree, one.host) for one in rules.attachments}
    declared = {(one.tree, one.name) for one in rules.domains}
    attachments = [
        Attachment(host.name, domain, tree)
        for tree in rules.levels
        for host in hosts
        if (domain := before.attachments.get((tree, host.name))) is not None
        and (tree, host.name) not in mapped
        and before.domains[tree, domain].level in rules.levels[tree]
    ]
    domains: dict[tuple[str, str], Domain] = {}
    for one in attachments:
        name: str | None = one.domain
        while name is not None and (one.tree, name) not in declared:
            domains[one.tree, name] = before.domains[one.tree, name]
            name = before.domains[one.tree, name].parent
    return replace(
        rules,
        attachments=(*rules.attachments, *attachments),
        domains=(*rules.domains, *domains.values()),
    )


def _beside(before: Topology, ruled: Topology) -> Topology:
    """The topology of the rules, beside the present trees of which they do not speak."""
    other = {tree: names for tree, names in before.levels.items() if tree not in ruled.levels}
    domains = [one for one in before.domains.values() if one.tree in other]
    attachments = [
        Attachment(host, domain, tree)
        for (tree, host), domain in before.attachments.items()
        if tree in other
    ]
    return Topology.build(
        {**other, **ruled.levels},
        [*domains, *(replace(one, line=None) for one in ruled.domains.values())],
        [
            *attachments,
            *(Attachment(host, name, tree) for (tree, host), name in ruled.attachments.items()),
        ],
    )


def _moves(before: Topology, after: Topology) -> Iterator[HostMove]:
    for tree, host in sorted(before.attachments.keys() | after.attachments.keys()):
        was, now = before.attachments.get((tree, host)), after.attachments.get((tree, host))
        if was != now:
            yield HostMove(host, tree, was, now)
