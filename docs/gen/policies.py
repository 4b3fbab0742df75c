"""The page of the policy types, from their files."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.policies.contract import Example, Policy

ABOUT_POLICIES: Final = """\
A policy names members by selectors and constrains their places. Its `strength` is
`required`, or `{preferred: weight}`: then each unit by which it is broken costs `weight`. Its
`phase` says [when it must hold](../concept/ensembles.md#phases): `create`, `steady`, `transition`,
or several of them; always, if nothing is said. `on_violation` says what becomes of Nova's writes
that break it: see [servers of others](../guide/nova.md#servers-of-others-on-exclusive-hosts).
[Ensembles and policies](../concept/ensembles.md) explains the ideas. Every example is run by the
tests."""
ABOUT_EXAMPLES: Final = """\
The examples use three racks of three hosts each, `r1/h1` to `r3/h3`. Racks r1 and r2 are in
zone z1, rack r3 is in zone z2. The host `outside/h1` is in no rack and no zone."""


def page() -> str:
    """Every policy type, from its file."""
    from moorage.policies import discover

    known = discover()
    return "\n\n".join(
        [
            "# Policies",
            ABOUT_POLICIES,
            table(
                ("Type", "Meaning"),
                ((f"[`{name}`](#{name})", policy.summary) for name, policy in known.items()),
            ),
            ABOUT_EXAMPLES,
            *(section(policy) for policy in known.values()),
        ]
    )


def section(policy: type[Policy]) -> str:
    """One policy: what it means, its parameters, good and bad placements."""
    from moorage.policies.parameters import schema

    return "\n\n".join(
        [
            f"## `{policy.type}` {{ #{policy.type} }}",
            f"*{policy.summary}*",
            inspect.getdoc(policy) or "",
            table(("Parameter", "Takes", "Default", "Meaning"), parameters(schema(policy))),
            table(("Example", "Parameters", "Hosts in order", ""), map(example, policy.examples)),
        ]
    )


def parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The rows of a policy's parameters."""
    for name, one in schema["properties"].items():
        needed = "must be given" if name in schema["required"] else "none"
        default = code(one["default"]) if "default" in one else needed
        yield f"`{name}`", takes(one), default, text(one.get("description", ""))


def takes(schema: Mapping[str, Any]) -> str:
    """What values a parameter takes, in words."""
    if "anyOf" in schema:
        return ", or ".join(takes(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(code(value) for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {takes(schema['items'])}"
    if schema["type"] == "integer":
        return f"integer from {schema['minimum']}"
    return str(schema["type"])


def example(shown: Example) -> tuple[str, ...]:
    """The row of one example."""
    given = ", ".join(f"`{name}: {value}`" for name, value in shown.parameters.items())
    foreign = f"; others on {', '.join(shown.foreign)}" if shown.foreign else ""
    where = ", ".join(shown.hosts) + foreign
    return shown.title, given or "none", where, "holds" if shown.good else "**broken**"
