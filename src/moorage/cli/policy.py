"""`moorage policy list|show`: the policy types, without a server."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import Shown, fields, paragraphs, stack, table
from moorage.cli.parser import Option
from moorage.domain.errors import NotFound

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from moorage.policies.contract import Policy


def document(policy: type[Policy]) -> dict[str, Any]:
    """A policy type in the form of `/v1/policy-types`."""
    from moorage.policies.parameters import schema

    return {
        "type": policy.type,
        "summary": policy.summary,
        "description": inspect.getdoc(policy) or "",
        "schema": schema(policy),
        "examples": [
            {
                "title": one.title,
                "parameters": dict(one.parameters),
                "hosts": list(one.hosts),
                "good": one.good,
                "foreign": list(one.foreign),
            }
            for one in policy.examples
        ],
    }


class List(Command):
    """List the types of policies.

    Needs no server. A policy of any type may be required, or preferred with a weight.
    """

    examples = "moorage policy list\nmoorage policy show survive"
    auth_required = False

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        from moorage.policies.registry import discover

        documents = [document(one) for one in discover().values()]
        rows = [(one["type"], _signature(one["schema"]), one["summary"]) for one in documents]
        return Shown({"policy_types": documents}, table(["type", "parameters", "meaning"], rows))


def _signature(schema: Mapping[str, Any]) -> str:
    """The parameters: `keep lose level tree`, required ones first, others in brackets."""
    required = schema["required"]
    others = [f"[{name}]" for name in schema["properties"] if name not in required]
    return " ".join([*required, *others])


class Show(Command):
    """Explain a type of policy, with examples.

    Needs no server. The examples' fleet has racks r1 to r3 with hosts h1 to h3 in each; the host
    outside/h1 is in none.
    """

    examples = "moorage policy show survive"
    auth_required = False
    options = (Option("type", metavar="TYPE", help="see `moorage policy list`"),)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.policies.registry import discover

        known = discover()
        if args.type not in known:
            raise NotFound("policy type", f"{args.type}; known are: {', '.join(known)}")
        found = document(known[args.type])
        schema = found["schema"]
        parameters = [
            (
                name,
                "required" if name in schema["required"] else _default(field),
                field.get("description", ""),
            )
            for name, field in schema["properties"].items()
        ]
        examples = [
            (
                "holds" if one["good"] else "broken",
                " ".join(one["hosts"]),
                " ".join(f"{name}={value}" for name, value in one["parameters"].items()),
                one["title"],
            )
            for one in found["examples"]
        ]
        text = stack(
            fields([(found["type"], found["summary"])]),
            "",
            paragraphs(found["description"]),
            "",
            table(["parameter", "default", "meaning"], parameters),
            "",
            table(["example", "members on", "with", "because"], examples),
        )
        return Shown({"policy_type": found}, text)


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    return "-" if value in (None, []) else str(value)
