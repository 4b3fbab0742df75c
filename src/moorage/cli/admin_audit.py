"""`moorage admin audit`: what the ledger has that is not so, and its repair."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli.admin import OPERATOR, Adder, declare_database, present_ledger, progress
from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown, draw, stack, table
from moorage.cli.shipped import find, read_text, reading
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from moorage.store import Ledger
    from moorage.usecases.audit import Audit as Found
    from moorage.usecases.audit import Finding, NovaView


_ALWAYS = 10
_SHARE = 10
"""So many orphans are repaired without a word, or this part of all consumers if that is more."""
_RECORD = "moorage-audit-%Y%m%dT%H%M%SZ.jsonl"


class Audit(Command):
    """Look for what is not as it should be: orphans, overages, dangling references.

    With --servers the ledger is compared with Nova's servers: allocations of servers that are not
    there, servers without allocations or with some on another host. The list is as old as its
    file: what was allocated less than ten minutes before it, or after, is not called an orphan.

    --repair deletes the orphans' allocations, after showing them and asking; each only if it has
    not changed since. Where they are more than a tenth of all consumers (and more than ten),
    --at-most must say so: a list of one project, or of the first thousand servers, makes orphans
    of all others. Before each, the request that would bring it back is written to a record,
    which `moorage admin replay` can send. The exit status is 4 if anything is found and left.
    """

    examples = """
        openstack server list --all-projects --long -f json > servers.json
        moorage admin audit --servers servers.json
        moorage admin audit --servers servers.json --repair --yes
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Against what, and what to do."""
        add = parser.add_argument
        add(
            "--servers",
            metavar="FILE",
            help="of `openstack server list --all-projects --long -f json`; - reads standard input",
        )
        add("--repair", action="store_true", help="delete the allocations of orphans")
        add("--yes", action="store_true", help="... without asking")
        add(
            "--at-most",
            type=int,
            metavar="N",
            help="refuse to repair more (default ten, or a tenth of all consumers)",
        )
        add(
            "--record",
            metavar="FILE",
            help="where requests that undo a repair go (default moorage-audit-TIME.jsonl)",
        )
        declare_database(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Look, show, and repair what may be."""
        from moorage.usecases.audit import audit

        if args.repair and not args.servers:
            raise InvalidDescription("--repair needs --servers: orphans are told by Nova's list")
        nova = _nova(args.servers)
        with present_ledger(args) as store:
            found = audit(store, OPERATOR, nova)
            orphans = [one for one in found.findings if one.orphan is not None]
            if not (args.repair and orphans):
                return _shown(found, {})
            _check_whole(found, len(orphans), args.at_most)
            self._confirm(args, found, orphans)
            record = Path(args.record or time.strftime(_RECORD, time.gmtime()))
            with progress(self.app.stderr) as tell:
                adder = Adder(tell, "repairing", len(orphans))
                outcome = _repair(store, orphans, record, adder)
        return _shown(found, outcome, str(record))

    def _confirm(self, args: argparse.Namespace, found: Found, orphans: Sequence[Finding]) -> None:
        """Show what is to go and wait for a yes; without a terminal only --yes is one."""
        if args.yes:
            return
        if not sys.stdin.isatty() or args.servers == "-":
            raise InvalidDescription(
                f"{counted(len(orphans), 'orphan')} found; say --yes to have the allocations"
                " deleted, or answer on a terminal"
            )
        draw(_listed(found.findings), self.app.stderr)
        count = counted(len(orphans), "orphan")
        self.app.stderr.write(f"Delete the allocations of {count}? [y/N] ")
        self.app.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise InvalidDescription("nothing was deleted")


def _check_whole(found: Found, orphans: int, allowed: int | None) -> None:
    """Let a repair pass that is no larger than what was allowed, or what is to be expected."""
    most = max(_ALWAYS, found.consumers // _SHARE) if allowed is None else allowed
    if orphans > most:
        raise InvalidDescription(
            f"{counted(orphans, 'orphan')} among {counted(found.consumers, 'consumer')},"
            f" more than {most}: does the list have the servers of all projects (--all-projects),"
            f" and not the first thousand alone (--limit -1)? If so, say --at-most {orphans}"
        )


def _nova(file: str | None) -> NovaView | None:
    if file is None:
        return None
    from moorage.client.server_list import read_servers
    from moorage.usecases.audit import NovaView

    with reading(file):
        servers = read_servers(read_text(file))
    taken = time.time() if file == "-" else find(file).stat().st_mtime
    return NovaView({one.uuid: one for one in servers}, int(taken * 1_000_000))


def _repair(
    store: Ledger, orphans: Sequence[Finding], record: Path, adder: Adder
) -> dict[str, str]:
    """Consumer -> `deleted`, or why not. What undoes a deletion is on the disk before it."""
    from moorage.domain.errors import ConsumerConflict, ProviderConflict
    from moorage.usecases.audit import clear_orphan

    outcome: dict[str, str] = {}
    with record.open("ab") as file:
        for one in orphans:
            assert one.orphan is not None, "chosen by it"
            _note(file, one)
            try:
                clear_orphan(store, OPERATOR, one.orphan)
                outcome[one.subject] = "deleted"
            except (ConsumerConflict, ProviderConflict) as error:
                outcome[one.subject] = f"left: {error.message}"
            adder.advance(1)
    return outcome


def _note(file: BinaryIO, one: Finding) -> None:
    from moorage.client.replaying import line
    from moorage.domain.replay import restoring

    assert one.orphan is not None, "chosen by it"
    file.write(line(restoring(one.orphan)))
    file.flush()
    os.fsync(file.fileno())


def _shown(found: Found, outcome: Mapping[str, str], record: str | None = None) -> Shown:
    left = [one for one in found.findings if outcome.get(one.subject) != "deleted"]
    body: dict[str, Any] = {
        "revision": found.revision,
        "consumers": found.consumers,
        "servers": found.servers,
        "findings": [
            {"kind": one.kind.value, "subject": one.subject, "detail": one.detail}
            | ({"repair": outcome[one.subject]} if one.orphan and one.subject in outcome else {})
            for one in found.findings
        ],
        "record": record,
    }
    parts: list[Any] = [_listed(found.findings, outcome)] if found.findings else []
    looked = counted(found.consumers, "consumer")
    if found.servers is not None:
        looked += f" and {counted(found.servers, 'server')}"
    verdict = f"looked at {looked}: {counted(len(found.findings), 'finding')}"
    if record is not None:
        deleted = sum(one == "deleted" for one in outcome.values())
        verdict += f", {deleted} repaired; {record} brings them back"
    return Shown(body, stack(*parts, verdict), CONFLICT if left else OK)


def _listed(findings: Sequence[Finding], outcome: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - something rich
    known = outcome or {}
    rows = [
        (
            one.kind.value,
            one.subject,
            one.detail,
            *([known.get(one.subject, "") if one.orphan else ""] if known else []),
        )
        for one in findings
    ]
    columns = ["kind", "subject", "detail", *(["repair"] if known else [])]
    return table(columns, rows)
