"""Look-ups in the ledger that several use cases share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from moorage.domain.errors import NotFound, UnknownName
from moorage.domain.topology import DEFAULT_TREE, HOST
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.domain.leases import Lease
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
