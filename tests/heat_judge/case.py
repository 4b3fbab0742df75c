"""A template with all that goes with it, and what a side says of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Outcome = Literal["expanded", "refused", "broken"]
GROUP: Final = "group:"
SERVER: Final = "server:"
FLAVOR: Final = "flavor:"
"""What ids of resources of the tree begin with; the path follows (but for flavors)."""
COMPARED: Final = ("group", "different_host", "same_host")
"""The hints that Moorage follows; others are Nova's alone."""


@dataclass(frozen=True)
class Case:
    """A template as a user gives it to a client: files in a folder, environments, parameters."""

    label: str
    template: str
    """Its file's name, relative to the folder, as all names are."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name -> text; unused if there is a folder."""
    environments: tuple[str, ...] = ()
    """Names of environment files, in the order of `-e`."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    """Where the files are, if they are on disk already."""

    def plain(self) -> dict[str, Any]:
        """The case in the engine's form."""
        found = {**asdict(self), "environments": list(self.environments)}
        del found["folder"]
        return {**found, **({} if self.folder is None else {"folder": str(self.folder)})}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Case:
        """The case of its plain form."""
        return cls(
            label=plain["label"],
            template=plain["template"],
            files=plain["files"],
            environments=tuple(plain.get("environments", ())),
            parameters=plain.get("parameters", {}),
        )


@dataclass(frozen=True, order=True)
class Server:
    """One server: where it stands in the tree of stacks, and what decides its place."""

    path: str
    """Names of resources on the way down; members of scaling groups, named at random, are `*`."""
    flavor: str | None
    """None: known only when the stack is made."""
    zone: str = ""
    hints: str = "{}"
    """The scheduler's hints as JSON; a server or group of the tree is named by its path."""


@dataclass(frozen=True, order=True)
class Group:
    """A server group with servers in it."""

    path: str
    policy: str
    max_per_host: int | None
    members: tuple[str, ...]


@dataclass(frozen=True)
class Expansion:
    """What a template expands to, as one of the sides sees it."""

    outcome: Outcome
    reason: str = ""
    """Of the refusal. Of Heat's expansion: why it would refuse later, when creating it."""
    servers: tuple[Server, ...] = ()
    groups: tuple[Group, ...] = ()
    others: tuple[str, ...] = ()
    """Paths of resources that are not placed."""
    scaling: frozenset[str] = frozenset()
    """Paths of scaling groups."""
    grouping: frozenset[str] = frozenset()
    """Paths of server groups, with members or without."""


def as_hints(hints: Mapping[str, Any]) -> str:
    """Hints in the form that is compared: those that are followed, and name what is in the tree."""
    found: dict[str, list[str]] = {}
    for name in COMPARED:
        value = hints.get(name)
        listed = value if isinstance(value, list) else [value]
        known = [str(one) for one in listed if str(one).startswith((GROUP, SERVER))]
        if known:
            found[name] = sorted(known)
    return json.dumps(found)
