"""The composition root: the one module that knows every part, and introduces them to each other.

`create_app` makes the WSGI application; any WSGI server can run it. `application` is what an HTTP
worker of `moorage serve` calls (see `moorage.service`).
"""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.api import leases, native, placement
from moorage.api.leases import rules as lease_rules
from moorage.api.native import rules as native_rules
from moorage.api.placement import rules as placement_rules
from moorage.http.cors import with_cors
from moorage.http.forwarded import with_proxies
from moorage.http.house import House
from moorage.http.kernel import Kernel, Mount
from moorage.http.metrics_page import PATH, MetricsPage
from moorage.http.strategy import strategy
from moorage.outward.made import check, delivery, outside
from moorage.settings import Effective, configure
from moorage.solver import channel
from moorage.solver.pool import PoolSolver
from moorage.solver.portfolio import Portfolio
from moorage.store import Ledger, open_store
from moorage.store.settable_clock import SettableClock
from moorage.telemetry import table
from moorage.telemetry.instruments import CONTENT_TYPE, Metrics
from moorage.telemetry.traces import Traces
from moorage.telemetry.vitals import Vitals
from moorage.telemetry.watch import (
    RequestWatch,
    StoreWatch,
    WatchedDeliveries,
    WatchedEffects,
    WatchedExpiry,
    WatchedSolver,
)
from moorage.usecases.effects import carry_out, postpone
from moorage.usecases.expire import expire
from moorage.usecases.feed.deliver import deliver
from moorage.usecases.feed.thresholds import Thresholds
from moorage.usecases.feed.trim import Trimming, passing
from moorage.usecases.leases.lookout import Lookout
from moorage.usecases.leases.simulated import Simulated
from moorage.usecases.parts import Parts
from moorage.usecases.waitlist.rounds import Waitlist
from moorage.workers import deliveries, effects, expiry, lookout
from moorage.workers.pulse import Pulse
from moorage.workers.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.http.auth import Authenticate
    from moorage.http.strategy import Strategy
    from moorage.http.wsgi import Application
    from moorage.settings import Settings
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock, Solver, Store

_EXPIRY_SECONDS: Final = 1.0
_EFFECTS_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class RandomIds:
    """Identifiers nobody can guess."""

    def uuid(self) -> str:
        """See `Ids`."""
        return str(uuid.uuid4())

    def salt(self) -> str:
        """See `Ids`."""
        return secrets.token_hex(16)


def create_app(
    settings: Settings,
    *,
    store: Store | None = None,
    solver: Solver | None = None,
    clock: Clock | None = None,
) -> Application:
    """The application with every dialect mounted where the settings say.

    What is not handed in is made: the store from `settings.database`, the clock from
    `settings.clock_file` (the machine's without one), a solver that works in this process.

    Raises:
        MoorageError: the database cannot be opened.
    """
    metrics = Metrics()
    parts = make_parts(
        settings,
        store=store or open_ledger(settings, StoreWatch(metrics), clock),
        solver=WatchedSolver(solver or _solver_in_this_process(), metrics),
    )
    signs = Signs(metrics, lambda: metrics.page({}), {"database": parts.store.snapshot})
    return assemble(settings, parts, signs)


@dataclass(frozen=True)
class Signs:
    """What a process shows of itself."""

    metrics: Metrics
    page: Callable[[], bytes]
    """The text of `/metrics`."""
    checks: Mapping[str, Callable[[], object]]
    """What `/readyz` asks, by name."""


def make_parts(settings: Settings, *, store: Store, solver: Solver) -> Parts:
    """What the use cases are given."""
    return Parts(
        store=store,
        solver=solver,
        ids=RandomIds(),
        limits=settings.limits,
        stopwatch=time.monotonic,
        pause=time.sleep,
        check=check(settings.outward),
    )


def assemble(settings: Settings, parts: Parts, signs: Signs) -> Application:
    """The dialects over these parts, mounted on the kernel."""
    known = strategy(settings.server.auth, settings.callers)
    mounts = list(_mounts(settings, parts, known))
    house = House(
        version=version("moorage"),
        places={mount.name: mount.prefix or "/" for mount in mounts},
        checks=signs.checks,
        pages={PATH: _metrics_page(settings, signs, known.authenticate)},
    )
    kernel = Kernel(
        mounts,
        authenticate=known.authenticate,
        house=house,
        bounds=settings.server.bounds,
        watch=RequestWatch(signs.metrics),
    )
    open_to_pages = with_cors(kernel, settings.server.cors)
    return with_proxies(open_to_pages, settings.server.trusted_proxies)


def _mounts(settings: Settings, parts: Parts, known: Strategy) -> Iterator[Mount]:
    """The dialects that are served, each with the access rules of all in one policy file."""
    prefixes, rules = settings.server.mounts, settings.rules
    of_placement = placement_rules.defaults(new=rules.new_defaults)
    if "native" in prefixes:
        clock = None if settings.clock_file is None else SettableClock(settings.clock_file)
        access = native_rules.access_by(rules, {**of_placement, **lease_rules.KNOWN})
        yield Mount(
            "native",
            prefixes["native"],
            native.create_app(parts, clock=clock, access=access),
            open_paths=frozenset(native.OPEN_PATHS),
            unauthorized=known.unauthorized,
        )
    if "placement" in prefixes:
        access = placement_rules.access_by(rules, {**native_rules.KNOWN, **lease_rules.KNOWN})
        yield Mount(
            "placement",
            prefixes["placement"],
            placement.create_app(
                parts.store,
                parts.ids,
                access=access,
                lifetimes=replace(settings.lifetimes, notice=parts.limits.notice),
            ),
            unauthorized=known.unauthorized_bare,
        )
    if "reservation" in prefixes:
        access = lease_rules.access_by(rules, {**of_placement, **native_rules.KNOWN})
        yield Mount(
            "reservation",
            prefixes["reservation"],
            leases.create_app(parts, access=access),
            open_paths=frozenset(leases.OPEN_PATHS),
            unauthorized=known.unauthorized,
        )


def application(config: Mapping[str, Any]) -> Application:
    """The application of an HTTP worker process, with its background work started.

    `config` is what `moorage.service` sends: the effective settings, the address of the solver
    processes, the folder where the workers count, and the worker's own name.
    """
    settings = configure(Effective(**config["effective"]))
    metrics = Metrics(Path(config["counts"]), config["worker"])
    metrics.count(table.STARTS, metrics.worker)
    counted = StoreWatch(metrics)
    watch: Watch = counted
    solver: Solver = WatchedSolver(Portfolio(PoolSolver(config["solver"])), metrics)
    traces = None if settings.traces == "off" else Traces()
    if traces is not None:
        watch, solver = traces.watch(watch), traces.solver(solver)
    ledger = open_ledger(settings, watch)
    parts = make_parts(settings, store=ledger, solver=solver)
    up = partial(channel.up, config["solver"], settings.pool.processes)
    vitals = Vitals(ledger, metrics, solvers_up=up, unwritable=counted.unwritable)
    pulse = Pulse(vitals.looks, told=vitals.told)
    pulse.start()  # reads the ledger in before the first request, not during it
    expire_one = WatchedExpiry(partial(expire, parts), metrics)
    trouble = Trouble()
    expiry.start(
        ledger, expire_one, interval=_EXPIRY_SECONDS, done=vitals.round_done, trouble=trouble
    )
    _start_effects(parts, settings, metrics, vitals, trouble)
    checks = {name: partial(pulse.check, name) for name in vitals.looks}
    signs = Signs(metrics, lambda: metrics.page(vitals.asked), checks)
    made = assemble(settings, parts, signs)
    return made if traces is None else traces.app(made)


def _start_effects(
    parts: Parts, settings: Settings, metrics: Metrics, vitals: Vitals, trouble: Trouble
) -> None:
    """Carry out what is due, and look around for what nobody reports."""
    reached = outside(settings.outward)
    if settings.outward.end_servers == "simulated":
        reached = replace(reached, end=Simulated(parts.store))
    work = WatchedEffects(
        do=partial(carry_out, parts, reached),
        put_off=partial(postpone, parts, reached),
        metrics=metrics,
    )
    effects.start(
        parts.store, work, interval=_EFFECTS_SECONDS, done=vitals.lane_done, trouble=trouble
    )
    look = partial(lookout.start, interval=_EFFECTS_SECONDS, trouble=trouble)
    look(Lookout(parts).look, name="leases")
    look(Waitlist(parts).look, name="waitlist")
    look(Thresholds(parts).look, name="thresholds")
    look(Trimming(parts).look, name="trimming")
    _start_deliveries(parts, settings, metrics, trouble)


def _start_deliveries(parts: Parts, settings: Settings, metrics: Metrics, trouble: Trouble) -> None:
    """Deliver events."""
    work = WatchedDeliveries(
        do=partial(deliver, parts, delivery(settings.outward)),
        note=partial(passing, parts),
        metrics=metrics,
    )
    post = deliveries.Post(parts.store, work, settings.outward.deliveries, trouble)
    deliveries.start(post, interval=_EFFECTS_SECONDS)


def _metrics_page(settings: Settings, signs: Signs, authenticate: Authenticate) -> MetricsPage:
    server = settings.server
    return MetricsPage(
        signs.page, CONTENT_TYPE, server.metrics_from, server.trusted_proxies, authenticate
    )


def plain_parts(settings: Settings, store: Store) -> Parts:
    """What the use cases are given where no service runs: a solver that works in this process."""
    return make_parts(settings, store=store, solver=_solver_in_this_process())


def _solver_in_this_process() -> Solver:
    from moorage.solver.cpsat import CpSat  # noqa: PLC0415 - OR-Tools only where it is used

    return Portfolio(CpSat())


def open_ledger(settings: Settings, watch: Watch, clock: Clock | None = None) -> Ledger:
    """The ledger the settings name, with somebody who looks on.

    Raises:
        MoorageError: the database cannot be opened.
    """
    if clock is None and settings.clock_file is not None:
        clock = SettableClock(settings.clock_file)
    if settings.database_directory is not None:
        settings.database_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_store(settings.database, clock=clock, watch=watch)
