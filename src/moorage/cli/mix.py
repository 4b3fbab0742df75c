"""`moorage mix show|set|reset`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.output import Shown, stack, table
from moorage.cli.parser import INPUT_FILE, Option
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from msgspec import UnsetType
    from rich.console import RenderableType

    from moorage.wire.request_mix import MixGroup, MixShape, RequestMix, RoomTaken, ShapeTaken


class Show(Command):
    """Show the mix of requests that decisions leave room for, and where it is from."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            answer = client.request_mix.show()
        return Shown(answer.body, described(answer.value))


class Set(Command):
    """State the mix of requests that decisions leave room for.

    The file is YAML or JSON: `shapes`, each with a `weight` and either `flavor`, by name, or
    `resources`, `required`, `forbidden` and `groups`. A flavor stands for what it is now: set the
    mix again after changing it. Every process uses the mix from the next decision on.
    """

    examples = """
        moorage mix set mix.yaml
        moorage mix show -f json > mix.json
    """
    options = (
        INPUT_FILE,
        Option("--dry-run", action="store_true", help="check it, write nothing"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.request_mix import read_mix

        text = read_text(args.file)
        with self.client() as client, reading(args.file):
            shapes = read_mix(text)
            answer = client.request_mix.state(shapes, dry_run=args.dry_run)
        return Shown(answer.body, described(answer.value))


class Reset(Command):
    """Let the mix be counted from the ledger again."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            client.request_mix.reset()
        return Shown({"reset": True}, "the mix is counted from the ledger")


def described(mix: RequestMix) -> RenderableType:
    """The mix as a table, with a line about where it is from."""
    head = f"stated at {mix.updated_at}" if mix.source == "stated" else "counted from the ledger"
    lines = [f"mix: {head}"]
    if mix.merged:
        lines.append(
            f"{counted(mix.merged, 'further shape')} merged into similar ones, or left out"
        )
    if not mix.shapes:
        return stack(*lines, "no shapes: each request weighs its own members alone")
    rows = ((one.weight, " ".join(one.flavors), _takes(one), _traits(one)) for one in mix.shapes)
    return stack(*lines, table(["#weight", "flavor", "takes", "traits"], rows))


def room_taken(room: RoomTaken | UnsetType) -> RenderableType:
    """What a placement took from the room for others, as a table."""
    if room is msgspec.UNSET:
        return "room for others: not weighed, or for operators only"
    source = "stated" if room.source == "stated" else "counted from the ledger"
    head = (
        f"room for others: {room.share:.2%} taken;"
        f" {counted(room.weighed, 'shape')} weighed, the mix {source}"
    )
    if not room.most:
        return head
    rows = (
        (one.weight, _takes(one), _traits(one), one.fits, one.fits - one.taken) for one in room.most
    )
    return stack(head, table(["#weight", "takes", "traits", "#fitted", "#fit now"], rows))


def _takes(one: MixShape | ShapeTaken) -> str:
    """Amounts on one line, those of groups behind a plus: `VCPU=4 MEMORY_MB=8192 + VGPU=1`."""
    parts = (one.resources, *(group.resources for group in one.groups))
    said = (" ".join(f"{name}={amount}" for name, amount in part.items()) for part in parts)
    return " + ".join(text for text in said if text)


def _traits(one: MixShape | ShapeTaken) -> str:
    """Traits on one line: `HW_CPU_X86_AVX2 A|B !CUSTOM_OLD`."""
    parts: tuple[MixShape | ShapeTaken | MixGroup, ...] = (one, *one.groups)
    required = chain.from_iterable(part.required for part in parts)
    words = ["|".join(each) if isinstance(each, list) else each for each in required]
    return " ".join([*words, *(f"!{name}" for part in parts for name in part.forbidden)])
