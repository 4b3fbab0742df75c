"""`moorage flavor list|show|create|delete|load`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.files import read_text
from moorage.cli.output import CONFLICT, OK, Shown, fields, table
from moorage.cli.parser import INPUT_FILE, Option
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted

if TYPE_CHECKING:
    from moorage.wire.flavors import FlavorValue


def amount(text: str) -> tuple[str, int]:
    """Read `VCPU=4`."""
    name, equals, value = text.partition("=")
    if not (name and equals and value.isascii() and value.isdigit()):
        raise argparse.ArgumentTypeError(f"write CLASS=AMOUNT, such as VCPU=4, not {text}")
    return name, int(value)


def traits(flavor: FlavorValue) -> str:
    """Traits on one line: `HW_CPU_X86_AVX2 A|B !CUSTOM_OLD`."""
    required = ["|".join(one) if isinstance(one, list) else str(one) for one in flavor.required]
    return " ".join([*required, *(f"!{name}" for name in flavor.forbidden)])


def amounts(flavor: FlavorValue) -> str:
    """Amounts on one line: `VCPU=4 MEMORY_MB=8192`."""
    return " ".join(f"{name}={value}" for name, value in flavor.resources.items())


FLAVOR = Option("flavor", metavar="FLAVOR", help="its name or id")


class List(Command):
    """List flavors."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            answer = client.flavors.all()
        rows = [(one.name, amounts(one), traits(one), one.id) for one in answer.value]
        return Shown(answer.body, table(["name", "resources", "traits", "id"], rows))


class Show(Command):
    """Show a flavor."""

    options = (FLAVOR,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.flavors.show(args.flavor)
        return Shown(answer.body, _described(answer.value))


def _described(one: FlavorValue) -> Any:  # noqa: ANN401 - something rich
    return fields(
        [
            ("name", one.name),
            ("id", one.id),
            ("resources", amounts(one)),
            ("traits", traits(one) or None),
        ]
    )


class Create(Command):
    """Create or replace a flavor."""

    examples = """
        moorage flavor create m1.small --resource VCPU=1 --resource MEMORY_MB=2048
        moorage flavor create gpu --resource VCPU=8 --resource VGPU=1 --forbidden CUSTOM_OLD
    """
    options = (
        Option("name", metavar="NAME"),
        Option("--resource", action="append", type=amount, required=True, metavar="CLASS=AMOUNT"),
        Option("--required", action="append", metavar="TRAIT", help="A|B: any of"),
        Option("--forbidden", action="append", metavar="TRAIT"),
        Option("--id", help="default: chosen by the service"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        flavor: dict[str, Any] = {"name": args.name, "resources": dict(args.resource)}
        if args.required:
            flavor["required"] = [t.split("|") if "|" in t else t for t in args.required]
        if args.forbidden:
            flavor["forbidden"] = args.forbidden
        if args.id:
            flavor["id"] = args.id
        with self.client() as client:
            answer = client.flavors.create(flavor)
        return Shown(answer.body, _described(answer.value))


class Delete(Command):
    """Delete a flavor."""

    options = (FLAVOR,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            client.flavors.delete(args.flavor)
        return Shown({"deleted": args.flavor}, f"deleted {args.flavor}")


class Load(Command):
    """Load flavors from the JSON of `openstack flavor list --long`.

    Flavors that cannot be placed are listed with the reason and the others are loaded; the exit
    status is then 4.
    """

    examples = """
        openstack flavor list --long -f json | moorage flavor load -
    """
    options = (INPUT_FILE,)

    def act(self, args: argparse.Namespace) -> Shown:
        text = read_text(args.file)
        try:
            listing = json.loads(text)
        except ValueError as error:
            raise InvalidDescription(f"{args.file} is not JSON: {error}") from error
        if not isinstance(listing, list) or not all(isinstance(one, dict) for one in listing):
            raise InvalidDescription(
                f"{args.file} is not the output of `openstack flavor list --long -f json`"
            )
        with self.client() as client:
            answer = client.flavors.load(listing)
        refused = answer.body.get("refused", [])
        lines = [f"{counted(len(answer.body['flavors']), 'flavor')} loaded"]
        lines += [
            f"refused {one['name'] or one['id'] or one['row']}: {one['why']}" for one in refused
        ]
        return Shown(answer.body, "\n".join(lines), CONFLICT if refused else OK)
