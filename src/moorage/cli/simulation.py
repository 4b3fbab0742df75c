"""`moorage whatif`: what would be if the fleet or ensembles changed."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.compliance import begun
from moorage.cli.ensemble_set import assignment
from moorage.cli.explanation_text import explained
from moorage.cli.files import read_text, reading
from moorage.cli.output import Shown, moment, stack, table
from moorage.cli.parser import Option, Repeated
from moorage.cli.times import TIME_HELP, span, time_of
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.client.moorage import Moorage

_ADDED: Final = re.compile(r"(?P<count>\d{1,6})x(?P<like>[^@]+)(?:@(?P<domains>.+))?", re.ASCII)
_SHOWN: Final = 8
"""Hosts or members that a line names."""


class InOrder(argparse.Action):
    """The action of options that say what is supposed: their order counts."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's own
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Add the option and its value."""
        every = [*(namespace.changes or ()), (str(option_string).lstrip("-"), values)]
        namespace.changes = every


def added(text: str) -> dict[str, Any]:
    """Read `4xh3@rack/r9`, or `4xh3` for where h3 is."""
    match = _ADDED.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"write COUNTxHOST@DOMAIN, such as 4xh3@rack/r9 for four hosts like h3, not {text}"
        )
    domains = match["domains"].split(",") if match["domains"] else []
    return {"count": int(match["count"]), "like": match["like"], "domains": domains}


def policy(text: str) -> tuple[str, str, str, object]:
    """Read `shop:db-ha:keep=1`: ensemble, policy, field, and the value as YAML."""
    subject, field, value = assignment(text)
    ensemble, colon, name = subject.rpartition(":")
    if not (ensemble and colon and name):
        raise argparse.ArgumentTypeError(
            f"write ENSEMBLE:POLICY:FIELD=VALUE, such as shop:db-ha:keep=1, not {text}"
        )
    return ensemble, name, field, value


class WhatIf(Command):
    """Say what would be if hosts were lost, closed or added, or ensembles and policies changed.

    Nothing is written. The changes are supposed in the order in which they are given, on the ledger
    as it is (or will be, with --at). The output says which policies break, which ensembles have
    too few members left, which of them can be placed again now and where, what is admitted, and how
    many servers of each flavor fit before and after.
    """

    examples = """
        moorage whatif --lose rack/r2                         # every host of a rack goes down
        moorage whatif --lose h7 --lose power:feed/f1
        moorage whatif --close h7 --add 4xh3@rack/r9          # four hosts like h3 in rack r9
        moorage whatif --lose r2 --admit shop.yaml            # does it still fit then?
        moorage whatif --policy shop:db-ha:keep=1 --at +2d
    """
    options = (
        Option(
            "--lose",
            action=InOrder,
            dest="changes",
            metavar="HOST|DOMAIN",
            help="a host, or all hosts of a domain, such as rack/r2, stop running",
        ),
        Option(
            "--close",
            action=InOrder,
            dest="changes",
            metavar="HOST|DOMAIN",
            help="nothing new is placed there",
        ),
        Option(
            "--add",
            action=InOrder,
            dest="changes",
            type=added,
            metavar="COUNTxHOST[@DOMAIN,...]",
            help="hosts like one that there is, in these domains (default: where that one is)",
        ),
        Option(
            "--admit",
            action=InOrder,
            dest="changes",
            metavar="FILE",
            help="place the ensemble of a description",
        ),
        Option(
            "--policy",
            action=InOrder,
            dest="changes",
            type=policy,
            metavar="ENSEMBLE:POLICY:FIELD=VALUE",
            help="a policy has another parameter or strength; a new one needs type= first",
        ),
        Option("--at", type=time_of, metavar="T", help=f"when (default: now), {TIME_HELP}"),
        Repeated(
            "--flavor",
            dest="flavors",
            metavar="FLAVOR",
            help="count the capacity for this flavor; repeatable (default: the first twenty)",
        ),
        Option("--time-limit", type=span, metavar="5s", help="longest time of all searches"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if not args.changes:
            self.usage_error("give --lose, --close, --add, --admit or --policy")
        with self.client() as client:
            answer = client.simulations.create(
                _changes(client, args.changes),
                at=args.at,
                flavors=args.flavors,
                time_limit=args.time_limit,
            )
        found = answer.body["simulation"]
        rows = [
            (one["flavor"], one["before"], one["after"], one["left"]) for one in found["capacity"]
        ]
        columns = ["flavor", "#before", "#after", "#left"]
        lines = list(_told(found, at=args.at is not None))
        text = "\n".join(lines)
        return Shown(answer.body, stack(text, "", table(columns, rows)) if rows else text)


def _changes(client: Moorage, given: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    """The changes in the API's form; assignments to one policy that follow each other are one."""
    from moorage.client.description import read_description

    found: list[dict[str, Any]] = []
    for option, value in given:
        if option == "admit":
            text = read_text(value)
            with reading(value, text):
                body, _ = read_description(text)
            found.append({"admit": body})
        elif option == "policy":
            ensemble, name, field, said = value
            id_ = client.ensembles.find(ensemble)
            last = found[-1].get("policy") if found else None
            if last and (last["ensemble_id"], last["name"]) == (id_, name):
                last["fields"][field] = said
                continue
            policy_ = {"ensemble_id": id_, "name": name, "fields": {field: said}}
            found.append({"policy": policy_})
        else:
            found.append({option: value})
    return found


def _told(found: Mapping[str, Any], *, at: bool) -> Iterator[str]:
    """A line for each thing that is supposed, that breaks, that is lost or admitted."""
    if at:
        yield f"at {moment(found['at'])}"
    for word in ("down", "closed", "added"):
        if names := found[word]:
            yield f"{word}: {counted(len(names), 'host')}, {_few(names)}"
    yield from list(begun(found["breaks"], dry_run=True)) or ["no violation would begin"]
    yield from _losses(found)
    for one in found["admitted"]:
        if one["verdict"] == "placed":
            hosts = ", ".join(f"{member} {host}" for member, host in one["hosts"].items())
            yield f"{one['ensemble']} fits: {hosts}"
        else:
            yield f"{one['ensemble']} {_NOT[one['verdict']]}"
            yield from _reasons(one)


_NOT: Final = {"refused": "does not fit", "undecided": "was not decided in time"}


def _losses(found: Mapping[str, Any]) -> Iterator[str]:
    counts = found["counts"]
    if not counts["ensembles"]:
        return
    parts = [f"{counts['without_quorum']} of them without quorum"]
    parts.append(f"{counts['placed']} can be placed again now")
    if counts["undecided"]:
        parts.append(f"{counts['undecided']} undecided")
    yield f"{counted(counts['ensembles'], 'ensemble')} would lose members: {', '.join(parts)}"
    for one in found["losses"]:
        yield f"  {one['ensemble']}: {_role_texts(one)}; {_again(one)}"
        if one["again"]["verdict"] == "refused":
            yield from (f"    {line}" for line in _reasons(one["again"]))
    if counts["ensembles"] > len(found["losses"]):
        yield f"  and {counts['ensembles'] - len(found['losses'])} more"


def _role_texts(one: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{role['role']} keeps {role['left']} of {role['placed']}"
        + ("" if role["quorum"] else f" NOT ENOUGH (needs {role['needed']})")
        for role in one["roles"]
        if role["left"] < role["placed"]
    )


def _again(one: Mapping[str, Any]) -> str:
    again = one["again"]
    if again["verdict"] == "placed":
        where = _few([f"{member} on {host}" for member, host in again["hosts"].items()])
        return f"can be placed again now: {where}"
    return "CANNOT BE PLACED AGAIN" if again["verdict"] == "refused" else "not decided in time"


def _reasons(one: Mapping[str, Any]) -> list[str]:
    if one["explanation"] is not None:
        return explained(one["explanation"]).split("\n")
    return [one["why"]] if one["why"] else []


def _few(names: Sequence[str]) -> str:
    return ", ".join(first_of(list(names), _SHOWN))
