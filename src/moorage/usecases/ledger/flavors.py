"""Flavors: write, delete, and load from `openstack flavor list --long -f json`.

All callers read flavors, operators write them. In a listing RAM is in MiB, Disk and Ephemeral in
GiB, Swap in MiB (or an empty string). Nova requests the root and ephemeral disks and the swap,
rounded up to GiB, as DISK_GB. The property `resources:X` replaces the amount of a class (0 removes
it), `trait:X` is `required` or `forbidden`; properties without effect on placement are stored as
extra specs, and all others are refused (see `domain.extra_specs`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, DeleteFlavor, PutFlavor
from moorage.domain.errors import (
    DuplicateName,
    InvalidDescription,
    MoorageError,
    NotFound,
    UnknownName,
)
from moorage.domain.extra_specs import check
from moorage.domain.flavors import Flavor
from moorage.domain.resources import amounts
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.role_resolution import LedgerNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


_PROPERTY: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*'([^']*)'\s*(?:,|$)")
_MIB_PER_GIB: Final = 1024
_DIGITS: Final = 12
_LONGEST: Final = 255
"""Longest name in characters; Nova's limit."""
_COLUMNS: Final = frozenset({"ID", "Name", "RAM", "Disk", "Ephemeral", "VCPUs"})


@dataclass(frozen=True, slots=True)
class UnreadableFlavor:
    """A flavor of a listing that was not loaded."""

    row: int
    """Its index in the listing, from 0."""
    id: str
    name: str
    path: str | None
    why: str


def refused(row: object, index: int, error: MoorageError) -> UnreadableFlavor:
    """A row of a listing with the error that refused it."""
    fields = row if isinstance(row, Mapping) else {}
    said = {key: fields.get(key) for key in ("ID", "Name")}
    texts = {key: str(one)[:_LONGEST] for key, one in said.items() if isinstance(one, str | int)}
    path = error.path if isinstance(error, InvalidDescription | UnknownName) else None
    return UnreadableFlavor(index, texts.get("ID", ""), texts.get("Name", ""), path, error.message)


def read_row(row: object, path: str) -> Flavor:
    """Read one flavor.

    Raises:
        InvalidDescription: a missing column, a value of another type, or an unsupported extra spec
            that may affect placement.
    """
    if not isinstance(row, Mapping):
        raise InvalidDescription("a flavor is an object", path=path)
    for column in sorted(_COLUMNS - set(row)):
        raise InvalidDescription(f"column {column} is missing", path=f"{path}.{column}")
    properties = read_properties(row.get("Properties"), f"{path}.Properties")
    swap = _number(row.get("Swap") or 0, f"{path}.Swap")
    disk = _number(row["Disk"], f"{path}.Disk") + _number(row["Ephemeral"], f"{path}.Ephemeral")
    check(properties, f"{path}.Properties")
    resources = {
        "VCPU": _number(row["VCPUs"], f"{path}.VCPUs"),
        "MEMORY_MB": _number(row["RAM"], f"{path}.RAM"),
        "DISK_GB": disk + -(-swap // _MIB_PER_GIB),
    }
    required: set[str] = set()
    forbidden: set[str] = set()
    rest: dict[str, str] = {}
    for name, value in properties.items():
        kind, _, what = name.partition(":")
        where = f"{path}.Properties.{name}"
        if kind == "resources":
            resources[what] = _number(value, where)
        elif kind == "trait":
            (required if value == "required" else forbidden).add(what)
        else:
            rest[name] = value
    positive = {name: amount for name, amount in resources.items() if amount}
    if not positive:
        raise InvalidDescription("a flavor without any resource", path=path)
    return Flavor(
        id=_text(row["ID"], f"{path}.ID"),
        name=_text(row["Name"], f"{path}.Name"),
        resources=amounts(positive, path=path),
        required=tuple(frozenset({trait}) for trait in sorted(required)),
        forbidden=frozenset(forbidden),
        extra_specs=MappingProxyType(dict(sorted(rest.items()))),
    )


def read_properties(source: object, path: str) -> dict[str, str]:
    """Read properties: a mapping, or text such as `hw:cpu_policy='dedicated', a='b'`.

    Raises:
        InvalidDescription: the source is neither.
    """
    if source is None or source == "":
        return {}
    if isinstance(source, Mapping):
        return {str(name): str(value) for name, value in source.items()}
    if not isinstance(source, str):
        raise InvalidDescription("Properties must be an object or text", path=path)
    found, at = {}, 0
    while at < len(source):
        match = _PROPERTY.match(source, at)
        if match is None:
            raise InvalidDescription(
                f"Properties cannot be read from here: {source[at : at + 40]!r}", path=path
            )
        found[match[1]] = match[2]
        at = match.end()
    return found


def _number(value: object, path: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    what, said = path.rpartition(".")[2], str(value)[:_LONGEST]
    raise InvalidDescription(f"{what} must be a whole number, not {said!r}", path=path)


def _text(value: object, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value and len(value) <= _LONGEST:
        return value
    raise InvalidDescription(f"{path.rpartition('.')[2]} must be a name", path=path)


def put_flavors(
    env: UseCaseEnvironment, caller: Caller, flavors: Sequence[Flavor], *, dry_run: bool = False
) -> None:
    """Write flavors, all or none; a stored flavor with the same id is replaced.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: a resource class or trait that the ledger does not have.
        DuplicateName: another flavor has the name.
    """
    require_operator(caller)
    known = LedgerNames(env.store, operator=True)
    names: dict[str, str] = {}
    for index, flavor in enumerate(flavors):
        _check_names(known, flavor, f"flavors[{index}]")
        if names.setdefault(flavor.name, flavor.id) != flavor.id:
            raise DuplicateName("flavor", flavor.name)
    for other in env.store.flavors():
        if names.get(other.name, other.id) != other.id:
            raise DuplicateName("flavor", other.name)
    if not dry_run:
        env.store.commit(Changeset(tuple(PutFlavor(flavor) for flavor in flavors)))


@dataclass(frozen=True, slots=True)
class FlavorLoadResult:
    """The flavors loaded from a listing, and those refused."""

    flavors: tuple[Flavor, ...]
    refused: tuple[UnreadableFlavor, ...]


def load_flavors(
    env: UseCaseEnvironment, caller: Caller, rows: Sequence[object], *, dry_run: bool = False
) -> FlavorLoadResult:
    """Write the flavors of Nova's listing; unreadable ones are returned, and the others written.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    known = LedgerNames(env.store, operator=True)
    taken = {other.name: other.id for other in env.store.flavors()}
    found: dict[str, Flavor] = {}
    out: list[UnreadableFlavor] = []
    for index, row in enumerate(rows):
        path = f"flavors[{index}]"
        try:
            flavor = read_row(row, path)
            _check_names(known, flavor, path)
        except (InvalidDescription, UnknownName) as error:
            out.append(refused(row, index, error))
            continue
        if taken.setdefault(flavor.name, flavor.id) != flavor.id:
            out.append(refused(row, index, DuplicateName("flavor", flavor.name)))
            continue
        found[flavor.id] = flavor
    flavors = tuple(found.values())
    if flavors and not dry_run:
        env.store.commit(Changeset(tuple(PutFlavor(flavor) for flavor in flavors)))
    return FlavorLoadResult(flavors, tuple(out))


def _check_names(known: LedgerNames, flavor: Flavor, path: str) -> None:
    known.check_classes(frozenset(flavor.resources), f"{path}.resources")
    known.check_traits(frozenset().union(*flavor.required), f"{path}.required")
    known.check_traits(flavor.forbidden, f"{path}.forbidden")


def delete_flavor(
    env: UseCaseEnvironment, caller: Caller, name: str, *, dry_run: bool = False
) -> None:
    """Delete a flavor; ensembles keep its values of when they were described.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: there is no flavor with this id or name.
    """
    require_operator(caller)
    flavor = env.store.flavor(name)
    if name not in (flavor.id, flavor.name):
        raise NotFound("flavor", name)
    if not dry_run:
        env.store.commit(Changeset((DeleteFlavor(flavor.id),)))
