"""Judges every ensemble that a change concerns, after the commit and outside its lock (ADR-0057).

The monitor compares the newest snapshot with the one it looked at last. Bookings that came or went
name the ensembles of their consumers; a host whose state changed names those of everyone on it. Of
each judgement it remembers what else it read: neighbours, eligible hosts, other ensembles. An
ensemble that was written is marked in the ledger until it is judged. At the start, and when the
topology changes, all are judged; a sweep judges all of them again, slowly, and reports what it
finds as a fault of this module.

Any number of processes may watch one ledger: a record is written by the one that commits first.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.actors import UNKNOWN
from moorage.domain.changes import Changeset, ExpectEnsemble, MarkJudged, PutViolation
from moorage.domain.errors import Busy, ConcurrentUpdate, NotFound
from moorage.domain.period import SECOND
from moorage.domain.violations import Cause, CauseKind, MemberCondition, Violation
from moorage.engine.state.differences import differences
from moorage.engine.state.host_states import host_states
from moorage.usecases.compliance.host_watch import HostWatch
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance.judgement_queue import BATCH_SECONDS, JudgementQueue
from moorage.usecases.compliance.records import violations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.domain.actors import Actor
    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance.judgement import Judgement
    from moorage.usecases.compliance_ports import WrittenEnsemble
    from moorage.usecases.environment import UseCaseEnvironment

_log = logging.getLogger(__name__)

AT_ONCE: Final = 100
"""Ensembles that are judged with one snapshot and written in one commit."""
_RANK: Final = tuple(CauseKind)
"""Of several causes at once, the first of these is kept."""


@dataclass(frozen=True, slots=True, order=True)
class _Trigger:
    """Why an ensemble is judged; of several the least counts."""

    rank: int = field(init=False)
    kind: CauseKind = field(default=CauseKind.FOUND, compare=False)
    after: int = field(default=0, compare=False)
    """The revision before what changed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", _RANK.index(self.kind))


@dataclass
class _Dependencies:
    """What judgements have read beside the members' own places: key -> ensembles."""

    beside: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Row of a host -> ensembles whose policies look at its occupants."""
    referring: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Ensemble -> ensembles whose policies refer to it."""
    fleet: set[str] = field(default_factory=set)
    """Ensembles whose policies look at which hosts are eligible."""
    _of: dict[str, tuple[frozenset[int], frozenset[str]]] = field(default_factory=dict)
    """Ensemble -> its rows in `beside`, its keys in `referring`."""

    def note(self, ensemble: Ensemble, found: Judgement) -> None:
        """Replace what was read for an ensemble."""
        self.forget(ensemble.id)
        rows, others = found.neighbours, frozenset(ensemble.references)
        for row in rows:
            self.beside[row].add(ensemble.id)
        for other in others:
            self.referring[other].add(ensemble.id)
        if rows or others:
            self._of[ensemble.id] = rows, others
        if found.reads_fleet:
            self.fleet.add(ensemble.id)

    def forget(self, ensemble_id: str) -> None:
        """Forget what was read for an ensemble."""
        self.fleet.discard(ensemble_id)
        rows, others = self._of.pop(ensemble_id, (frozenset(), frozenset()))
        for row in rows:
            self.beside[row].discard(ensemble_id)
            if not self.beside[row]:
                del self.beside[row]
        for other in others:
            self.referring[other].discard(ensemble_id)
            if not self.referring[other]:
                del self.referring[other]


@dataclass(frozen=True, slots=True)
class _Settling:
    """A violation that is not found any more and has not ended yet."""

    ensemble: str
    until: float
    """By the stopwatch."""
    ended_by: Cause
    """What ended it, if it is not found again until then."""


@dataclass
class ComplianceMonitor:
    """The monitor of one process. What it remembers only saves work."""

    env: UseCaseEnvironment
    on_missed: Callable[[int], object] = lambda _: None
    """Called with the number of violations that only the sweep found."""
    at_once: int = AT_ONCE
    _seen: Snapshot | None = None
    _states: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    """[P] of `_seen`: the severity of the state of each provider's host."""
    _due: dict[str, _Trigger] = field(default_factory=dict)
    """Ensembles to be judged at once."""
    _all: dict[str, _Trigger] = field(default_factory=dict)
    """What is left of all ensembles, at the start and after a change of the topology."""
    _later: dict[str, _Trigger] = field(default_factory=dict)
    """Ensembles to be judged when nothing else is due, a batch each round."""
    _sweeping: dict[str, _Trigger] = field(default_factory=dict)
    _next_sweep: float = 0.0
    _settling: dict[str, _Settling] = field(default_factory=dict)
    """By the id of the violation."""
    _failed: dict[str, int] = field(default_factory=dict)
    """Ensembles of which a judgement failed -> generation: their marks wait for the sweep, or until
    they are written again."""
    _marked: dict[str, int] = field(default_factory=dict)
    """Ensembles that are marked -> generation, as they were read last."""
    _read: _Dependencies = field(default_factory=_Dependencies)
    _put_off: dict[str, _Trigger] = field(default_factory=dict)
    """Ensembles of the batch that are due still: there was no time, or no ledger, to judge them."""
    _queue: JudgementQueue = field(init=False)

    def __post_init__(self) -> None:
        self._queue = JudgementQueue(self.env.store.compliance.projects_of)
        self._hosts = HostWatch(self.env)

    def run_round(self) -> bool:
        """Judge what is due, at most a batch; True if more is due at once.

        Raises:
            MoorageError: the ledger is out of reach.
            Exception: an ensemble could not be judged; all others of the batch were.
        """
        self._look()
        now = self.env.stopwatch()
        for one in self._settling.values():
            if one.until <= now:
                self._due.setdefault(one.ensemble, _Trigger())
        if self._due:
            self._judge_some(self._due)
        elif self._all:
            self._judge_some(self._all)
        if self._due or self._all:
            return True
        if self._later:
            self._judge_some(self._later)
            return False
        if self._sweeping or now >= self._next_sweep:
            self._sweep(now)
        return False

    @property
    def idle(self) -> bool:
        """Whether everything that has been seen is judged."""
        return not (self._due or self._all or self._later)

    # --- what is concerned ----------------------------------------------------------------

    def _look(self) -> None:
        """Look at the newest snapshot, and note what it changes as due."""
        store, old = self.env.store, self._seen
        after = 0 if old is None else old.revision
        # Read first: an ensemble that is written later is found in the next round.
        self._marked = dict(store.compliance.unjudged(self.at_once + len(self._failed)))
        unjudged = [one for one, seen in self._marked.items() if self._failed.get(one, -1) != seen]
        snapshot = store.snapshot()
        states = host_states(snapshot).severity
        if old is None:
            self._all = self._every(_Trigger())
            self._next_sweep = self.env.stopwatch() + self.env.limits.compliance_sweep / SECOND
        elif snapshot.topology_revision != old.topology_revision:
            # What is left of the one before comes first, so that no churn keeps it waiting.
            topology = _Trigger(CauseKind.TOPOLOGY, after)
            self._all = dict.fromkeys(self._all, topology) | self._every(topology)
        if old is not None and snapshot.states is not old.states:
            self._note_changes(old, snapshot)
        if old is not None:
            self._note_time(old, snapshot)
            self._note_hosts(old, snapshot, states)
        self._add(unjudged, _Trigger(CauseKind.ENSEMBLE, after))
        self._seen, self._states = snapshot, states
        self._hosts.look(snapshot)

    def _add(self, ensembles: Iterable[str], trigger: _Trigger) -> None:
        for one in ensembles:
            known = self._due.get(one) or self._all.pop(one, None)
            self._due[one] = trigger if known is None else min(trigger, known)
            if one in self._read.referring:
                for other in self._read.referring[one] - self._due.keys():
                    self._due[other] = replace(trigger, kind=CauseKind.REFERENCE)

    def _every(self, trigger: _Trigger) -> dict[str, _Trigger]:
        every = dict.fromkeys(self.env.store.compliance.every_ensemble(), trigger)
        self._queue.keep(every)
        return every

    def _note_changes(self, old: Snapshot, new: Snapshot) -> None:
        """Note the ensembles of consumers that came or went, and of those who look at them."""
        found, records = differences(old, new), self.env.store.compliance
        consumers, decisions = set(found.consumers), set(found.decisions)
        if new.offered_by:
            # Slices move with the server on which they are.
            carried = [row for row, server in new.offered_by.items() if server in consumers]
            _book(new, carried, consumers, decisions)
        placed = new.live_bookings(consumers)
        of = {one.decision for some in placed.values() for one in some if one.decision is not None}
        moved = records.ensembles_of(placed, of)
        self._add(moved, _Trigger(CauseKind.MOVED, old.revision))
        left = records.ensembles_of(consumers - placed.keys(), decisions - of) - moved
        self._add(left, _Trigger(CauseKind.REMOVED, old.revision))
        self._note_beside(old, new, found.rows)
        if found.providers:
            there, decided = set[str](), set[str]()
            for snapshot in (old, new):
                _book(snapshot, _trees(snapshot, found.providers), there, decided)
            self._add(records.ensembles_of(there, decided), _Trigger(CauseKind.HOST, old.revision))
            for other in self._read.fleet - self._due.keys():
                self._later.setdefault(other, _Trigger(CauseKind.HOST, old.revision))

    def _note_time(self, old: Snapshot, new: Snapshot) -> None:
        """Note those who look at hosts where a booking has begun, ended or become overrun.

        A member's own booking, whose period the judgement is for, is one of its host's.
        """
        before, now = old.next_change, new.taken_at
        if now >= old.valid_until:
            self._note_beside(old, new, np.flatnonzero(before <= now).tolist())
        elif now < old.taken_at:  # The clock was set back.
            size = min(len(before), len(new.next_change))
            rows = np.flatnonzero(before[:size] != new.next_change[:size]).tolist()
            self._note_beside(old, new, rows)

    def _note_beside(self, old: Snapshot, new: Snapshot, rows: Iterable[int]) -> None:
        """Note the ensembles whose policies look at who is on the hosts of these rows."""
        for row in rows:
            hosts = {row}
            for one in (old, new):
                if row < len(one.root):
                    # What a server offers is looked at where the server is.
                    hosts |= {int(one.root[row]), int(one.locations.hosts[row])}
            for host in hosts & self._read.beside.keys():
                beside = list(self._read.beside[host])
                self._add(beside, _Trigger(CauseKind.NEIGHBOUR, old.revision))

    def _note_hosts(self, old: Snapshot, new: Snapshot, states: NDArray[np.int8]) -> None:
        """Note the ensembles of everyone on hosts that went out of service or came back."""
        size = max(len(states), len(self._states))
        differing = _sized(states, size) != _sized(self._states, size)
        rows = np.flatnonzero(differing).tolist()
        if not rows:
            return
        consumers, decisions = set[str](), set[str]()
        for snapshot in (old, new):
            _book(snapshot, rows, consumers, decisions)
        found = self.env.store.compliance.ensembles_of(consumers, decisions)
        self._add(found, _Trigger(CauseKind.HOST, old.revision))

    # --- judging --------------------------------------------------------------------------

    def _sweep(self, now: float) -> None:
        """Judge a batch of all ensembles, and report what only the sweep has found."""
        if not self._sweeping:
            self._sweeping = self._every(_Trigger())
            self._failed.clear()
        missed = self._judge_some(self._sweeping)
        if not self._sweeping:
            self._next_sweep = now + self.env.limits.compliance_sweep / SECOND
        if missed:
            _log.error(
                "compliance: the sweep found %d violations begun or ended that no change had"
                " announced; they are recorded now, and this is a fault of the service",
                missed,
            )
            self.on_missed(missed)

    def _judge_some(self, due: dict[str, _Trigger]) -> int:
        """Judge a batch of what is due, and take it out; see `_judge`."""
        batch = {one: due.pop(one) for one in list(self._queue.first(due, self.at_once))}
        try:
            return self._judge(batch)
        finally:
            if self._put_off:
                rest = self._put_off | due
                self._put_off = {}
                due.clear()
                due.update(rest)

    def _judge(self, due: dict[str, _Trigger]) -> int:
        """Judge ensembles and write what has changed; return the number of changed violations.

        What another process has changed meanwhile is due again. One that cannot be judged keeps no
        other from it, and is tried again by the sweep.

        Raises:
            Busy: the ledger is out of reach; they are due still.
            Exception: a judgement failed, after all others were made.
        """
        try:
            return self._write(due)
        except (ConcurrentUpdate, NotFound):
            if len(due) == 1:
                self._later.update(due)
                return 0
        except Busy:
            self._put_off |= due
            raise
        except Exception:
            if len(due) == 1:
                self._failed |= {one: self._marked.get(one, -1) for one in due}
                raise
        number = 0
        failures: list[Exception] = []
        began = self.env.stopwatch()
        for one, cause in due.items():
            if self.env.stopwatch() - began > BATCH_SECONDS:
                self._put_off[one] = cause
                continue
            try:
                number += self._judge({one: cause})
            except Exception as error:  # noqa: BLE001 - one that fails must not keep others waiting
                failures.append(error)
        if failures:
            raise failures[0]
        return number

    def _write(self, due: dict[str, _Trigger]) -> int:
        store = self.env.store
        found = {one.ensemble.id: one for one in store.compliance.ensembles_by_id(due)}
        stored = store.compliance.open_of(due)
        # Read last: a judgement of an older ensemble does not pass its commit, and what has moved
        # since the last look is judged again.
        snapshot = store.snapshot()
        late: dict[str, _Trigger] = {}
        changes: list[Change] = []
        judged: list[tuple[str, int]] = []
        number = 0
        began = at = self.env.stopwatch()
        for id_, trigger in due.items():
            written = found.get(id_)
            if written is None:
                self._forget_settling(id_, ())
                self._read.forget(id_)
                continue
            if at - began > BATCH_SECONDS:
                late[id_] = trigger
                continue
            put = list(self._changes(written, snapshot, stored.get(id_, ()), trigger))
            before, at = at, self.env.stopwatch()
            self._queue.note(id_, at - before)
            generation = written.ensemble.generation
            if put:
                changes += (ExpectEnsemble(id_, generation), *put)
                number += len(put)
            if written.unjudged:
                judged.append((id_, generation))
        if judged:
            changes.append(MarkJudged(tuple(judged)))
        if changes:
            store.commit(Changeset(tuple(changes)))
        self._put_off |= late
        return number

    def _changes(
        self,
        written: WrittenEnsemble,
        snapshot: Snapshot,
        stored: Sequence[Violation],
        trigger: _Trigger,
    ) -> Iterator[PutViolation]:
        """What is to be written of an ensemble's violations."""
        ensemble = written.ensemble
        found = judge(snapshot, ensemble)
        self._read.note(ensemble, found)
        now = self.env.store.now()
        self._forget_settling(ensemble.id, [one.id for one in stored])
        cause = Cause(trigger.kind)
        present = {one.key: one for one in violations_of(snapshot, ensemble, found, cause)}
        actor = UNKNOWN
        if present.keys() != {one.key for one in stored}:
            actor = self._actor(written, snapshot, found, trigger)
        for old in stored:
            new = present.pop(old.key, None)
            if new is not None:
                better = old.type == MemberCondition.LOST != new.type
                if not better:
                    self._settling.pop(old.id, None)
                elif not self._over(ensemble, old, old.cause):
                    new = replace(new, type=old.type)
                kept = replace(
                    old,
                    type=new.type,
                    amount=new.amount,
                    members=new.members,
                    required=new.required,
                    text=new.text,
                    named=new.named,
                )
                if old.policy is None:  # of a host: it may be out of service for another reason
                    cause_now = replace(old.cause, hosts=new.cause.hosts, reason=new.cause.reason)
                    kept = replace(kept, cause=cause_now)
                if kept != old:
                    worse = new.type != old.type and new.type == MemberCondition.LOST
                    yield PutViolation(kept, old.generation, worse=worse)
            elif ended_by := self._over(ensemble, old, replace(cause, actor=actor)):
                ended = replace(old, until=max(now, old.since), ended_by=ended_by)
                yield PutViolation(ended, old.generation)
        for new in present.values():
            begun_by = replace(new.cause, actor=actor)
            begun = replace(new, id=self.env.ids.uuid(), since=now, cause=begun_by)
            yield PutViolation(begun, None)

    def _actor(
        self, written: WrittenEnsemble, snapshot: Snapshot, found: Judgement, trigger: _Trigger
    ) -> Actor:
        """Who did what an ensemble is judged for; of a host its operator, not what follows."""
        store = self.env.store
        if trigger.kind is CauseKind.TOPOLOGY:
            return store.compliance.topology_actor()
        if trigger.kind is CauseKind.ENSEMBLE or written.unjudged:
            return written.actor
        if trigger.kind is CauseKind.FOUND:
            return UNKNOWN
        rows = {*found.hosts.values(), *found.neighbours}
        uuids, by_host = [snapshot.uuids[row] for row in rows], trigger.kind is CauseKind.HOST
        return store.last_actor(uuids, trigger.after, operators_first=by_host) or UNKNOWN

    def _over(self, ensemble: Ensemble, old: Violation, ended_by: Cause) -> Cause | None:
        """What ended a violation that is not found any more or is less severe; None: not yet.

        One that a host may have begun ends only after a while, so that a host that flaps makes one
        event and not one each time.
        """
        settle = self.env.limits.compliance_settle / SECOND
        by_host = old.policy is None or old.cause.kind in {CauseKind.HOST, CauseKind.FOUND}
        if not by_host or not settle:
            return ended_by
        now = self.env.stopwatch()
        known = self._settling.setdefault(old.id, _Settling(ensemble.id, now + settle, ended_by))
        if known.until > now:
            return None
        del self._settling[old.id]
        return known.ended_by

    def _forget_settling(self, ensemble_id: str, stored: Collection[str]) -> None:
        """Forget those that another process has ended."""
        for id_, one in list(self._settling.items()):
            if one.ensemble == ensemble_id and id_ not in stored:
                del self._settling[id_]


def _book(
    snapshot: Snapshot, rows: Iterable[int], consumers: set[str], decisions: set[str]
) -> None:
    """Add the consumers of bookings on these rows, and the decisions that they name."""
    for row in rows:
        state = snapshot.states[row] if row < len(snapshot.states) else None
        for one in () if state is None else state.bookings:
            consumers.add(one.consumer)
            if one.decision is not None:
                decisions.add(one.decision)


def _trees(snapshot: Snapshot, rows: Iterable[int]) -> set[int]:
    """The rows of the trees in which these are, and of what servers there offer."""
    roots = {int(snapshot.root[row]) for row in rows if row < len(snapshot.root)}
    return {one for root in roots if snapshot.alive[root] for one in snapshot.at_host(root)}


def _sized(states: NDArray[np.int8], size: int) -> NDArray[np.int8]:
    found = np.zeros(size, dtype=np.int8)
    found[: len(states)] = states
    return found
