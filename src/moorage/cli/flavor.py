"""`moorage flavor list|show|create|delete|load`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from moorage.cli.columns import pairs
from moorage.cli.command import Command
from moorage.cli.files import read_text
from moorage.cli.host_checks import host_check_note, label_notes
from moorage.cli.output import CONFLICT, OK, Shown, fields, table
from moorage.cli.parser import INPUT_FILE, Option
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted

if TYPE_CHECKING:
    from moorage.wire.flavors import FlavorValue
    from moorage.wire.groups import Group


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
    """Amounts on one line, those of groups behind a plus: `VCPU=4 MEMORY_MB=8192 + VGPU=1`."""
    parts = [flavor.resources, *(group.resources for group in flavor.groups)]
    return " + ".join(
        " ".join(f"{name}={value}" for name, value in part.items()) for part in parts if part
    )


def extra_spec(text: str) -> tuple[str, str]:
    """Read `hw:cpu_policy=dedicated`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"write KEY=VALUE, not {text}")
    return name, value


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
            *pairs(one, "name id"),
            ("resources", amounts(one)),
            ("traits", traits(one) or None),
            *pairs(one, "traits_of_the_host=root_required?"),
            *((f"group {group.name}", _group(group)) for group in one.groups),
            *((name, value) for name, value in one.extra_specs.items()),
            *pairs(one, "checked_by_Nova_alone=host_checks?"),
            ("labels, which decide no place", " ".join(one.labels) or None),
        ]
    )


def _group(group: Group) -> str:
    """A group on one line: `VGPU=1 HW_GPU_API_VULKAN !CUSTOM_OLD`."""
    words = [f"{name}={value}" for name, value in group.resources.items()]
    words += ["|".join(one) if isinstance(one, list) else str(one) for one in group.required]
    return " ".join([*words, *(f"!{name}" for name in group.forbidden)])


class Create(Command):
    """Create or replace a flavor, in Placement's terms or in Nova's.

    With --vcpus and --ram its properties mean what Nova makes of them.
    """

    examples = """
        moorage flavor create m1.small --vcpus 1 --ram 2048 --disk 20
        moorage flavor create pinned --vcpus 8 --ram 16384 --property hw:cpu_policy=dedicated
        moorage flavor create gpu --resource VCPU=8 --resource VGPU=1 --forbidden CUSTOM_OLD
    """
    options = (
        Option("name", metavar="NAME"),
        Option("--vcpus", type=int, metavar="N"),
        Option("--ram", type=int, metavar="MIB"),
        Option("--disk", type=int, metavar="GIB", help="of the root disk"),
        Option("--ephemeral", type=int, metavar="GIB"),
        Option("--swap", type=int, metavar="MIB"),
        Option(
            "--property", action="append", type=extra_spec, metavar="KEY=VALUE", help="extra spec"
        ),
        Option("--resource", action="append", type=amount, metavar="CLASS=AMOUNT"),
        Option("--required", action="append", metavar="TRAIT", help="A|B: any of"),
        Option("--forbidden", action="append", metavar="TRAIT"),
        Option("--id", help="default: chosen by the service"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        numbers = {name: getattr(args, name) for name in _NUMBERS}
        flavor: dict[str, Any] = {
            "name": args.name,
            **{name: value for name, value in numbers.items() if value is not None},
        }
        if args.resource:
            flavor["resources"] = dict(args.resource)
        if args.property:
            flavor["extra_specs"] = dict(args.property)
        if args.required:
            flavor["required"] = [t.split("|") if "|" in t else t for t in args.required]
        if args.forbidden:
            flavor["forbidden"] = args.forbidden
        if args.id:
            flavor["id"] = args.id
        with self.client() as client:
            answer = client.flavors.create(flavor)
        return Shown(answer.body, _described(answer.value))


_NUMBERS = ("vcpus", "ram", "disk", "ephemeral", "swap")


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
            host_check_note(one["name"], one["host_checks"])
            for one in answer.body["flavors"]
            if one.get("host_checks")
        ]
        lines += label_notes(key for one in answer.body["flavors"] for key in one.get("labels", ()))
        lines += [
            f"refused {one['name'] or one['id'] or one['row']}: {one['why']}" for one in refused
        ]
        return Shown(answer.body, "\n".join(lines), CONFLICT if refused else OK)
