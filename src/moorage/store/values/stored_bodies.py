"""The JSON codec of each stored record; see `codec`."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import request_mix
from moorage.domain.bookings import Binding
from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.decisions import (
    Claim,
    ClaimState,
    Decision,
    DecisionState,
    PolicyStatus,
    Solve,
    SolveEnd,
)
from moorage.domain.effects import Effect, EffectKind, EffectState
from moorage.domain.ensembles import (
    Ensemble,
    Member,
    MemberName,
    OnViolation,
    Phase,
    PolicyStatement,
    Role,
    Selector,
    SizeChange,
)
from moorage.domain.events import Event
from moorage.domain.explain import (
    Conflict,
    Element,
    EnsembleChange,
    Explanation,
    Largest,
    Relaxation,
    Stage,
    Window,
)
from moorage.domain.flavors import Flavor
from moorage.domain.leases import (
    Lease,
    LeaseOutcome,
    LeaseState,
    Occurrence,
    Reservation,
    Terms,
    Yielding,
)
from moorage.domain.nova_servers import FlavorSize, NovaServer, ServerOptions
from moorage.domain.offers import Offer, OfferState
from moorage.domain.period import Period
from moorage.domain.placement import Place
from moorage.domain.quotas import Quota, QuotaName
from moorage.domain.recurrence import Recurrence, RecurrenceRule, parse_every
from moorage.domain.request_groups import Group, GroupKind
from moorage.domain.request_mix import RoomTaken, ShapeTaken, StatedMix, StatedShape
from moorage.domain.requests import Objective
from moorage.domain.reservables import Reservable, ReservableKind
from moorage.domain.series import Series, SkippedOccurrence
from moorage.domain.server_providers import ServerProvider
from moorage.domain.shares import Share, ShareState
from moorage.domain.subscriptions import (
    DeadLetter,
    LeaseEdge,
    Subscription,
    SubscriptionFilter,
    Threshold,
)
from moorage.domain.templates import Parameter, Template, TemplateFormat
from moorage.domain.topology import Domain, Topology
from moorage.domain.waitlist import EntryState, Estimate, WaitlistEntry, WaitsFor
from moorage.store.values.codec import (
    FREE,
    PLAIN,
    VALUE,
    Shape,
    choice,
    each,
    optional,
    record,
    table,
    unordered,
    unstored,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAMES: Final = unordered(PLAIN)
_AMOUNTS: Final = table(PLAIN)
_MEMBER_NAME: Final[Shape[MemberName]] = Shape(
    lambda name: [name.role, name.index], lambda plain: MemberName(plain[0], plain[1])
)
_PERIOD: Final[Shape[Period]] = Shape(
    lambda period: [period.start, period.end], lambda plain: Period(plain[0], plain[1])
)

_GROUPS: Final = each(
    record(
        Group,
        resources=_AMOUNTS,
        kind=choice(GroupKind),
        required=each(_NAMES),
        forbidden=_NAMES,
        member_of=each(_NAMES),
    )
)
_SIZE: Final = record(FlavorSize)

_MEMBERS: Final = each(record(Member, name=_MEMBER_NAME))


def _role(alternatives: Shape[tuple[Role, ...]]) -> Shape[Role]:
    """A role; those of its alternatives have none themselves."""
    return record(
        Role,
        alternatives=alternatives,
        resources=_AMOUNTS,
        required=each(_NAMES),
        forbidden=_NAMES,
        member_of=each(_NAMES),
        tags=_NAMES,
        groups=_GROUPS,
        same_subtree=each(_NAMES),
        root_required=_NAMES,
        servers_of=_NAMES,
        nova_server=optional(
            record(
                NovaServer,
                size=_SIZE,
                extra_specs=table(PLAIN),
                image_properties=optional(table(PLAIN)),
            )
        ),
        server=optional(
            record(
                ServerOptions,
                networks=each(PLAIN),
                security_groups=each(PLAIN),
                metadata=table(PLAIN),
            )
        ),
        host_checks=each(PLAIN),
        share=optional(record(Share, state=choice(ShareState))),
    )


ENSEMBLE: Final = record(
    Ensemble,
    roles=each(_role(each(_role(each(PLAIN))))),
    members=_MEMBERS,
    policies=each(
        record(
            PolicyStatement,
            members=each(record(Selector, member=optional(_MEMBER_NAME))),
            phases=unordered(choice(Phase)),
            parameters=FREE,
            on_violation=optional(choice(OnViolation)),
            path=unstored(""),
        )
    ),
    metadata=table(PLAIN),
    additions=each(each(PLAIN)),
    template=optional(each(PLAIN)),
    paths=optional(table(PLAIN)),
    scaling=table(each(PLAIN)),
    headroom=_MEMBERS,
    references=unstored(MappingProxyType({})),
    size_changes=each(record(SizeChange, members=_MEMBERS)),
)


def _dump_asked(asked: request_mix.Shape) -> list[Any]:
    return [asked.resources, asked.required, asked.forbidden, [*map(_dump_asked, asked.groups)]]


def _load_asked(plain: Sequence[Any]) -> request_mix.Shape:
    resources, required, forbidden, groups = plain
    return request_mix.Shape(
        tuple((name, amount) for name, amount in resources),
        tuple(map(tuple, required)),
        tuple(forbidden),
        tuple(map(_load_asked, groups)),
    )


_ASKED: Final[Shape[request_mix.Shape]] = Shape(_dump_asked, _load_asked)

_ROOM_TAKEN: Final = record(RoomTaken, most=each(record(ShapeTaken, shape=_ASKED)))

DECISION: Final = record(
    Decision,
    state=choice(DecisionState),
    period=_PERIOD,
    objective=choice(Objective),
    solve=record(Solve, ended=choice(SolveEnd), room=optional(_ROOM_TAKEN)),
    places=table(record(Place, allocations=table(_AMOUNTS), groups=table(PLAIN)), key=_MEMBER_NAME),
    policies=each(record(PolicyStatus)),
    max_additional=table(PLAIN),
    steps=table(PLAIN),
    at_least=_NAMES,
    endings=table(PLAIN, key=_MEMBER_NAME),
    away=each(_MEMBER_NAME),
    withdrawn=each(_MEMBER_NAME),
)

CLAIM: Final = record(
    Claim,
    member=_MEMBER_NAME,
    state=choice(ClaimState),
    description=FREE,
    resources=table(PLAIN),
)

_TERMS: Final = record(Terms, period=_PERIOD, before_start=unordered(choice(Yielding)))

LEASE: Final = record(
    Lease,
    terms=_TERMS,
    state=choice(LeaseState),
    outcome=optional(choice(LeaseOutcome)),
    reservations=each(record(Reservation)),
    binding=choice(Binding),
    actions=table(each(PLAIN)),
    annotations=FREE,
    proposal=FREE,
    offer=optional(record(Offer, state=choice(OfferState))),
    occurrence=optional(record(Occurrence)),
)

_EVERY: Final[Shape[RecurrenceRule]] = Shape(str, parse_every)
_WALL: Final[Shape[datetime]] = Shape(datetime.isoformat, datetime.fromisoformat)

SERIES: Final = record(
    Series,
    recurrence=record(Recurrence, start=_WALL, every=_EVERY),
    terms=_TERMS,
    model=ENSEMBLE,
    left_out=each(record(SkippedOccurrence)),
    actions=table(each(PLAIN)),
    objective=choice(Objective),
)

ENTRY: Final = record(
    WaitlistEntry,
    terms=_TERMS,
    ensemble=optional(ENSEMBLE),
    classes=_NAMES,
    roles=_NAMES,
    actions=table(each(PLAIN)),
    annotations=FREE,
    objective=choice(Objective),
    state=choice(EntryState),
    waits_for=choice(WaitsFor),
    estimate=optional(record(Estimate)),
)

EFFECT: Final = record(Effect, kind=choice(EffectKind), state=choice(EffectState), details=FREE)

RESERVABLE: Final = record(Reservable, kind=choice(ReservableKind), properties=table(PLAIN))

QUOTA: Final = record(Quota, limits=table(PLAIN, key=choice(QuotaName)))

EVENT_BODY: Final = FREE

EVENT: Final = record(Event, body=EVENT_BODY)

SUBSCRIPTION: Final = record(
    Subscription,
    wants=record(SubscriptionFilter, types=each(PLAIN)),
    threshold=record(Threshold, edge=choice(LeaseEdge)),
    standing=FREE,
)

DEAD_LETTER: Final = record(DeadLetter, event=EVENT)

CAPACITY_WINDOW: Final = record(
    CapacityWindow, kind=choice(WindowKind), hosts=each(PLAIN), period=_PERIOD
)

SERVER_PROVIDER: Final = record(ServerProvider, shared_with=optional(unordered(PLAIN)))

TEMPLATE: Final = record(
    Template,
    format=choice(TemplateFormat),
    source=FREE,
    parameters=each(record(Parameter, default=VALUE, allowed=each(VALUE))),
)

EXPLANATION: Final = record(
    Explanation,
    stage=choice(Stage),
    conflicts=each(
        record(
            Conflict,
            elements=each(record(Element)),
            needs=each(PLAIN),
            facts=each(each(PLAIN)),
            exact_needs=each(PLAIN),
        )
    ),
    relaxations=each(record(Relaxation, change=record(EnsembleChange, before=VALUE, after=VALUE))),
    rejected=table(PLAIN),
    earliest=optional(record(Window)),
    largest=optional(record(Largest)),
    zones=each(PLAIN),
)

FLAVOR: Final = record(
    Flavor,
    resources=_AMOUNTS,
    required=each(_NAMES),
    forbidden=_NAMES,
    extra_specs=table(PLAIN),
    size=optional(_SIZE),
    root_required=_NAMES,
    groups=_GROUPS,
    host_checks=each(PLAIN),
)


STATED_MIX: Final = record(
    StatedMix, shapes=each(record(StatedShape, shape=_ASKED, flavors=each(PLAIN)))
)

_PAIR: Final[Shape[tuple[str, str]]] = Shape(list, lambda plain: (plain[0], plain[1]))


def _dump_topology(topology: Topology) -> dict[str, Any]:
    return {
        "levels": table(each(PLAIN)).dump(topology.levels),
        "domains": [_DOMAIN.dump(one) for one in topology.domains.values()],
        "attachments": table(PLAIN, key=_PAIR).dump(topology.attachments),
    }


def _load_topology(plain: Mapping[str, Any]) -> Topology:
    domains = [_DOMAIN.load(one) for one in plain["domains"]]
    return Topology(
        levels=dict(table(each(PLAIN)).load(plain["levels"])),
        domains={(one.tree, one.name): one for one in domains},
        attachments=dict(table(PLAIN, key=_PAIR).load(plain["attachments"])),
    )


_DOMAIN: Final = record(Domain)

TOPOLOGY: Final[Shape[Topology]] = Shape(_dump_topology, _load_topology)
