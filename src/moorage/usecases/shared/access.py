"""Access by project: reads, listings and the digests of repeated requests.

What a caller may not see is NotFound, never Forbidden, which would disclose that it exists;
Forbidden is what it sees and may not do. See also `role_access`. Operators (`Caller.operator`)
see every project.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from moorage.domain.errors import DuplicateName, Forbidden, NotFound, StaleGeneration
from moorage.usecases.paging import Page
from moorage.usecases.ports import Caller
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Refusal, Stage
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.series import Series
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment


ITSELF: Final = Caller(user_id="moorage", project_id="moorage", roles=frozenset({"service"}))
"""The caller of what the service does by itself."""


def list_ensembles(
    env: Environment,
    caller: Caller,
    page: Page,
    *,
    name: str | None = None,
    project_id: str | None = None,
    all_projects: bool = False,
) -> Sequence[Ensemble]:
    """The caller's ensembles, oldest first.

    Raises:
        Forbidden: a tenant asked for another project's ensembles.
        NotFound: the page's marker is no ensemble for this caller.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=project_id)
    if page.marker is not None:
        own_ensemble(env.store, caller, page.marker)
    return env.store.ensembles(project_id=project, name=name, page=page)


def every_ensemble(
    store: Store, project_id: str | None = None, *, at_once: int = 1000
) -> Iterator[Ensemble]:
    """All ensembles of a project, or of every project, oldest first; so many are read at once."""
    page = Page(at_once)
    while some := store.ensembles(project_id=project_id, page=page):
        yield from some
        page = Page(at_once, some[-1].id)


def list_refusals(  # noqa: PLR0913 - each filter of a listing has its name
    env: Environment,
    caller: Caller,
    page: Page,
    *,
    ensemble: str | None = None,
    stage: Stage | None = None,
    since: Instant | None = None,
    project_id: str | None = None,
    all_projects: bool = False,
) -> Sequence[Refusal]:
    """The caller's stored refusals, newest first.

    Raises:
        Forbidden: a tenant asked for another project's refusals.
        NotFound: the page's marker is no explanation for this caller.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=project_id)
    if page.marker is not None:
        own_explanation(env.store, caller, page.marker)
    return env.store.refusals(
        project_id=project, ensemble=ensemble, stage=stage, since=since, page=page
    )


def list_bookings(
    env: Environment,
    caller: Caller,
    page: Page,
    *,
    provider: str | None = None,
    consumer: str | None = None,
    decision: str | None = None,
) -> Sequence[tuple[Consumer, Booking]]:
    """Live bookings of every state.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    return env.store.bookings(provider=provider, consumer=consumer, decision=decision, page=page)


def digest(body: Mapping[str, object]) -> str:
    """The SHA-256 digest of a request's body; the order of keys does not matter."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class _Identity(Protocol):
    """The identity of a client's request."""

    @property
    def id(self) -> str:
        """The id of the record that the request creates."""

    @property
    def digest(self) -> str:
        """The digest of the request; empty if the client sent no idempotency key."""

    @property
    def name(self) -> str:
        """The request, as errors name it."""


def same_request(kind: str, identity: _Identity, *, stored: str) -> None:
    """Check that a request with a used id is a repeat of the same request.

    Raises:
        DuplicateName: the id was used with another body, or the client gave no id.
    """
    if not identity.digest or stored != identity.digest:
        raise DuplicateName(kind, identity.name)


class _Owned(Protocol):
    """A record of a project."""

    @property
    def project_id(self) -> str:
        """The project that owns the record."""


_OwnedRecord = TypeVar("_OwnedRecord", bound=_Owned)


class _Made(Protocol):
    """A record that a client's request has created."""

    @property
    def digest(self) -> str:
        """The digest of the request."""


_Record = TypeVar("_Record", bound=_Made)


def made_by_request(
    kind: str, identity: _Identity, read: Callable[[str], _Record]
) -> _Record | None:
    """The record that the same request created before; None: there is none.

    It is the caller's own project's: the id is derived from both (see `record_id`). `kind` is the
    noun of the record, for errors.

    Raises:
        DuplicateName: the id was used by another request of the project.
    """
    known = if_stored(read, identity.id) if identity.digest else None
    if known is not None:
        same_request(kind, identity, stored=known.digest)
    return known


def sees(caller: Caller, project_id: str) -> bool:
    """Whether the caller may see the project's objects."""
    return caller.operator or caller.project_id == project_id


def owned(caller: Caller, kind: str, id_: str, record: _OwnedRecord) -> _OwnedRecord:
    """The record, if the caller may see it; `kind` is its noun, for the error.

    Raises:
        NotFound: it is another project's.
    """
    if not sees(caller, record.project_id):
        raise NotFound(kind, id_)
    return record


def own_ensemble(store: Store, caller: Caller, ensemble_id: str) -> Ensemble:
    """The ensemble, if it is the caller's.

    Raises:
        NotFound: there is none that the caller may see.
        Forbidden: the caller's project takes part in it, but does not own it.
    """
    ensemble = store.ensemble(ensemble_id)
    if not sees(caller, ensemble.project_id) and ensemble.is_joined_by(caller.project_id):
        raise Forbidden(f"only project {ensemble.project_id} may do this to its ensemble")
    return owned(caller, "ensemble", ensemble_id, ensemble)


def check_generation(stored: Ensemble | Decision | Lease | Series, generation: int | None) -> None:
    """Check that the generation given by the caller, if any, is the stored one.

    Raises:
        StaleGeneration: it is another one.
    """
    if generation is not None and generation != stored.generation:
        kind = type(stored).__name__.lower()
        raise StaleGeneration(kind, stored.id, expected=generation, actual=stored.generation)


def own_claim(store: Store, caller: Caller, claim_id: str) -> Claim:
    """The claim, if it is the caller's.

    Raises:
        NotFound: there is no such claim, or it is another project's.
    """
    return owned(caller, "claim", claim_id, store.claim(claim_id))


ClaimAccess: TypeAlias = "Callable[[Store, Caller, str], Claim]"
"""Gives a claim by its id to a caller who may see it; NotFound to any other."""


def own_explanation(store: Store, caller: Caller, explanation_id: str) -> tuple[Refusal, str]:
    """What was refused and why, if it is the caller's, and what is stored of its problem.

    A problem has host names and loads, so not every caller may get it.

    Raises:
        NotFound: there is no such explanation, or it is another project's.
    """
    refusal, instance = store.explanation(explanation_id)
    if not sees(caller, refusal.project_id):
        raise NotFound("explanation", explanation_id)
    return refusal, instance


def own_refusal(store: Store, caller: Caller, request: str) -> tuple[Refusal, str]:
    """As `own_explanation`, by the id that the client gave to the refused request.

    Raises:
        NotFound: no request of that id was refused, or it was another project's.
    """
    project = None if caller.operator else caller.project_id
    return store.refusal(request, project_id=project)


def require_operator(caller: Caller) -> None:
    """Check that the caller is an operator.

    Raises:
        Forbidden: the caller is no operator.
    """
    if not caller.operator:
        raise Forbidden("only operators may do this")


def visible_project(caller: Caller, *, all_projects: bool, project_id: str | None) -> str | None:
    """The project whose objects a listing shows; None means every project.

    Raises:
        Forbidden: a tenant asked for another project's objects.
    """
    if project_id is None and not all_projects:
        return caller.project_id
    if not caller.operator and (all_projects or project_id != caller.project_id):
        raise Forbidden("only operators may list other projects")
    return None if all_projects else project_id
