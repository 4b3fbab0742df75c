"""`moorage ensemble extend|shrink|headroom`: more members, fewer, and places kept for more."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, Final

from moorage.cli import decision_text
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.decision_progress import deciding
from moorage.cli.ensemble import headroom_lines
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.output import Shown
from moorage.cli.parser import DRY_RUN, ENSEMBLE, Flag, Option, Repeated
from moorage.cli.placement_map import summed
from moorage.client.boot_requests import server_name
from moorage.client.errors import Missing
from moorage.domain.words import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.client.moorage import Moorage
    from moorage.wire.growth import Extended, Shrunk

_COUNT: Final = re.compile(r"(?P<role>[^=]+)=(?P<count>\d{1,5})", re.ASCII)
_MEMBER: Final = re.compile(r"[^\[\]]+\[\d+\]", re.ASCII)


def role_count(text: str) -> tuple[str, int]:
    """Read `worker=3`."""
    found = _COUNT.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"write ROLE=N, such as worker=3, not {text}")
    return found["role"], int(found["count"])


SIZES: Final = (
    Option("--role", metavar="ROLE", help="the role that changes"),
    Option("--count", type=int, metavar="N", help="how many members come, or leave"),
    Option("--size", type=int, metavar="N", help="instead of --count: how many it shall have"),
    Repeated(
        "--roles",
        type=role_count,
        metavar="ROLE=N",
        help="instead of --role and --count, repeatable: several roles in one decision",
    ),
    Repeated(
        "--sizes",
        type=role_count,
        metavar="ROLE=N",
        help="instead of --role and --size, repeatable: how many each role shall have",
    ),
)


class Sized(Command):
    """A command with the options of `SIZES`."""

    def sizes(self, args: argparse.Namespace) -> dict[str, Any]:
        """The counts as the body has them."""
        given = [name for name in ("count", "size") if getattr(args, name) is not None]
        several = [name for name in ("roles", "sizes") if getattr(args, name)]
        if several:
            if args.role or given or len(several) > 1:
                self.usage_error("give only one of --role, --roles and --sizes")
            pairs = getattr(args, several[0])
            if len(dict(pairs)) < len(pairs):
                self.usage_error(f"--{several[0]} names a role twice")
            return {several[0]: dict(pairs)}
        if not args.role or len(given) != 1:
            self.usage_error("give --role with --count or --size, or --roles, or --sizes")
        return {"role": args.role, given[0]: getattr(args, given[0])}


class Extend(Sized):
    """Decide more members of an ensemble beside those that it has.

    Present members keep their places. All new ones are placed, or none; with --at-least as many
    as fit, of several roles equally many less of each. Headroom of the role is taken first. If
    they do not fit, the output has a minimal conflict and changes that were solved and fit, and
    the exit status is 3.
    """

    examples = """
        moorage ensemble extend hadoop --role worker --count 3
        moorage ensemble extend hadoop --role worker --count 3 --at-least 1
        moorage ensemble extend hadoop --roles worker=4 --roles master=1 --dry-run
        moorage ensemble extend hadoop --sizes worker=16 --sizes master=3
    """
    options = (
        ENSEMBLE,
        *SIZES,
        Option("--at-least", type=int, metavar="N", help="as many as fit, but so many at least"),
        Flag("--movable", "members without a server may move to make room"),
        decide_arguments,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        body = self.sizes(args)
        body |= {"least": args.at_least} if args.at_least is not None else {}
        body |= {"movable": True} if args.movable else {}
        decide = decide_body(args, [])
        body |= {"decide": decide} if decide else {}
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            with deciding(client, None if args.dry_run else ensemble_id):
                answer = client.ensembles.extend(ensemble_id, body, dry_run=args.dry_run)
        text = extended(answer.value)
        return Shown(answer.body, with_begun(text, answer.body, dry_run=args.dry_run))


def extended(made: Extended) -> str:
    """An extended ensemble: who came, the decision, and what it has now."""
    if not made.members:
        return "unchanged: it has so many members"
    came = summed(sorted(made.members, key=natural))
    parts = [f"{came} {'would come' if made.dry_run else 'new'}"]
    if made.from_headroom:
        parts.append(f"taken from headroom {made.from_headroom}")
    if made.decision is not None and made.dry_run:
        parts.append(decision_text.dry_run(made.decision))
    elif made.decision is not None:
        parts += decision_text.held(made.decision)
    return decision_text.SEPARATOR.join(parts)


class Shrink(Sized):
    """Take members out of an ensemble so that its policies keep holding.

    Members without a server leave first, then those with the highest index, as far as the policies
    allow it. A server of a member that leaves is not deleted. If no choice of members keeps a
    required policy, nothing is changed.
    """

    examples = """
        moorage ensemble shrink hadoop --role worker --count 4 --dry-run
        moorage ensemble shrink hadoop --role worker --size 10 --prefer 'worker[3]'
    """
    options = (
        ENSEMBLE,
        *SIZES,
        Repeated(
            "--prefer",
            metavar="MEMBER",
            help="leaves rather than others, repeatable: worker[3], or as a server hadoop-worker-3",
        ),
        Flag("--keep-servers", "members with a server stay"),
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        body = self.sizes(args)
        body |= {"servers": False} if args.keep_servers else {}
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            preferred = members_named(client, ensemble_id, args.prefer or ())
            body |= {"prefer": preferred} if preferred else {}
            answer = client.ensembles.shrink(ensemble_id, body, dry_run=args.dry_run)
        text = shrunk(answer.value)
        return Shown(answer.body, with_begun(text, answer.body, dry_run=args.dry_run))


def members_named(client: Moorage, ensemble_id: str, names: Sequence[str]) -> list[str]:
    """Members for their names, or for the names of their servers that `ensemble topology` prints.

    Raises:
        Missing: a name is no member's.
    """
    if all(_MEMBER.fullmatch(one) for one in names):
        return list(names)
    ensemble = client.ensembles.show(ensemble_id).value.name
    by_server = {
        server_name(ensemble, one.name): one.name
        for one in client.ensembles.each_member(ensemble_id)
    }
    unknown = [one for one in names if not _MEMBER.fullmatch(one) and one not in by_server]
    if unknown:
        raise Missing(f"member of {ensemble}", unknown[0])
    return [by_server.get(one, one) for one in names]


def shrunk(made: Shrunk) -> str:
    """A shrunk ensemble: who left, their servers, and how many stay in each domain."""
    if not made.victims:
        return "unchanged: it has no more members"
    gone = summed(sorted((one.name for one in made.victims), key=natural))
    lines = [f"{'would remove' if made.dry_run else 'removed'} {len(made.victims)}: {gone}"]
    lines += [f"{one.name} has server {one.server_id}" for one in made.victims if one.server_id]
    lines += [
        f"{role}: {level}s after {_counts(counts.values())}"
        for role, levels in made.after.items()
        for level, counts in levels.items()
    ]
    return "\n".join(lines)


def _counts(counts: Iterable[int]) -> str:
    """Members of each domain, the fullest first: `3/3/3/2`."""
    return "/".join(map(str, sorted(counts, reverse=True)))


class Headroom(Command):
    """Hold places for more members of a role, until another number is set.

    The members do not exist yet. The places are such that the policies would hold with them, and
    count as held places of the project. `moorage ensemble extend` takes them first.
    """

    examples = """
        moorage ensemble headroom hadoop --role worker --count 4
        moorage ensemble headroom hadoop --role worker --count 0
    """
    options = (
        ENSEMBLE,
        Option("--role", metavar="ROLE", required=True, help="the role that will grow"),
        Option("--count", type=int, metavar="N", required=True, help="how many more members"),
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            answer = client.ensembles.headroom(
                ensemble_id, args.role, args.count, dry_run=args.dry_run
            )
        held = ", ".join(headroom_lines(answer.value.ensemble)) or "none"
        return Shown(answer.body, f"headroom {'would be ' if args.dry_run else ''}{held}")
