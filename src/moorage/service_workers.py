"""The background work of an HTTP worker: which use cases its threads run, and how often."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moorage.client.fleet_file import read_places
from moorage.domain import actors
from moorage.domain.errors import InvalidDescription
from moorage.outward.nova_moves import NovaMover
from moorage.outward.outgoing_calls import event_delivery, outgoing_calls
from moorage.shadow.nova_follower import NovaFollower
from moorage.telemetry import table
from moorage.telemetry.observers import MeteredDeliveries, MeteredEffects, MeteredExpiry
from moorage.usecases.claims.outcome import expire
from moorage.usecases.compliance.monitor import ComplianceMonitor
from moorage.usecases.effect_dispatch import SimulatedServers, carry_out, postpone
from moorage.usecases.events.deliver import deliver
from moorage.usecases.events.thresholds import ThresholdWatcher
from moorage.usecases.events.trim import EventTrimmer, record_passed
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.leases.retention import Retention
from moorage.usecases.plans.plan_maker import make_again
from moorage.usecases.plans.repair_plans import PlanWatch
from moorage.usecases.plans.simulated_moves import SimulatedMoves
from moorage.usecases.plans.steps import PlanWorker
from moorage.usecases.ports import Caller
from moorage.usecases.server_providers.lifecycle import ServerProviderSweeper
from moorage.usecases.waitlist.rounds import WaitlistWorker
from moorage.workers import deliveries, effects, expiry
from moorage.workers.ledger_work import LedgerWork
from moorage.workers.loop import FailureLog, start_scan
from moorage.workers.nova_notifications import NAME as NOTIFICATIONS
from moorage.workers.nova_notifications import ServiceNotifications
from moorage.workers.nova_sync import NovaLists, NovaSync

if TYPE_CHECKING:
    from moorage.domain.plans import Move
    from moorage.domain.topology_rules import TopologyRules
    from moorage.settings import Settings
    from moorage.shadow.follower import Follower
    from moorage.telemetry.health_checks import HealthChecks
    from moorage.telemetry.instruments import Metrics
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.plan_ports import ServerMover

_EXPIRY_SECONDS: Final = 1.0
_EFFECTS_SECONDS: Final = 1.0
_COMPLIANCE_SECONDS: Final = 0.5
_BUS_SECONDS: Final = 10.0
_ITSELF: Final = Caller(user_id="moorage", project_id="moorage", roles=frozenset({"service"}))
"""The caller of what the service does by its settings."""


def plan_worker(env: UseCaseEnvironment, settings: Settings, metrics: Metrics) -> PlanWorker | None:
    """Who carries out plans; None: nobody does here."""
    env = env.by(actors.PLANS)
    mover: ServerMover
    match settings.outward.move_servers:
        case "simulated":
            mover = SimulatedMoves(env.store, env.ids, settings.writes)
        case "nova":
            mover = NovaMover(settings.outward.nova, settings.outward.timeout)
        case _:
            return None
    return PlanWorker(env, mover, make_again, counted=partial(_count_move, metrics))


def plan_watch(env: UseCaseEnvironment, settings: Settings) -> PlanWatch:
    """Who makes the plans that nobody requests."""
    return PlanWatch(
        env.by(actors.PLANS), settings.automatic_plans, settings.limits.misplaced_members
    )


def _count_move(metrics: Metrics, move: Move) -> None:
    metrics.count(table.PLAN_MOVES, move.kind.value, move.state.value)


def background_work(
    env: UseCaseEnvironment,
    settings: Settings,
    metrics: Metrics,
    plans: PlanWorker | None = None,
    watch: PlanWatch | None = None,
    *,
    judges: bool,
) -> LedgerWork:
    """The work that keeps the ledger in step with time; `judges`: also that of ensembles."""
    reached = outgoing_calls(settings.outward)
    if settings.outward.end_servers == "simulated":
        reached = replace(reached, end=SimulatedServers(env.store.by(actors.EFFECTS)))
    timed = env.by(actors.EFFECTS)
    return LedgerWork(
        store=env.store,
        expire=MeteredExpiry(partial(expire, env.by(actors.EXPIRY)), metrics),
        effects=MeteredEffects(
            do=partial(carry_out, timed, reached),
            put_off=partial(postpone, timed, reached),
            metrics=metrics,
        ),
        scans={
            "leases": LeaseSweeper(env.by(actors.LEASES)).run_round,
            "server providers": ServerProviderSweeper(env.by(actors.SERVER_PROVIDERS)).run_round,
            "waitlist": WaitlistWorker(env.by(actors.WAITLIST)).run_round,
            **({} if plans is None else {"plans": plans.run_round}),
            **({} if watch is None else {"automatic plans": watch.run_round}),
            **({"compliance": compliance_monitor(env, metrics).run_round} if judges else {}),
        },
    )


def compliance_monitor(env: UseCaseEnvironment, metrics: Metrics) -> ComplianceMonitor:
    """The monitor that judges ensembles, with its faults counted."""
    return ComplianceMonitor(
        env.by(actors.COMPLIANCE), lambda number: metrics.count(table.MISSED, by=number)
    )


def start_compliance(env: UseCaseEnvironment, metrics: Metrics) -> None:
    """Judge ensembles in a process that serves no plain requests."""
    monitor = compliance_monitor(env, metrics)
    start_scan(monitor.run_round, interval=_COMPLIANCE_SECONDS, name="compliance")


def start_ledger_work(work: LedgerWork, health: HealthChecks, failures: FailureLog) -> None:
    """Record what has lapsed, carry out what is due, and look for what nobody reports."""
    store = work.store
    expiry.start(
        store, work.expire, interval=_EXPIRY_SECONDS, done=health.round_done, failures=failures
    )
    effects.start(
        store, work.effects, interval=_EFFECTS_SECONDS, done=health.lane_done, failures=failures
    )
    for name, look in work.scans.items():
        start_scan(look, interval=_EFFECTS_SECONDS, name=name, failures=failures)


def start_service_work(
    env: UseCaseEnvironment, settings: Settings, metrics: Metrics, failures: FailureLog
) -> None:
    """Measure thresholds, delete what is kept no longer, and deliver events."""
    scan = partial(start_scan, interval=_EFFECTS_SECONDS, failures=failures)
    kept = env.by(actors.RETENTION)
    scan(ThresholdWatcher(env.by(actors.THRESHOLDS)).run_round, name="thresholds")
    scan(EventTrimmer(kept).run_round, name="trimming")
    scan(Retention(kept).run_round, name="retention")
    _start_deliveries(env, settings, metrics, failures)


def start_nova_following(
    env: UseCaseEnvironment, settings: Settings, failures: FailureLog, follower: Follower | None
) -> None:
    """Read Nova's lists every so often, in a shadow also groups, and what it notifies of."""
    sync = _nova_sync(env, settings, failures, follower)
    outward = settings.outward
    if outward.nova_notifications:
        from moorage.outward.nova_notifications import (  # noqa: PLC0415 - an extra, as above
            NovaNotifications,
        )

        acting = env.by(actors.NOVA_NOTIFICATIONS)
        heard = ServiceNotifications(acting, _ITSELF, failures, sync)
        bus = NovaNotifications(outward.nova_notifications, outward.files, heard)
        start_scan(bus.run_round, interval=_BUS_SECONDS, name=NOTIFICATIONS, failures=failures)


def _nova_sync(
    env: UseCaseEnvironment, settings: Settings, failures: FailureLog, follower: Follower | None
) -> NovaSync | None:
    """Start the rounds that read Nova's lists, if settings say so."""
    outward = settings.outward
    if outward.nova_sync is None:
        return None
    from moorage.client import nova_source  # noqa: PLC0415 - an extra, only where it is used
    from moorage.outward.nova_reader import NovaReader  # noqa: PLC0415 - as above

    nova = NovaReader(outward.nova, outward.timeout)
    lists = NovaLists(
        flavors=partial(nova_source.read_flavors, nova),
        hosts=partial(nova_source.read_hosts, nova),
        rules=partial(_topology_rules, outward.topology_rules) if outward.topology_rules else None,
    )
    acting = env.by(actors.NOVA_SYNC)
    sync = NovaSync(acting, _ITSELF, lists, outward.nova_sync)
    scan = partial(start_scan, interval=_EFFECTS_SECONDS, failures=failures)
    scan(sync.run_round, name="nova sync")
    if follower is not None:
        read = partial(nova_source.read_groups_and_servers, nova)
        created, judged = follower.created, follower.judged
        following = NovaFollower(acting, _ITSELF, read, created, judged, outward.nova_sync)
        scan(following.run_round, name="nova groups")
    return sync


def _topology_rules(path: str) -> TopologyRules:
    try:
        return read_places(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidDescription(f"topology_rules {path} cannot be read: {error}") from error


def _start_deliveries(
    env: UseCaseEnvironment, settings: Settings, metrics: Metrics, failures: FailureLog
) -> None:
    """Deliver events."""
    env = env.by(actors.DELIVERIES)
    work = MeteredDeliveries(
        do=partial(deliver, env, event_delivery(settings.outward)),
        note=partial(record_passed, env),
        metrics=metrics,
    )
    outward = settings.outward
    post = deliveries.DeliveryQueue(
        env.store, work, outward.deliveries, outward.deliveries_per_project, failures
    )
    deliveries.start(post, interval=_EFFECTS_SECONDS)
