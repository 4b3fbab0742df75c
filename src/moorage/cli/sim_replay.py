"""`moorage sim replay`: places an ensemble's members one at a time, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.files import read_text
from moorage.cli.output import Shown
from moorage.cli.parser import Option, WrongUsage
from moorage.domain.member_names import MemberName

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from moorage.domain.describe import EnsembleDescription
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.sequential import SequentialPlacement
    from moorage.usecases.ports import Store


class Replay(Command):
    """Place an ensemble's members one at a time, as Nova does.

    Nothing is written. Each member goes to the eligible host with most free VCPU, the first by
    name among equals; skew counts all eligible domains. Bookings of ensembles of the description's
    name are left out of account. A member without a host is a result, not an error: the exit
    status is 0.
    """

    examples = "moorage sim replay shop.yaml --sequential --order web,app,db"
    options = (
        Option("file", metavar="FILE", help="a description, or a shipped one's name"),
        Option("--sequential", action="store_true", required=True, help="one member at a time"),
        Option("--order", metavar="ROLE,…", help="roles in order (default: as in the file)"),
        Option(
            "--resource",
            default="VCPU",
            metavar="CLASS",
            help="choose hosts by this class (default: VCPU)",
        ),
        Option("--name", help="the simulation (default: OS_CLOUD, else moorage-sim)"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.cli.sim import running
        from moorage.client.description import read_description

        _, described = read_description(read_text(args.file))
        order = in_order(described, args.order)
        built = _read(Path(running(args.name).directory), described)
        found = replayed(built, described, order, args.resource)
        return Shown(found.body(), found.text())


@dataclass(frozen=True)
class Finding:
    """The result: how many members were placed, in words."""

    outcome: SequentialPlacement
    names: Sequence[str]
    """Name of each host row."""
    types: Mapping[str, str]
    """Policy name -> type."""
    total: int

    def text(self) -> str:
        """`FAIL at db[1]: proximity "pair" and survive "db-ha" leave no host`."""
        if self.outcome.failed is None:
            return f"OK {self.total} of {self.total} placed one by one"
        blamed = sorted(f'{self.types[name]} "{name}"' for name in self.outcome.conflict)
        leave = "leave" if len(blamed) > 1 else "leaves"
        why = f"{' and '.join(blamed)} {leave} no host" if blamed else "no host has room"
        return f"FAIL at {self.outcome.failed}: {why}"

    def body(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "replay": {
                "verdict": "placed" if self.outcome.failed is None else "failed",
                "failed": None if self.outcome.failed is None else str(self.outcome.failed),
                "policies": list(self.outcome.conflict),
                "placed": {
                    str(member): self.names[row] for member, row in self.outcome.hosts.items()
                },
            }
        }


def in_order(described: EnsembleDescription, order: str | None) -> list[MemberName]:
    """The members, role by role; roles that `order` does not name come last.

    Raises:
        WrongUsage: `order` names a role that is not described, or one twice.
    """
    roles = {one.name: one.count for one in described.roles}
    named = [name.strip() for name in order.split(",")] if order else []
    for name in named:
        if name not in roles or named.count(name) > 1:
            known = ", ".join(roles)
            raise WrongUsage(f"--order: {name} is not one of {known}, each once")
    rest = [name for name in roles if name not in named]
    return [MemberName(name, i) for name in (*named, *rest) for i in range(roles[name])]


def replayed(
    built: BuiltProblem, described: EnsembleDescription, order: Sequence[MemberName], by: str
) -> Finding:
    """Place the members one at a time, each on the host with most of the class `by`."""
    from moorage.engine.joint.sequential import place_sequentially

    names = built.terrain.names
    outcome = place_sequentially(built.problem, order, names=names, by=by)
    types = {one.name: one.type for one in described.policies}
    return Finding(outcome, names, types, len(order))


def _read(directory: Path, described: EnsembleDescription) -> BuiltProblem:
    """The problem on a simulation's ledger."""
    from moorage.cli.sim_process import clock_file, database_url
    from moorage.store import open_store
    from moorage.store.settable_clock import SettableClock

    store = open_store(database_url(directory), clock=SettableClock(clock_file(directory)))
    try:
        return problem_of(store, described)
    finally:
        store.close()


def problem_of(store: Store, described: EnsembleDescription) -> BuiltProblem:
    """The problem of a description on a ledger, without what ensembles of its name have booked.

    Raises:
        WrongUsage: a role has alternatives.
    """
    if chosen := [one.name for one in described.roles if one.alternatives]:
        raise WrongUsage(f"role {chosen[0]} has alternatives, which nothing places one at a time")
    from moorage.domain.nova.server_request import NovaRules
    from moorage.domain.period import Period
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import build
    from moorage.usecases.shared.role_resolution import LedgerNames, resolve

    snapshot = store.snapshot()
    own = frozenset(
        consumer
        for ensemble in store.ensembles(project_id=None, name=described.name)
        for member in ensemble.members
        for consumer in (member.uuid, member.server_id)
        if consumer is not None
    )
    request = EnsembleRequest(
        project_id="",
        roles=resolve(LedgerNames(store, None), described.roles, NovaRules()),
        members=tuple(MemberName(one.name, i) for one in described.roles for i in range(one.count)),
        policies=described.policies,
        period=Period(snapshot.taken_at),
        own_consumers=own,
        released=own,
    )
    return build(request, snapshot)
