"""Moorage as a service of openstacksdk: `connection.ensemble`.

    connection = openstack.connect(cloud="mycloud")
    connection.add_service(EnsembleService())
    for one in connection.ensemble.ensembles():
        print(one.name)

Things are structs of `moorage.wire`, errors are those of `moorage.client.errors`. A thing may be
named by its id, the id's beginning, a name, or the struct. Changes of what is named are made to its
newest generation, as often as another comes between; changes of a struct only to what it shows.
"""

from __future__ import annotations

import random
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec
from openstack import proxy
from openstack.service_description import ServiceDescription

from moorage.client.boot import Boot, BootOrder
from moorage.client.errors import (
    Busy,
    Missing,
    NoEndpoint,
    NotFound,
    ServerFault,
    Stale,
    Unreachable,
)
from moorage.client.moorage import Moorage
from moorage.client.nova import Nova
from moorage.client.session import SessionServices
from moorage.client.session_transport import SessionTransport
from moorage.domain.retry_policy import Retries, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from openstack.connection import Connection

    from moorage.client.boot import BootResult
    from moorage.wire.claims import Claim
    from moorage.wire.decisions import Decision
    from moorage.wire.ensembles import Ensemble
    from moorage.wire.events import Event, Events
    from moorage.wire.leases import Lease
    from moorage.wire.members import Member
    from moorage.wire.offers import Offer
    from moorage.wire.quotas import Quota

SERVICE_TYPE: Final = "ensemble"
RETRY: Final = RetryPolicy(first_pause=0.2, longest_pause=5.0, jitter=0.5, attempts=6)
"""Of changes that another change came before, and of creations that had no answer."""
_WAIT: Final = 30
"""Seconds for which the service waits for further events, where they are followed."""

T = TypeVar("T")
K = TypeVar("K")


class Identified(Protocol):
    """A thing of the service."""

    @property
    def id(self) -> str:
        """Its id."""


class EnsembleProxy(proxy.Proxy):
    """The service's calls; what it does not have is in `moorage`, the whole client.

    Every call may raise `ApiError` and its kinds, `Unreachable`, `NoEndpoint` and `LoginRefused`;
    those that take a name `Missing` and `Ambiguous`.
    """

    api_version = "1"
    skip_discovery = True
    retriable_status_codes = [429, 503]  # noqa: RUF012 - openstacksdk's own; nothing was done then
    """Repeated as often as `ensemble_status_code_retries` in `clouds.yaml` says."""

    _moorage: Moorage | None = None

    @property
    def moorage(self) -> Moorage:
        """The client of every noun of the API, over this connection."""
        if self._moorage is None:
            self._moorage = Moorage(SessionTransport(self._services(), self))
        return self._moorage

    def _services(self) -> SessionServices:
        connection = self._get_connection()
        if connection is None:
            raise NoEndpoint("the service was not added to a connection: see EnsembleService")
        config = connection.config
        interface, region = config.get_interface(SERVICE_TYPE), config.get_region_name(SERVICE_TYPE)
        return SessionServices.configured(self.session, interface, region, config.config)

    # --- ensembles ---

    def ensembles(
        self, *, name: str | None = None, all_projects: bool = False
    ) -> Iterator[Ensemble]:
        """The project's ensembles, or those of all projects; their decisions in short."""
        return self.moorage.ensembles.each(name=name, all_projects=all_projects)

    def find_ensemble(self, name_or_id: str, *, ignore_missing: bool = True) -> Ensemble | None:
        """One ensemble with its decision; None if there is none and that may be."""
        return _found(lambda: self.get_ensemble(name_or_id), ignore_missing=ignore_missing)

    def get_ensemble(self, ensemble: Ensemble | str) -> Ensemble:
        """One ensemble with its decision."""
        return self.moorage.ensembles.show(self._ensemble_id(ensemble)).value

    def create_ensemble(self, **description: Any) -> Ensemble:  # noqa: ANN401 - of several types
        """Create an ensemble; with `decide={"hold": "PT10M"}` place it and hold the places.

        Raises:
            Infeasible: the members cannot be placed; its `explanation` says why.
            NameTaken: the project has an ensemble of this name.
        """
        body = {"id": str(uuid.uuid4()), **description}
        made = _repeated(lambda: self.moorage.ensembles.create(body)).value
        return msgspec.structs.replace(made.ensemble, decision=made.decision)

    def update_ensemble(self, ensemble: Ensemble | str, change: Change[Ensemble]) -> Ensemble:
        """Change roles, policies, name or metadata; a function makes the change of what there is.

        Raises:
            Infeasible: with `decide` in the change, as `create_ensemble`.
            Stale: the struct shows a generation that is over.
        """

        def write(now: Ensemble) -> Ensemble:
            body = {"generation": now.generation, **_made(change, now)}
            return self.moorage.ensembles.change(now.id, body).value.ensemble

        return _newest(ensemble, self.get_ensemble, write)

    def delete_ensemble(self, ensemble: Ensemble | str, *, ignore_missing: bool = True) -> None:
        """Delete it and release its held places; running servers keep theirs."""

        def write(now: Ensemble) -> None:
            self.moorage.ensembles.delete(now.id, now.generation)

        _found(lambda: _newest(ensemble, self.get_ensemble, write), ignore_missing=ignore_missing)

    def members(self, ensemble: Ensemble | str) -> Iterator[Member]:
        """Its members with their places and servers."""
        return self.moorage.ensembles.each_member(self._ensemble_id(ensemble))

    def boot(self, ensemble: Ensemble | str, **order: Any) -> BootResult:  # noqa: ANN401 - fields
        """Create the servers of its members in Nova, in their places; `order` is of `BootOrder`.

        Raises:
            BootInterrupted, WrongState, SourceFailed: as `Boot.run`.
        """
        services = self._services()
        with Nova(services, services.endpoint) as nova:
            asked = BootOrder(self._ensemble_id(ensemble), **order)
            return Boot(self.moorage, nova, asked).run()

    def _ensemble_id(self, ensemble: Ensemble | str) -> str:
        return self.moorage.ensembles.find(_named(ensemble))

    # --- decisions and claims ---

    def decisions(
        self, ensemble: Ensemble | str | None = None, *, all_projects: bool = False
    ) -> Iterator[Decision]:
        """Decisions, of one ensemble or all, newest first."""
        which = None if ensemble is None else self._ensemble_id(ensemble)
        return self.moorage.decisions.each(ensemble_id=which, all_projects=all_projects)

    def get_decision(self, decision: Decision | str) -> Decision:
        """One decision with its assignments."""
        return self.moorage.decisions.show(self._decision_id(decision)).value

    def create_decision(self, ensemble: Ensemble | str, **how: Any) -> Decision:  # noqa: ANN401
        """Place an ensemble jointly and hold the places, for `hold="PT10M"`.

        Raises:
            Infeasible: the members cannot be placed.
        """
        body = {"id": str(uuid.uuid4()), "ensemble_id": self._ensemble_id(ensemble), **how}
        return _repeated(lambda: self.moorage.decisions.decide(body)).value

    def renew_decision(self, decision: Decision | str, hold: str) -> Decision:
        """Hold its places for so long from now on."""

        def write(now: Decision) -> Decision:
            return self.moorage.decisions.renew(now.id, hold, now.generation).value

        return _newest(decision, self.get_decision, write)

    def confirm_decision(self, decision: Decision | str) -> list[str]:
        """Close it: claimed places stay, the others are freed. The members whose places are."""
        answer = self.moorage.decisions.confirm(self._decision_id(decision))
        return list(answer.value["released_members"])

    def release_decision(self, decision: Decision | str) -> None:
        """Release its places."""

        def write(now: Decision) -> None:
            self.moorage.decisions.release(now.id, now.generation)

        _newest(decision, self.get_decision, write)

    def _decision_id(self, decision: Decision | str) -> str:
        return self.moorage.decisions.find(_named(decision))

    def claims(self, decision: Decision | str) -> Iterator[Claim]:
        """The claims of a decision, oldest first."""
        return self.moorage.claims.each(self._decision_id(decision))

    def get_claim(self, claim: Claim | str) -> Claim:
        """One claim by its id."""
        return self.moorage.claims.show(_named(claim)).value

    def create_claim(
        self,
        decision: Decision | str,
        member: str,
        server: Mapping[str, Any],
        **more: Any,  # noqa: ANN401
    ) -> Claim:
        """Claim a member's place for a server, described as to Nova.

        Raises:
            DescriptionMismatch: the server is not the one that was described.
        """
        body = {"id": str(uuid.uuid4()), "member": member, "server": server, **more}
        decision_id = self._decision_id(decision)
        return _repeated(lambda: self.moorage.claims.create(decision_id, body)).value

    def update_claim(self, claim: Claim | str, **result: Any) -> Claim:  # noqa: ANN401
        """Report the build: `status="active"` with `server_id`, or `status="failed"`."""
        return self.moorage.claims.set(_named(claim), result).value

    # --- leases and offers ---

    def leases(
        self, *, name: str | None = None, state: str | None = None, all_projects: bool = False
    ) -> Iterator[Lease]:
        """Leases of the project, or of all projects, oldest first."""
        return self.moorage.leases.each(name=name, state=state, all_projects=all_projects)

    def find_lease(self, name_or_id: str, *, ignore_missing: bool = True) -> Lease | None:
        """One lease, also by its handle (`L3`); None if there is none and that may be."""
        return _found(lambda: self.get_lease(name_or_id), ignore_missing=ignore_missing)

    def get_lease(self, lease: Lease | str) -> Lease:
        """One lease."""
        return self.moorage.leases.show(self.moorage.leases.find(_named(lease))).value

    def create_lease(self, **terms: Any) -> Lease:  # noqa: ANN401 - of several types
        """Request a lease: it is granted with its places, or refused.

        Raises:
            Infeasible: it does not fit; its `explanation` says why.
        """
        body = {"id": str(uuid.uuid4()), **terms}
        return _repeated(lambda: self.moorage.leases.create(body)).value.lease

    def update_lease(self, lease: Lease | str, change: Change[Lease]) -> Lease:
        """Extend, shrink, grow, move or rename it, by a change or a function that makes it.

        Raises:
            Infeasible: what it would be does not fit.
            Stale: the struct shows a generation that is over.
        """

        def write(now: Lease) -> Lease:
            body = {"generation": now.generation, **_made(change, now)}
            return self.moorage.leases.change(now.id, body).value.lease

        return _newest(lease, self.get_lease, write)

    def delete_lease(self, lease: Lease | str, *, ignore_missing: bool = True) -> None:
        """Cancel it, or end it now if it has started."""

        def write(now: Lease) -> None:
            self.moorage.leases.cancel(now.id, now.generation)

        _found(lambda: _newest(lease, self.get_lease, write), ignore_missing=ignore_missing)

    def offers(self, *, over: bool = False, all_projects: bool = False) -> Iterator[Offer]:
        """Open offers, oldest first; with `over` also those that are over."""
        return self.moorage.offers.each(over=over, all_projects=all_projects)

    def create_offers(self, **request: Any) -> list[Offer]:  # noqa: ANN401 - of several types
        """Request windows in a range of starts, each held until it expires."""
        return self.moorage.offers.create(request).value.offers

    def accept_offer(self, offer: Offer | str, **terms: Any) -> Lease:  # noqa: ANN401 - as above
        """Accept it: it becomes a lease on these terms."""
        offer_id = self.moorage.offers.find(_named(offer))
        return self.moorage.offers.accept(offer_id, terms).value.lease

    def delete_offer(self, offer: Offer | str) -> None:
        """Withdraw it."""
        self.moorage.offers.withdraw(self.moorage.offers.find(_named(offer)))

    # --- quotas and events ---

    def get_quota(self, project_id: str | None = None) -> Quota:
        """The quota and the use of the caller's project, or for operators of another."""
        quotas = self.moorage.quotas
        return (quotas.own() if project_id is None else quotas.show(project_id)).value

    def update_quota(self, project_id: str, **limits: Any) -> Quota:  # noqa: ANN401 - as above
        """Set limits of a project; those that are not named stay."""
        return self.moorage.quotas.change(project_id, limits).value

    def events(self, after: str | None = None, **which: Any) -> Iterator[Event]:  # noqa: ANN401
        """The events of `event_pages`, one by one."""
        for page in self.event_pages(after, **which):
            yield from page.events

    def event_pages(
        self,
        after: str | None = None,
        *,
        types: Sequence[str] = (),
        subject: str | None = None,
        follow: bool = False,
        all_projects: bool = False,
    ) -> Iterator[Events]:
        """Events in their order, from the beginning, after a page's `cursor`, or after `now`.

        With `follow` it waits for further ones, and does not end.
        """
        wait, more, subjects = 0, True, () if subject is None else (subject,)
        while more or follow:
            page = self.moorage.events.page(
                after, types=types, subjects=subjects, wait=wait, all_projects=all_projects
            ).value
            yield page
            after, more = page.cursor, page.more
            wait = _WAIT if follow else 0


class EnsembleService(ServiceDescription[EnsembleProxy]):
    """The service's description, for `Connection.add_service` and `extra_services`."""

    supported_versions = {"1": EnsembleProxy}  # noqa: RUF012 - openstacksdk's own

    def __init__(self) -> None:
        super().__init__(SERVICE_TYPE)


def ensemble_of(connection: Connection) -> EnsembleProxy:
    """`connection.ensemble` with its type; the service is added to the connection."""
    connection.add_service(EnsembleService())
    found: EnsembleProxy = connection.ensemble  # type: ignore[attr-defined]  # just added
    return found


Change: TypeAlias = "Mapping[str, Any] | Callable[[K], Mapping[str, Any]]"
"""Fields of the API's request, or what makes them of the present thing."""


def _made(change: Change[K], now: K) -> Mapping[str, Any]:
    return change(now) if callable(change) else change


def _named(thing: Identified | str) -> str:
    return thing if isinstance(thing, str) else thing.id


def _found(call: Callable[[], T], *, ignore_missing: bool) -> T | None:
    try:
        return call()
    except (Missing, NotFound):
        if not ignore_missing:
            raise
        return None


def _newest(thing: K | str, read: Callable[[str], K], write: Callable[[K], T]) -> T:
    """Write what depends on a generation: that of a struct, else the newest, as often as needed."""
    if not isinstance(thing, str):
        return write(thing)
    return _again((Stale,), lambda: write(read(thing)))


def _repeated(create: Callable[[], T]) -> T:
    """A creation under an id of ours: repeated without an answer, it creates nothing twice."""
    return _again((Unreachable, Busy, ServerFault), create)


def _again(passing: tuple[type[Exception], ...], call: Callable[[], T]) -> T:
    retries = Retries()
    while True:
        try:
            return call()
        except passing:
            pause = retries.next_pause(RETRY, time.monotonic(), random.random())  # noqa: S311 - a pause
            if pause is None:
                raise
            time.sleep(pause)
