"""Conditions of a commit: changes that write nothing and refuse the commit if they do not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.domain.quotas import QuotaName


@dataclass(frozen=True, slots=True)
class BoundHeld:
    """Refuse the commit unless the project then holds or claims at most so many places.

    One that holds no more than before passes, though the limit has been lowered since.
    These are as many as its quota says, or `limit` where that says nothing.

    Judged after the changes before it: of several that are made at once, those that come too
    late are QuotaExceeded. `requested`, the places that it had not before, is named in the error.
    """

    project_id: str
    limit: int
    requested: int
    disclosed: bool = True
    """Whether the error may name the limit and the usage; else it is OtherQuotaExceeded."""


@dataclass(frozen=True, slots=True)
class BoundOffers:
    """Refuse the commit unless the project then has at most so many open `offers`.

    Their places, with those that it holds or claims besides, are at most `held`. Both are as many
    as the project's quota says, or these where that says nothing. QuotaExceeded.

    Judged after the changes before it, as `BoundHeld` is. The error names the `requested` places.
    """

    project_id: str
    offers: int
    held: int
    requested: int


@dataclass(frozen=True, slots=True)
class BoundStored:
    """Refuse the commit unless the project then stores at most so many records of one kind.

    These are as many as its quota says, or `limit` where that says nothing. QuotaExceeded; for
    what others offer to the project OtherQuotaExceeded, without numbers.

    Judged after the changes before it, of which the last one adds `requested` things.
    """

    project_id: str
    name: QuotaName
    """One of `quotas.STORED`, but for offers: see `BoundOffers`."""
    limit: int
    requested: int = 1


@dataclass(frozen=True, slots=True)
class BoundShareOffers:
    """Refuse the commit if the `owner` has offered the project roles `most` times, within a time.

    One commit offers several roles with one event, which counts once; TooManyRequests says when
    the next one may come. Of the project's newest events a bounded number is looked at: what no
    longer is among them pushes nothing out.
    """

    project_id: str
    """To whom this commit offers roles."""
    owner: str
    """The project of the ensemble."""
    most: int
    within: Duration


@dataclass(frozen=True, slots=True)
class BoundOfferedNames:
    """Refuse the commit if the project's server providers then have more than `limit` names.

    Classes and traits count that only such providers have brought in. LimitExceeded.

    Judged after the changes before it, of which `requested` names are new to the project.
    """

    project_id: str
    limit: int
    requested: int


@dataclass(frozen=True, slots=True)
class ExpectUniqueName:
    """Refuse the commit if another ensemble in use of the project has this name. NameTaken.

    One that is not in use does not count: its lease is over, or it was decided and no member has a
    place any more, be it that it was given back, lapsed or was a server's that is gone. Nor does a
    copy that an offer keeps its places with. Ensembles that share a name because they were made
    before this was judged stay as they are; so do server groups, which may share their names as in
    Nova, and those that are described with leases, which are called by their leases and so as
    often as these.
    """

    project_id: str
    name: str
    ensemble_id: str
    """The ensemble that may have it."""
