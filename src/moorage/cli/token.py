"""`moorage token create|list|revoke`: the file of static tokens, on the machine that has it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import Shown, table
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import SECOND, format_instant, parse_duration, parse_instant

if TYPE_CHECKING:
    import argparse

    from moorage.domain.period import Instant
    from moorage.tokens.listing import Token

_VARIABLE = "MOORAGE_TOKEN_FILE"


def _declare_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"the service's token_file (default ${_VARIABLE})"
    )


def _file(args: argparse.Namespace) -> Path:
    named = args.token_file or os.environ.get(_VARIABLE)
    if not named:
        raise InvalidDescription(f"which file? Say --token-file FILE or set {_VARIABLE}")
    return Path(named)


def _now() -> Instant:
    return time.time_ns() // 1000


def _described(token: Token) -> dict[str, Any]:
    """A token as `-f json` shows it: no hash."""
    return {
        "name": token.name,
        "user": token.user,
        "project": token.project,
        "roles": list(token.roles),
        "expires": None if token.expires is None else format_instant(token.expires),
    }


class Create(Command):
    """Make a token, add its hash to the token file, and show it this once.

    The file is made, for its owner alone, if it is not there. A running service knows the token
    within a second.
    """

    examples = """
        moorage token create nova --user nova --project service --role service
        moorage token create ann --user ann --project shop --role member --expires 90d
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose it is."""
        parser.add_argument("name", metavar="NAME", help="letters, digits, . _ -")
        _declare_file(parser)
        parser.add_argument("--user", help="default: NAME")
        parser.add_argument("--project", required=True)
        parser.add_argument(
            "--role", action="append", required=True, help="admin, service, member, reader; repeat"
        )
        parser.add_argument(
            "--expires", metavar="WHEN", help="after 90d, or at 2027-01-01T00:00:00Z; else never"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Make."""
        from moorage.tokens import listing, secret

        text = secret.new_token(args.name)
        token = listing.Token(
            name=args.name,
            hash=secret.hashed(text),
            user=args.user or args.name,
            project=args.project,
            roles=tuple(role.lower() for role in args.role),
            expires=_end(args.expires),
        )
        listing.add(_file(args), token)
        body = {"token": {**_described(token), "secret": text}}
        self.app.stderr.write("It is not stored, and cannot be shown again:\n")
        return Shown(body, text)


def _end(text: str | None) -> Instant | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except InvalidDescription:
        return (_now() + parse_duration(text)) // SECOND * SECOND


class List(Command):
    """List the tokens of a token file: whose they are, never what they are."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which file."""
        _declare_file(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """List."""
        from moorage.tokens import listing

        tokens = list(listing.read(_file(args)).values())
        rows = [
            (one.name, one.user, one.project, ", ".join(one.roles), _ending(one)) for one in tokens
        ]
        text = table(["name", "user", "project", "roles", "expires"], rows)
        return Shown({"tokens": [_described(one) for one in tokens]}, text)


def _ending(token: Token) -> str:
    if token.expires is None:
        return "never"
    return format_instant(token.expires) + ("" if token.good_at(_now()) else " (over)")


class Revoke(Command):
    """Take a token out of the token file; a running service refuses it within a second."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        parser.add_argument("name", metavar="NAME")
        _declare_file(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Revoke."""
        from moorage.tokens import listing

        listing.remove(_file(args), args.name)
        return Shown({"revoked": args.name}, f"revoked {args.name}")
