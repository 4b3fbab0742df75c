"""Look-ups in the ledger that several use cases share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from moorage.domain.errors import InvalidDescription, NotFound, UnknownName
from moorage.domain.topology import DEFAULT_TREE, HOST, Level, unknown_level
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.domain.leases import Lease
    from moorage.domain.topology import Domain, Topology
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store


class _Record(Protocol):
    @property
    def id(self) -> str:
        """The record's id, which is the marker of the next page."""


_R = TypeVar("_R", bound=_Record)
_T = TypeVar("_T")


def every_record(read: Callable[..., Sequence[_R]]) -> Iterator[_R]:
    """All records of a listing; `read` reads the page that it gets as `page`."""
    page = Page()
    while some := read(page=page):
        yield from some
        if len(some) < page.limit:
            return
        page = Page(marker=some[-1].id)


def if_stored(read: Callable[[str], _T], key: str) -> _T | None:
    """What `read` finds by this key, such as `store.ensemble` by its id; None if there is none."""
    try:
        return read(key)
    except NotFound:
        return None


def lease_of_decision(store: Store, decision_id: str) -> Lease | None:
    """The lease that a decision places; None without one, or if a record of it is deleted."""
    try:
        lease_id = store.decision(decision_id).lease_id
        return None if lease_id is None else store.lease(lease_id)
    except NotFound:
        return None


def host_named(snapshot: Snapshot, name: str) -> int:
    """The row of a host by its UUID or name.

    Raises:
        NotFound: there is no such provider, or it is inside a host.
    """
    row = snapshot.row_of.get(name)
    if row is None:
        row = next((one for one in snapshot.hosts.tolist() if snapshot.names[one] == name), None)
    if row is None or snapshot.root[row] != row:
        raise NotFound("host", name)
    return int(row)


def hosts_of_domain(snapshot: Snapshot, text: str, *, path: str = "domains") -> frozenset[int]:
    """Rows of the hosts in a failure domain.

    `text` is the domain's name, such as `r2`, or says its level, and the tree of that, too:
    `rack/r2`, `power:feed/a`. A name alone means the domains of that name of every level.

    Raises:
        UnknownName: there is no such level or domain; `path` is where it was named.
    """
    levels = [one for one in snapshot.topology.every_level if one.name != HOST]
    known = [one for one in levels if text in snapshot.domain_names(one)]
    name = text
    if not known and "/" in text:
        prefix, _, name = text.partition("/")
        tree, _, level = prefix.rpartition(":")
        found = snapshot.topology.find_level(level, tree or DEFAULT_TREE, path=path)
        known = [found] if name in snapshot.domain_names(found) else []
    if not known:
        raise UnknownName("domain", text, path=path)
    hosts = snapshot.hosts
    return frozenset(
        row
        for one in known
        for row in hosts[
            np.isin(snapshot.domains(one)[hosts], _numbers(snapshot.domain_names(one), name))
        ].tolist()
    )


def _numbers(names: Sequence[str], name: str) -> list[int]:
    return [number for number, one in enumerate(names) if one == name]


def level_named(topology: Topology, text: str, path: str) -> Level:
    """The level that `rack`, `host` or `power:feed` names.

    A level without a tree is that of the default tree, or else of the first tree that has it.

    Raises:
        UnknownName: there is none.
    """
    tree, colon, name = text.rpartition(":")
    if colon and tree not in topology.levels:
        raise UnknownName("tree", tree, path=path, known=topology.levels)
    if name == HOST:
        return Level(tree or next(iter(topology.levels), DEFAULT_TREE), HOST)
    known = topology.every_level
    named = [one for one in known if one.name == name and tree in {"", one.tree}]
    if not named:
        raise unknown_level(text, (*map(str, known), HOST), path=path)
    return next((one for one in named if one.tree == DEFAULT_TREE), named[0])


def domain_named(topology: Topology, text: str, path: str) -> Domain:
    """The domain that `rack/r2`, `power:feed/f1` or `r2` names.

    Raises:
        UnknownName: there is no such level or domain.
        InvalidDescription: domains of several trees have the name.
    """
    level, slash, name = text.partition("/")
    if slash:
        of = level_named(topology, level, path)
        found = topology.domains.get((of.tree, name))
        if found is not None and found.level == of.name:
            return found
        known = [one.name for one in topology.domains.values() if of == Level(one.tree, one.level)]
        raise UnknownName(str(of), name, path=path, known=known)
    named = [one for one in topology.domains.values() if one.name == text]
    if len(named) > 1:
        which = ", ".join(f"{Level(one.tree, one.level)}/{one.name}" for one in named)
        raise InvalidDescription(f"{text} is the name of several domains: {which}", path=path)
    if not named:
        known = [one.name for one in topology.domains.values()]
        raise UnknownName("domain", text, path=path, known=known)
    return named[0]


def hosts_named(snapshot: Snapshot, text: str, *, path: str) -> tuple[int, ...]:
    """Rows of the hosts that a name means: a host's own, or those of a domain (`hosts_of_domain`).

    Raises:
        UnknownName: there is neither.
        InvalidDescription: the domain has no host.
    """
    hosts = snapshot.hosts
    row = snapshot.row_of.get(text)
    if row is not None and row in hosts:
        return (row,)
    named = tuple(one for one in hosts.tolist() if snapshot.names[one] == text)
    if named:
        return named
    try:
        rows = hosts_of_domain(snapshot, text, path=path)
    except UnknownName as error:
        if "/" in text:
            raise
        names = (snapshot.names[one] for one in hosts.tolist())
        known = (*names, *(one.name for one in snapshot.topology.domains.values()))
        raise UnknownName("host or domain", text, path=path, known=known) from error
    if not rows:
        raise InvalidDescription(f"{text} has no host", path=path)
    return tuple(sorted(rows))
