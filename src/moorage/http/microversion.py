"""Microversions: the header's grammar, and older behaviour as declared changes.

Handlers know only the newest version. Each step of a dialect's history is a `Change` with a
name; what it did to requests, responses, schemas and routes is declared beside the name.
A request asks for a *feature by name* (`Spoken.has`) and never compares numbers: the one
comparison is in `History`.

Header: `OpenStack-API-Version: <service> <version>`, a comma list for several services, where
the version is `latest` or `MAJOR.MINOR` (OpenStack API SIG, microversion specification).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

JSON: TypeAlias = Any
"""A decoded JSON value. What shape it has is the schema's business."""

Operation: TypeAlias = str
"""The name of one method of one route, as in a dialect's route table."""

LATEST: Final = "latest"


_DIGITS: Final = 9


def _number(text: str) -> int:
    """An integer; cut off, one of so many digits is still beyond every version there is."""
    if text.isascii() and text.isdigit():
        return int(text.lstrip("0")[:_DIGITS] or "0")
    return int(text)


class InvalidVersion(Exception):
    """The header does not follow the grammar: status 400."""


class UnacceptableVersion(Exception):
    """A well-formed version that does not exist: status 406."""

    def __init__(self, asked: str, history: History) -> None:
        super().__init__(asked)
        self.asked = asked
        self.minimum = history.minimum
        self.maximum = history.maximum


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A point in a dialect's history; ordered by number, so 1.10 comes after 1.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read `MAJOR.MINOR`, two integers in any spelling that Python reads, such as `1.039`.

        Raises:
            InvalidVersion: anything else.
        """
        try:
            major, minor = (_number(part) for part in text.split(".", 1))
        except ValueError:
            raise InvalidVersion(text) from None
        return cls(major, minor)


@dataclass(frozen=True, slots=True)
class Response:
    """A handler's answer before it is encoded, in the shape of the newest version.

    `body` is a JSON value, or whatever the dialect knows to send as one; None means an empty body.
    `modified` is an instant in microseconds, None where the answer carries no cache headers.
    `location` is a path below the dialect's mount point. One that is `undated` has the cache
    headers but for the date.
    """

    status: int = 200
    body: JSON = None
    location: str | None = None
    modified: int | None = None
    undated: bool = False


Lift: TypeAlias = Callable[[JSON], JSON]
"""Turns a valid request body of the version before into one of the version of the change."""

Lower: TypeAlias = Callable[[Response], Response]
"""Turns a response of the version of the change into one of the version before."""

Schemas: TypeAlias = Callable[[JSON], JSON]
"""Turns a schema of the version of the change into the one of the version before."""

_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Change:
    """One declared step of a dialect's history.

    `routes` are operations that did not exist before, each with the status they answer there;
    `instead` gives, per operation, the handler that served it before. The mappings `schemas`,
    `queries`, `lift` and `lower` say per operation what was different before.
    """

    since: str
    feature: str
    routes: Mapping[Operation, int] = field(default_factory=lambda: _NONE)
    instead: Mapping[Operation, Callable[..., Response]] = field(default_factory=lambda: _NONE)
    schemas: Mapping[Operation, Schemas] = field(default_factory=lambda: _NONE)
    queries: Mapping[Operation, Schemas] = field(default_factory=lambda: _NONE)
    lift: Mapping[Operation, Lift] = field(default_factory=lambda: _NONE)
    lower: Mapping[Operation, Lower] = field(default_factory=lambda: _NONE)

    @property
    def version(self) -> Version:
        """The version that introduced it."""
        return Version.parse(self.since)


@dataclass(frozen=True, eq=False)
class NegotiatedVersion:
    """The version one request speaks. `missing` are the changes that came later, newest first.

    Made once per version by its history, so it compares and hashes by identity.
    """

    version: Version
    features: frozenset[str]
    known: frozenset[str]
    missing: tuple[Change, ...]

    def has(self, feature: str) -> bool:
        """Whether the feature exists in this version; an undeclared name is a programming error."""
        assert feature in self.known, f"no change declares {feature}"
        return feature in self.features

    def absent(self, operation: Operation) -> int | None:
        """The status to answer when the operation does not exist yet, else None."""
        return next((c.routes[operation] for c in self.missing if operation in c.routes), None)

    def handler(
        self, operation: Operation, newest: Callable[..., Response]
    ) -> Callable[..., Response]:
        """The handler that served the operation in this version."""
        for change in self.missing:
            newest = change.instead.get(operation, newest)
        return newest

    def lifted(self, operation: Operation, body: JSON) -> JSON:
        """A request body as the newest version would have it."""
        for change in reversed(self.missing):
            if operation in change.lift:
                body = change.lift[operation](body)
        return body

    def lowered(self, operation: Operation, response: Response) -> Response:
        """A response as this version has it."""
        for change in self.missing:
            if operation in change.lower:
                response = change.lower[operation](response)
        return response

    def lowers(self, operation: Operation) -> bool:
        """Whether this version shows the operation's answer in another shape than the newest."""
        return any(operation in change.lower for change in self.missing)

    def schema(self, operation: Operation, newest: JSON) -> JSON:
        """The body schema of this version."""
        for change in self.missing:
            if operation in change.schemas:
                newest = change.schemas[operation](newest)
        return newest

    def query(self, operation: Operation, newest: JSON) -> JSON:
        """The query schema of this version."""
        for change in self.missing:
            if operation in change.queries:
                newest = change.queries[operation](newest)
        return newest


class History:
    """A dialect's changes in order; one version after the other, without gaps or twins."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._changes = tuple(sorted(changes, key=lambda change: change.version))
        versions = [change.version for change in self._changes]
        if not versions or len(set(versions)) < len(versions):
            raise ValueError("a history needs exactly one change per version")
        self.minimum, self.maximum = versions[0], versions[-1]
        self._known = frozenset(change.feature for change in self._changes)
        self.at = cache(self._at)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change, oldest first."""
        return self._changes

    def _at(self, version: Version) -> NegotiatedVersion:
        return NegotiatedVersion(
            version=version,
            features=frozenset(c.feature for c in self._changes if c.version <= version),
            known=self._known,
            missing=tuple(c for c in reversed(self._changes) if c.version > version),
        )

    def negotiated(self, header: str | None, service: str) -> NegotiatedVersion:
        """What a request with this header speaks; the oldest version without one.

        Raises:
            InvalidVersion: the header names the service with something that is no version.
            UnacceptableVersion: it names a version that does not exist.
        """
        asked = requested_version(header, service)
        if asked is None:
            return self.at(self.minimum)
        if asked == LATEST:
            return self.at(self.maximum)
        version = Version.parse(asked)
        if version not in {change.version for change in self._changes}:
            raise UnacceptableVersion(asked, self)
        return self.at(version)


def requested_version(header: str | None, service: str) -> str | None:
    """The version text the header gives for `service` (names compare without case), or None.

    The last that names the service with anything counts, as with OpenStack's own parser.
    """
    for part in reversed((header or "").split(",")):
        name, *version = part.split(None, 1) or [""]
        if name.lower() == service and version:
            return version[0].strip()
    return None
