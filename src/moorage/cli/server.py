"""`moorage server create`: creates one member's server in Nova, in its held place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.ensemble_boot import Booting, boot_arguments
from moorage.cli.parser import ENSEMBLE, Option

if TYPE_CHECKING:
    import argparse

    from moorage.cli.output import Shown


class Create(Booting):
    """Create the server of one member in Nova, in its held place.

    As `moorage ensemble boot`, for one member. The decision is confirmed only if this was the last
    member without a server.
    """

    examples = """
        moorage server create shop 'db[0]'
        moorage server create shop 'db[0]' --image debian-13 --network shop-net
    """
    options = (
        ENSEMBLE,
        Option("member", metavar="MEMBER", help="such as 'db[0]', quoted for the shell"),
        boot_arguments,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        return self.booted(args, members=frozenset({args.member}))
