"""`moorage admin import nova`: imports the server groups of a running Nova."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.admin import (
    CATALOG,
    OPERATOR,
    SHOWN,
    declare_database,
    declare_source,
    environment_of,
    ledger,
    service,
    trial_ledger,
)
from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown, stack, table
from moorage.cli.progress import Adder, progress
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from moorage.usecases.ensembles.group_takeover import GroupOutcome


class Nova(Command):
    """Take over Nova's server groups of all projects, with the servers in them.

    Nova is only read, as an operator. Each group becomes an ensemble with its id, name, project and
    policy, and its servers become members where they stand: their allocations are in the ledger
    already, so import Placement first. A policy that they break as they run is taken over and
    listed.

    The command may be repeated: servers that have come since are added, those that are gone are
    removed. What is not taken over is listed with the reason; then the exit status is 4.
    """

    examples = """
        moorage admin import nova --from catalog --keystone --dry-run
        moorage admin import nova --from http://127.0.0.1:8774/v2.1 --keystone
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        declare_source(parser)
        add("--dry-run", action="store_true", help="read and compare, write nothing")
        declare_database(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.nova_source import SERVICE, over, read_groups_and_servers
        from moorage.usecases.ensembles.group_takeover import take_over_groups, without_group

        url = args.source if args.source == CATALOG else args.source.rstrip("/")
        opened = trial_ledger if args.dry_run else ledger
        with progress(self.app.stderr) as tell, service(url, args, SERVICE) as wire:
            groups, servers = read_groups_and_servers(over(wire))
            with opened(args) as store:
                writing = Adder(tell, "comparing" if args.dry_run else "writing", len(groups))
                env = environment_of(store, args)
                outcomes = take_over_groups(
                    env.in_dry_run() if args.dry_run else env,
                    OPERATOR,
                    groups,
                    servers,
                    advance=lambda: writing.advance(1),
                )
                left = without_group(store, OPERATOR, groups)
        body = _body(outcomes, dry_run=args.dry_run)
        body["without_group"] = [{"id": one.id, "name": one.name} for one in left]
        return Shown(body, _told(body), CONFLICT if body["not_taken"] else OK)


def _body(outcomes: Sequence[GroupOutcome], *, dry_run: bool) -> dict[str, Any]:
    changed = sum(one.changed for one in outcomes)
    return {
        "groups": [
            {
                "id": one.group.id,
                "project_id": one.group.project_id,
                "name": one.group.name,
                "ensemble": one.name or None,
                "policy": one.group.policy,
                "new": one.new,
                "added": list(one.added),
                "removed": list(one.removed),
            }
            for one in outcomes
        ],
        **({"would_write": changed} if dry_run else {"written": changed}),
        "not_taken": [
            {"group": one.group.id, "server": server, "reason": reason}
            for one in outcomes
            for server, reason in _left(one)
        ],
        "broken": [
            {"group": one.group.id, "policy": each.policy, "text": each.text}
            for one in outcomes
            for each in one.broken
        ],
    }


def _left(one: GroupOutcome) -> Iterator[tuple[str | None, str]]:
    if one.refused is not None:
        yield None, one.refused
    yield from one.not_taken.items()


def _told(body: dict[str, Any]) -> Any:  # noqa: ANN401 - something rich
    groups = body["groups"]
    rows = [
        (
            one["ensemble"] or one["name"],
            one["policy"],
            one["project_id"],
            "new" if one["new"] else "",
            len(one["added"]),
            len(one["removed"]),
        )
        for one in groups[:SHOWN]
    ]
    listed = [table(["ensemble", "policy", "project", "", "#added", "#removed"], rows)]
    names = {one["id"]: f"group {one['name']} ({one['id']})" for one in groups}
    lines = [f"{names[one['group']]} is broken already: {one['text']}" for one in body["broken"]]
    for one in body["not_taken"]:
        what = "" if one["server"] is None else f", server {one['server']}"
        lines.append(f"{names[one['group']]}{what} is not taken over: {one['reason']}")
    lines += [
        f"ensemble {one['name']} ({one['id']}): Nova has no such group any more"
        for one in body["without_group"]
    ]
    lines = first_of(lines, SHOWN)
    verdict = f"wrote {body.get('written')}"
    if "would_write" in body:
        verdict = f"would write {body['would_write']}; nothing was written"
    return stack(*listed, *lines, f"{counted(len(groups), 'server group')}: {verdict}")
