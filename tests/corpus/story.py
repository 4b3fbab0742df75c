"""Stories: files of requests in order, one ledger each. See README.md for their form."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent
STORIES: Final = HERE / "stories"
FLEETS: Final = (HERE / "fleets", HERE.parents[1] / "fleets")
"""Folders of fleet files: the corpus's own, then the repository's."""

CALLERS: Final[Mapping[str, Mapping[str, str]]] = {
    "op": {"x-auth-token": "op:operations", "x-roles": "admin"},
    "ann": {"x-auth-token": "ann:project-a", "x-roles": "member"},
    "rae": {"x-auth-token": "rae:project-a", "x-roles": "reader"},
    "bob": {"x-auth-token": "bob:project-b", "x-roles": "member"},
    "nova": {"x-auth-token": "nova:service", "x-roles": "service"},
    "guest": {"x-auth-token": "guest:project-c", "x-roles": "guest"},
    "nobody": {},
}
"""The headers by which a caller is known; `nobody` has no token."""
_SERVICES: Final = {"placement": "placement", "compute": "compute", "v1": "ensemble"}
"""First segment of a path -> the service that `OpenStack-API-Version` names."""
ALL: Final = tuple(f"1.{minor}" for minor in range(40))
"""Every microversion of Placement."""


class BadStory(ValueError):
    """A story cannot be read or played."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, before names are filled in."""

    method: str
    path: str
    caller: str
    version: str | None
    headers: Mapping[str, str]
    body: Any = None
    text: str | None = None
    """A body that is sent as it is."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Name -> where its value is in the answer: `ensemble.id`, or `header location`."""
    unread: bool = False
    """Whether the answer's body is left out of the record."""

    @property
    def sent_headers(self) -> dict[str, str]:
        """Headers of the request with the caller's and the version's."""
        found = {**CALLERS[self.caller]}
        if self.version is not None:
            service = _SERVICES.get(self.path.split("/")[1], "reservation")
            found["openstack-api-version"] = f"{service} {self.version}"
        if self.body is not None or self.text is not None:
            found["content-type"] = "application/json"
        return found | {name.lower(): value for name, value in self.headers.items()}

    def filled(self, kept: Mapping[str, str]) -> "Step":
        """The request to send: with kept values for `${name}`, and the body as text.

        `${minor}` is the second number of the version, in two digits.
        """
        minor = (self.version or ".").partition(".")[2].rjust(2, "0")

        def fill(text: str) -> str:
            return Template(text).safe_substitute(kept, minor=minor)

        text = self.text if self.body is None else json.dumps(self.body)
        return replace(
            self,
            path=fill(self.path),
            headers={name: fill(value) for name, value in self.headers.items()},
            body=None,
            text=None if text is None else fill(text),
        )


@dataclass(frozen=True, slots=True)
class Story:
    """The requests of one file."""

    name: str
    """`native/leases`: its folder and file."""
    steps: tuple[Step, ...]
    fleet: str | None
    """Text of a fleet file that is loaded first."""
    settings: Mapping[str, str]
    judges: bool
    """Whether ensembles are judged when the clock is set."""
    source: str


class _Plain(yaml.SafeLoader):
    """YAML whose times stay text."""


_Plain.yaml_implicit_resolvers = {
    start: [one for one in some if not one[0].endswith(":timestamp")]
    for start, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_STEP: Final = {
    *("as", "version", "versions", "headers", "body", "text", "keep", "unread"),
    "dry_run",
}
_STORY: Final = {"about", "fleet", "settings", "judges", "as", "version", "shared", "steps"}


def names() -> list[str]:
    """The names of all stories."""
    found = STORIES.glob("*/*.yaml")
    return sorted(str(path.relative_to(STORIES).with_suffix("")) for path in found)


def read(name: str) -> Story:
    """A story by name.

    Raises:
        BadStory: it has an unknown key or a step that is no request.
    """
    source = (STORIES / f"{name}.yaml").read_text(encoding="utf-8")
    told = yaml.load(source, _Plain)
    _known(name, told, _STORY)
    fleet = told.get("fleet")
    return Story(
        name=name,
        steps=tuple(step for one in told["steps"] for step in _steps(name, told, one)),
        fleet=None if fleet is None else _fleet(fleet),
        settings=told.get("settings", {}),
        judges=told.get("judges", False),
        source=source,
    )


def _fleet(name: str) -> str:
    """The text of a fleet file.

    Raises:
        BadStory: there is none of this name.
    """
    for folder in FLEETS:
        if (path := folder / f"{name}.yaml").exists():
            return path.read_text(encoding="utf-8")
    raise BadStory(f"no fleet {name}")


def _steps(name: str, story: Mapping[str, Any], told: Any) -> Iterator[Step]:
    """The requests of one entry: several with `dry_run` or `versions`."""
    asked, more = (told, {}) if isinstance(told, str) else next(iter(told.items()))
    more = more or {}
    _known(f"{name}: {asked}", more, _STEP)
    match = re.fullmatch(r"([A-Z]+) ([/$].*)", asked)
    if match is None or (not isinstance(told, str) and len(told) != 1):
        raise BadStory(f"{name}: {told!r} is no step: write 'GET /path' or 'GET /path: {{...}}'")
    method, path = match.groups()
    versions = more.get("versions", [more.get("version", story.get("version"))])
    for version in ALL if versions == "all" else versions:
        step = Step(
            method=method,
            path=path,
            caller=more.get("as", story.get("as", "ann")),
            version=version,
            headers=more.get("headers", {}),
            body=more.get("body"),
            text=more.get("text"),
            keep=more.get("keep", {}),
            unread=more.get("unread", False),
        )
        if more.get("dry_run"):
            dry = f"{path}{'&' if '?' in path else '?'}dry_run=true"
            yield Step(method, dry, step.caller, version, step.headers, step.body, step.text)
        yield step


def _known(where: str, told: Mapping[str, Any], keys: set[str]) -> None:
    if unknown := set(told) - keys:
        raise BadStory(f"{where}: unknown {', '.join(sorted(unknown))}")
