"""`moorage admin audit`: finds inconsistencies in the ledger, and repairs them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli.admin import (
    OPERATOR,
    declare_credentials,
    declare_database,
    present_ledger,
    service,
)
from moorage.cli.command import Command
from moorage.cli.files import find, read_text, reading
from moorage.cli.output import CONFLICT, OK, Shown, draw, stack, table
from moorage.cli.parser import Flag, Option, WrongUsage
from moorage.cli.progress import Adder, progress
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from moorage.domain.audit import Audit as Found
    from moorage.domain.audit import Finding, NovaView
    from moorage.store import Ledger


_ALWAYS = 10
_SHARE = 10
"""Orphans repaired without `--at-most`: so many, or this part of all consumers if more."""
_RECORD = "moorage-audit-%Y%m%dT%H%M%SZ.jsonl"


def _declare_login(parser: argparse.ArgumentParser) -> None:
    declare_credentials(parser, "nova")


class Audit(Command):
    """Check the ledger: orphans, overages, dangling references.

    With --nova the ledger is compared with what a running Nova lists: servers, hypervisors and
    compute services. Without access to its API lists in files do.

    With --servers the ledger is compared with Nova's servers. Found are allocations whose server
    does not exist (orphans), servers without allocations, and servers allocated on another host.
    An allocation younger than the list, or less than ten minutes older, is never an orphan.

    Places on hosts that are not in service are found in any case.

    With --hypervisors hosts are compared with Nova's. Found are hosts that Nova no longer has, and
    hypervisors that are no resource providers. With --nova are found, besides, claims that are
    active for servers that do not exist, members whose servers are gone, hosts that lack the trait
    of a disabled compute service, places on hosts whose compute service is down, and whether the
    hint `moorage` is read: nova-api is sent a server that it cannot create. A cloud that does
    without the filter for hints says so by --without-filter.

    --repair lists the orphans, asks, and deletes their allocations, each only if it is unchanged.
    More than ten orphans, and more than a tenth of all consumers, need --at-most: a list of one
    project, or of the first thousand servers, makes orphans of all others. Before a deletion its
    undo is written to a record, which `moorage admin replay` sends. The exit status is 4 if
    findings remain.
    """

    examples = """
        openstack server list --all-projects --long -f json > servers.json
        moorage admin audit --nova catalog --keystone
        moorage admin audit --servers servers.json
        moorage admin audit --servers servers.json --repair --yes
    """
    options = (
        Option(
            "--nova",
            metavar="URL",
            help="Nova's endpoint, or `catalog` to look it up (with --keystone)",
        ),
        _declare_login,
        Option(
            "--servers",
            metavar="FILE",
            help="output of `openstack server list --all-projects --long -f json`; - reads stdin",
        ),
        Option(
            "--hypervisors",
            metavar="FILE",
            help="output of `openstack hypervisor list -f json`; - reads stdin",
        ),
        Flag("--without-filter", "with --nova: nova-api has no filter for hints, on purpose"),
        Flag("--repair", "delete the allocations of orphans"),
        Flag("--yes", "with --repair: do not ask"),
        Option(
            "--at-most",
            type=int,
            metavar="N",
            help="repair at most so many (default: ten, or a tenth of all consumers)",
        ),
        Option(
            "--record",
            metavar="FILE",
            help="file for the requests that undo the repair (default: moorage-audit-TIME.jsonl)",
        ),
        declare_database,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.usecases.ledger.audit import audit

        if args.repair and not (args.servers or args.nova):
            raise WrongUsage(
                "--repair needs --nova or --servers: orphans are found by comparing with Nova's"
                " servers"
            )
        if args.nova and (args.servers or args.hypervisors):
            raise WrongUsage("--nova reads both lists from Nova: leave the files out")
        if args.servers == args.hypervisors == "-":
            raise WrongUsage(
                "only one list can be read from standard input: give the other as a file"
            )
        if args.nova:
            nova, hypervisors = _asked(args)
        else:
            nova, hypervisors = _nova(args.servers), _hypervisors(args.hypervisors)
        with present_ledger(args) as store:
            found = audit(store, OPERATOR, nova, hypervisors)
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
        """Show what would be deleted and ask for a yes; without a terminal --yes is needed."""
        if args.yes:
            return
        if not sys.stdin.isatty() or args.servers == "-":
            raise InvalidDescription(
                f"{counted(len(orphans), 'orphan')} found; repeat with --yes to delete their"
                " allocations, or run on a terminal to be asked"
            )
        draw(_listed(found.findings), self.app.stderr)
        count = counted(len(orphans), "orphan")
        self.app.stderr.write(f"Delete the allocations of {count}? [y/N] ")
        self.app.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise InvalidDescription("nothing was deleted")


def _check_whole(found: Found, orphans: int, allowed: int | None) -> None:
    """Refuse a repair that is larger than allowed, or than can be expected."""
    most = max(_ALWAYS, found.consumers // _SHARE) if allowed is None else allowed
    if orphans > most:
        raise InvalidDescription(
            f"{counted(orphans, 'orphan')} among {counted(found.consumers, 'consumer')},"
            f" more than {most}: check that the list has all servers of all projects"
            f" (--all-projects --limit -1); if so, repeat with --at-most {orphans}"
        )


def _asked(args: argparse.Namespace) -> tuple[NovaView | None, frozenset[str] | None]:
    """What a running Nova says; as old as the moment before it was asked."""
    from moorage.client.nova_source import SERVICE, over, read_hosts, read_servers
    from moorage.domain.audit import NovaView

    taken = time.time()
    with service(args.nova, args, SERVICE) as wire:
        servers = {one.uuid: one for one in read_servers(over(wire))}
        hosts = read_hosts(over(wire))
        endpoint = wire.endpoint
    unfiltered = () if args.without_filter else tuple(_unfiltered(args, endpoint))
    found = NovaView(servers, int(taken * 1_000_000), hosts, unfiltered)
    return found, frozenset(one.name for one in hosts)


def _unfiltered(args: argparse.Namespace, endpoint: str) -> Iterator[str]:
    """Where nova-api does not read the hint `moorage`, at both of its paths."""
    from moorage.client.hint_filter_probe import is_unfiltered, legacy
    from moorage.client.nova_source import SERVICE

    for url in filter(None, (endpoint, legacy(endpoint))):
        with service(url, args, SERVICE) as wire:
            if is_unfiltered(wire):
                yield url


def _nova(file: str | None) -> NovaView | None:
    if file is None:
        return None
    from moorage.client.hypervisor_list import read_servers
    from moorage.domain.audit import NovaView

    with reading(file):
        servers = read_servers(read_text(file))
    taken = time.time() if file == "-" else find(file).stat().st_mtime
    return NovaView({one.uuid: one for one in servers}, int(taken * 1_000_000))


def _hypervisors(file: str | None) -> frozenset[str] | None:
    if file is None:
        return None
    from moorage.client.hypervisor_list import read_names

    with reading(file):
        return read_names(read_text(file))


def _repair(
    store: Ledger, orphans: Sequence[Finding], record: Path, adder: Adder
) -> dict[str, str]:
    """Consumer -> `deleted`, or why not. A deletion's undo is written to disk before it."""
    from moorage.domain.errors import ConsumerConflict, ProviderConflict
    from moorage.usecases.ledger.audit import clear_orphan

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
    from moorage.client.request_replay import line
    from moorage.domain.replay import restoring_request

    assert one.orphan is not None, "chosen by it"
    file.write(line(restoring_request(one.orphan)))
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
    checked = counted(found.consumers, "consumer")
    if found.servers is not None:
        checked += f" and {counted(found.servers, 'server')}"
    verdict = f"checked {checked}: {counted(len(found.findings), 'finding')}"
    if record is not None:
        deleted = sum(one == "deleted" for one in outcome.values())
        verdict += f", {deleted} repaired; undo: moorage admin replay {record} --to URL"
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
