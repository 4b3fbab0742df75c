"""`moorage token create|list|revoke`: the file of static tokens on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.output import Shown, table
from moorage.cli.parser import CONFIG_DIR, CONFIG_FILE, Option, Repeated, WrongUsage
from moorage.cli.times import TIME_HELP, time_of
from moorage.domain.period import SECOND, format_instant, parse_instant
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    import argparse

    from moorage.domain.period import Instant
    from moorage.tokens.listing import Token

_VARIABLE = "MOORAGE_TOKEN_FILE"
ROLES: Final = ("admin", "service", "manager", "member", "reader")
"""Roles that the default access rules name."""


def _declare_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", metavar="FILE", help="default: the service's setting `token_file`"
    )
    CONFIG_FILE(parser)
    CONFIG_DIR(parser)


def _file(args: argparse.Namespace) -> Path:
    """The token file: the option's, else the one that `moorage serve` would read here."""
    from moorage import settings

    named = args.token_file
    if named is None:
        files = {"config_file": args.config_file, "config_dir": args.config_dir}
        given = {name: value for name, value in files.items() if value is not None}
        named = settings.read(given, os.environ).values["token_file"]
    if not named:
        raise WrongUsage(
            f"no token file: give --token-file FILE, or set token_file or {_VARIABLE} as for"
            " moorage serve"
        )
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
    """Create a token, add its hash to the token file, and show the token once.

    A file that does not exist is created, readable by its owner only. A running service accepts
    the token within a second.
    """

    examples = """
        moorage token create nova --user nova --project service --role service
        moorage token create ann --user ann --project shop --role member --expires 90d
    """
    options = (
        Option("name", metavar="NAME", help="letters, digits, . _ -"),
        _declare_file,
        Option("--user", help="default: NAME"),
        Option("--project", required=True),
        Repeated("--role", help=f"{', '.join(ROLES)}; repeatable"),
        Repeated(
            "--custom-role", metavar="ROLE", help="a role of the service's policy_file; repeatable"
        ),
        Option("--expires", type=time_of, metavar="T", help=f"{TIME_HELP} (default: never)"),
    )

    def now(self, args: argparse.Namespace) -> Instant:  # noqa: ARG002 - the signature of all
        """The machine's time in whole seconds, as the file is local."""
        return _now() // SECOND * SECOND

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.tokens import listing, secret

        roles = _roles(args)
        text = secret.new_token(args.name)
        token = listing.Token(
            name=args.name,
            hash=secret.hashed(text),
            user=args.user or args.name,
            project=args.project,
            roles=roles,
            expires=None if args.expires is None else parse_instant(args.expires),
        )
        listing.add(_file(args), token)
        body = {"token": {**_described(token), "secret": text}}
        self.app.stderr.write("Save this token now; it is shown once.\n")
        return Shown(body, text)


def _roles(args: argparse.Namespace) -> tuple[str, ...]:
    """The roles asked for, in lower case.

    Raises:
        WrongUsage: `--role` names one that no default rule knows, or there is none at all.
    """
    known = [role.lower() for role in args.role]
    for role in known:
        if role not in ROLES:
            raise WrongUsage(
                f"no such role: {role}{did_you_mean(role, ROLES)}; --role takes"
                f" {', '.join(ROLES)}, --custom-role any other",
                path="role",
            )
    custom = [role.lower() for role in args.custom_role]
    if not known and not custom:
        raise WrongUsage(f"no role: give --role {'|'.join(ROLES)}", path="role")
    return (*known, *custom)


class List(Command):
    """List the tokens of a token file by name and project; never their values."""

    options = (_declare_file,)

    def act(self, args: argparse.Namespace) -> Shown:
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
    return format_instant(token.expires) + ("" if token.good_at(_now()) else " (expired)")


class Revoke(Command):
    """Remove a token from the token file; a running service refuses it within a second."""

    options = (Option("name", metavar="NAME"), _declare_file)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.tokens import listing

        listing.remove(_file(args), args.name)
        return Shown({"revoked": args.name}, f"revoked {args.name}")
