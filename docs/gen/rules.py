"""The page of the access rules, from the route tables of all APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ABOUT: Final = """\
The rules that a [policy file](../guide/access.md#rules) may change, with their defaults. Every
route that needs a token has one. Roles are roles in a project. Rules do not decide whose objects
a caller sees: that is the project's."""
NAMES: Final = "Rules of a policy file may refer to these names, change them, and add others."
OPERATORS: Final = """\
A caller who meets a rule that is by default for operators acts as an operator in that request
only."""


def page() -> str:
    """The rules of every API, then the names they refer to."""
    from moorage.api.compute import routes as compute
    from moorage.api.compute import rules as compute_rules
    from moorage.api.leases import routes as leases
    from moorage.api.leases import rules as lease_rules
    from moorage.api.native.routes import CLOCK
    from moorage.api.native.rules import KNOWN
    from moorage.api.placement import rules
    from moorage.api.placement.routes import TABLE

    theirs = rules.defaults(new=False)
    clock = [(rule, "/simulation/clock") for rule in CLOCK]
    placement = table(
        ("Rule", "By default", "Routes"),
        rows(theirs, [(rule, f"{method} {path}") for method, path, _, _, rule in TABLE]),
    )
    others = (
        ("Lease API", lease_rules.KNOWN, leases.ROUTES),
        ("Server groups", compute_rules.KNOWN, compute.ROUTES),
    )
    every = {**KNOWN, **theirs, **lease_rules.KNOWN, **compute_rules.KNOWN}
    return "\n\n".join(
        [
            "# Access rules",
            ABOUT,
            f"## Native API\n\n{OPERATORS}",
            table(("Rule", "By default", "Routes"), rows(KNOWN, [*native(), *clock])),
            "## Placement API",
            placement,
            *(
                f"## {title}\n\n"
                + table(
                    ("Rule", "By default", "Routes"),
                    rows(known, [(one.rule, f"{one.method} {one.path}") for one in routes]),
                )
                for title, known, routes in others
            ),
            f"## Names\n\n{NAMES}",
            table(
                ("Name", "Check"),
                ((code(name), code(check)) for name, check in every.items() if ":" not in name),
            ),
        ]
    )


def native() -> Iterator[tuple[str, str]]:
    """The rule of each native route."""
    from moorage.api.native.routes import ROUTES

    return ((route.rule, f"{route.method} {route.path}") for route in ROUTES)


def rows(known: Mapping[str, str], used: list[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """A rule, its check, and where it is asked."""
    for rule in dict.fromkeys(rule for rule, _ in used if rule):
        places = ", ".join(code(place) for name, place in used if name == rule)
        yield code(rule), code(known[rule]), places
