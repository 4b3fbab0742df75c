"""The stored form of each record: its class, as msgspec writes and reads it.

A class of the domain as JSON: dataclasses and mappings are objects, sets and tuples arrays,
enumerations their values, and a member's name is its text, also as a key. A field that a later
version added takes its default; one that is gone is passed over. What versions before ADR-0051
wrote is read by `_renewed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import inspect

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.capacity_windows import CapacityWindow
from moorage.domain.decision_records import DecisionRecord
from moorage.domain.decisions import Claim, Decision
from moorage.domain.effects import Effect
from moorage.domain.ensembles import Ensemble
from moorage.domain.explain import Explanation
from moorage.domain.flavors import Flavor
from moorage.domain.host_states import OperatorClosing, ServiceReport
from moorage.domain.leases import Lease
from moorage.domain.member_names import MemberName
from moorage.domain.plans import Plan
from moorage.domain.quotas import Quota
from moorage.domain.recurrence import RecurrenceRule, parse_every
from moorage.domain.request_mix import StatedMix
from moorage.domain.reservables import Reservable
from moorage.domain.series import Series
from moorage.domain.server_providers import ServerProvider
from moorage.domain.subscriptions import DeadLetter, Subscription
from moorage.domain.templates import Template
from moorage.domain.topology import Domain, Topology
from moorage.domain.violations import Violation
from moorage.domain.waitlist import WaitlistEntry

T = TypeVar("T")


def _plain(value: object) -> object:
    """What msgspec does not know, as what it knows."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, MemberName):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no stored form")


def _domain_value(cls: type, plain: Any) -> object:  # noqa: ANN401 - any JSON
    """The reverse of `_plain`."""
    if cls is object:  # as a caller wrote it
        return plain
    if not isinstance(plain, str):
        raise TypeError(f"{cls.__name__} is stored as text")
    role, _, index = plain.rpartition("[")
    return MemberName(role, int(index[:-1]))


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plain)


def _same(value: T) -> T:
    return value


class StoredBody(Generic[T]):
    """The stored form of one class."""

    def __init__(self, cls: type[T], stored: Callable[[T], T] = _same) -> None:
        """`stored` leaves out what is not stored with a record."""
        self._cls = cls
        self._stored = stored
        self._decoder = msgspec.json.Decoder(cls, dec_hook=_domain_value)

    def encode(self, value: T) -> str:
        """The value as JSON text."""
        return _ENCODER.encode(self._stored(value)).decode()

    def decode(self, text: str) -> T:
        """The value of a text that this or an earlier version stored.

        Raises:
            msgspec.ValidationError: the text is of no version.
        """
        try:
            return self._decoder.decode(text)
        except msgspec.ValidationError:
            plain = _renewed(msgspec.json.decode(text), inspect.type_info(self._cls))
            return self._decoder.decode(msgspec.json.encode(plain))


def _renewed(plain: Any, kind: inspect.Type) -> Any:  # noqa: ANN401, PLR0911 - any JSON, by its type
    """A value of the form before ADR-0051 in today's.

    Mappings were arrays of pairs; periods and names of members arrays of their fields; a rule of
    recurrence its text; and a field that is not stored null.
    """
    match kind:
        case inspect.UnionType(types):
            some = [one for one in types if not isinstance(one, inspect.NoneType)]
            return plain if plain is None or len(some) > 1 else _renewed(plain, some[0])
        case inspect.CustomType(cls) if cls is MemberName and isinstance(plain, list):
            return str(MemberName(*plain))
        case inspect.DataclassType(cls, fields) if plain is not None:
            if cls is RecurrenceRule and isinstance(plain, str):
                return msgspec.to_builtins(parse_every(plain))
            if isinstance(plain, list):
                plain = dict(zip((one.name for one in fields), plain, strict=False))
            kinds = {one.name: one.type for one in fields}
            return {
                name: _renewed(value, kinds[name])
                for name, value in plain.items()
                if name in kinds and not (value is None and _needs_value(kinds[name]))
            }
        case inspect.DictType(key, value):
            pairs = plain if isinstance(plain, list) else plain.items()
            return {_renewed(name, key): _renewed(one, value) for name, one in pairs}
        case inspect.TupleType(items):
            return [_renewed(one, item) for one, item in zip(plain, items, strict=True)]
        case inspect.VarTupleType(item) | inspect.FrozenSetType(item):
            return [_renewed(one, item) for one in plain]
        case _:
            return plain


def _needs_value(kind: inspect.Type) -> bool:
    """Whether None is no value of the type."""
    if isinstance(kind, inspect.UnionType):
        return not kind.includes_none
    return kind != inspect.CustomType(object)


def _without_request(ensemble: Ensemble) -> Ensemble:
    """An ensemble without what belongs to the request that described it, or is stored elsewhere."""
    policies = ensemble.policies
    if any(one.path for one in policies):
        policies = tuple(replace(one, path="") for one in policies)
    elif not ensemble.references:
        return ensemble
    return replace(ensemble, policies=policies, references=MappingProxyType({}))


def _series_stored(series: Series) -> Series:
    """A series whose model is stored as ensembles are."""
    return replace(series, model=_without_request(series.model))


def _entry_stored(entry: WaitlistEntry) -> WaitlistEntry:
    """A waitlist entry whose ensemble is stored as ensembles are."""
    ensemble = entry.ensemble
    return entry if ensemble is None else replace(entry, ensemble=_without_request(ensemble))


ENSEMBLE: Final = StoredBody(Ensemble, _without_request)
DECISION: Final = StoredBody(Decision)
CLAIM: Final = StoredBody(Claim)
LEASE: Final = StoredBody(Lease)
SERIES: Final = StoredBody(Series, _series_stored)
ENTRY: Final = StoredBody(WaitlistEntry, _entry_stored)
EFFECT: Final = StoredBody(Effect)
RESERVABLE: Final = StoredBody(Reservable)
QUOTA: Final = StoredBody(Quota)
EVENT_BODY: Final = StoredBody[Mapping[str, object]](dict[str, object])
SUBSCRIPTION: Final = StoredBody(Subscription)
DEAD_LETTER: Final = StoredBody(DeadLetter)
CAPACITY_WINDOW: Final = StoredBody(CapacityWindow)
OPERATOR_CLOSING: Final = StoredBody(OperatorClosing)
SERVICE_REPORT: Final = StoredBody(ServiceReport)
SERVER_PROVIDER: Final = StoredBody(ServerProvider)
TEMPLATE: Final = StoredBody(Template)
EXPLANATION: Final = StoredBody(Explanation)
FLAVOR: Final = StoredBody(Flavor)
STATED_MIX: Final = StoredBody(StatedMix)
VIOLATION: Final = StoredBody(Violation)
PLAN: Final = StoredBody(Plan)
ACTOR: Final = StoredBody(Actor)
DECISION_RECORD: Final = StoredBody(DecisionRecord)


def actor_of(text: str | None) -> Actor:
    """Who did what a row says; versions before actors left it empty."""
    return UNKNOWN if text is None else ACTOR.decode(text)


@dataclass(frozen=True, slots=True)
class _StoredTopology:
    """A topology; JSON has no keys of two parts."""

    levels: Mapping[str, tuple[str, ...]]
    domains: tuple[Domain, ...]
    attachments: tuple[tuple[tuple[str, str], str], ...]


class _TopologyBody:
    """The stored form of topologies."""

    _body: Final = StoredBody(_StoredTopology)

    def encode(self, topology: Topology) -> str:
        """The topology as JSON text."""
        domains = tuple(topology.domains.values())
        attachments = tuple(topology.attachments.items())
        return self._body.encode(_StoredTopology(topology.levels, domains, attachments))

    def decode(self, text: str) -> Topology:
        """The topology of a text."""
        stored = self._body.decode(text)
        domains = {(one.tree, one.name): one for one in stored.domains}
        return Topology(stored.levels, domains, dict(stored.attachments))


TOPOLOGY: Final = _TopologyBody()
