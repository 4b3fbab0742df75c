"""The composition root: the one module that knows every part, and introduces them to each other.

What the use cases are given is made in `service_environment`, and background work is started in
`service_workers`. `create_app` makes the WSGI application; any WSGI server can run it.
`application` is what an HTTP worker of `moorage serve` calls, and `planner` what a planner process
calls (see `moorage.service`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from moorage import web
from moorage.api import compute, leases, native, placement
from moorage.api.access_rules import known_rules
from moorage.api.compute import rules as compute_rules
from moorage.api.leases import rules as lease_rules
from moorage.api.native import rules as native_rules
from moorage.api.native.protocol import HISTORY as NATIVE
from moorage.api.native.versions import ID as VERSION_ID
from moorage.api.placement import rules as placement_rules
from moorage.http.auth_strategy import auth_strategy
from moorage.http.cors import with_cors
from moorage.http.kernel import CALLER, Kernel, Mount
from moorage.http.metrics_page import PATH, MetricsPage
from moorage.http.planner_client import PlannerClient
from moorage.http.process_status import Column, ProcessStatus
from moorage.http.proxy_headers import with_proxies
from moorage.http.system_routes import ApiVersion, SystemRoutes
from moorage.http.watched_file import WatchedFile
from moorage.policies.registry import discover
from moorage.service_environment import make_environment, open_ledger, solver_in_this_process
from moorage.service_workers import (
    background_work,
    plan_watch,
    plan_worker,
    start_compliance,
    start_ledger_work,
    start_nova_following,
    start_service_work,
)
from moorage.settings import Effective, configure
from moorage.shadow.forwarding import forwarding
from moorage.solver.greedy import Greedy
from moorage.solver.pool import PoolSolver
from moorage.solver.portfolio import Portfolio
from moorage.store.placement_database import read_placement
from moorage.store.settable_clock import SettableClock
from moorage.telemetry import table
from moorage.telemetry.health_checks import HealthChecks
from moorage.telemetry.instruments import CONTENT_TYPE, Metrics, RequestMetrics
from moorage.telemetry.observers import MeteredSolver, StoreMetrics
from moorage.telemetry.traces import Traces
from moorage.usecases.decide.search_queue import SolverBetweenTurns
from moorage.usecases.next_deadline import next_edge
from moorage.usecases.shared.admission import Admission
from moorage.workers.health_monitor import HealthMonitor
from moorage.workers.loop import FailureLog
from moorage.workers.simulated_time import SimulatedTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.http.auth import Authenticate
    from moorage.http.auth_strategy import AuthStrategy
    from moorage.http.planner_client import Planner
    from moorage.http.wsgi import Application, Environ, StartResponse
    from moorage.settings import Settings
    from moorage.store.watch import Watch
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Clock, Solver, Store
    from moorage.web.login import Login

_WAITING_SECONDS: Final = 0.05
_FIRST: Final = "1"
"""The HTTP worker that also does what one process of a service is enough for."""


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
    env = make_environment(
        settings,
        store=store or open_ledger(settings, StoreMetrics(metrics), clock),
        solver=MeteredSolver(solver or solver_in_this_process(settings.pool.strategies), metrics),
    )
    monitoring = Monitoring(metrics, lambda: metrics.page({}), {"database": env.store.snapshot})
    return assemble(settings, env, monitoring)


@dataclass(frozen=True)
class Monitoring:
    """What a process shows of itself."""

    metrics: Metrics
    page: Callable[[], bytes]
    """The text of `/metrics`."""
    checks: Mapping[str, Callable[[], object]]
    """What `/readyz` asks, by name."""


def assemble(
    settings: Settings,
    env: UseCaseEnvironment,
    monitoring: Monitoring,
    planner: Planner | None = None,
    simulated: SimulatedTime | None = None,
) -> Application:
    """The dialects over these parts, mounted on the kernel.

    Expensive requests are handed to the planner, if there is one. `simulated` is a simulation's
    clock, where the process does background work.
    """
    known = auth_strategy(settings.server.auth, settings.callers)
    mounts = list(_mounts(settings, env, known, planner, simulated))
    if "web" in settings.server.mounts:
        mounts = _with_page(settings, env, known, mounts)
    system_routes = SystemRoutes(
        version=version("moorage"),
        places={mount.name: mount.prefix or "/" for mount in mounts},
        checks=monitoring.checks,
        versions=[
            ApiVersion(VERSION_ID, mount.prefix, str(NATIVE.minimum), str(NATIVE.maximum))
            for mount in mounts
            if mount.name == "native"
        ],
        pages={PATH: _metrics_page(settings, monitoring, known.authenticate)},
    )
    kernel = Kernel(
        mounts,
        authenticate=known.authenticate,
        system_routes=system_routes,
        bounds=settings.server.bounds,
        watch=RequestMetrics(monitoring.metrics),
        forward=None if planner is None else _forwarding(env, planner),
    )
    open_to_pages = with_cors(kernel, settings.server.cors)
    return with_proxies(open_to_pages, settings.server.trusted_proxies)


def _forwarding(env: UseCaseEnvironment, planner: Planner) -> Application:
    """Hands a request to a planner in its project's turn."""

    def forward(environ: Environ, start_response: StartResponse) -> list[bytes]:
        with env.admission.turn(environ[CALLER]):
            answer = planner(environ)
        start_response(answer.status, answer.headers)
        return [answer.body]

    return forward


def _mounts(
    settings: Settings,
    env: UseCaseEnvironment,
    known: AuthStrategy,
    planner: Planner | None,
    simulated: SimulatedTime | None = None,
) -> Iterator[Mount]:
    """The dialects that are served, each with the access rules of all in one policy file."""
    prefixes, rules = settings.server.mounts, settings.rules
    nameable = known_rules(new_defaults=rules.new_defaults)
    if "native" in prefixes:
        clock = None if settings.clock_file is None else SettableClock(settings.clock_file)
        access = native_rules.access_by(rules, nameable)
        yield Mount(
            "native",
            prefixes["native"],
            native.create_app(env, clock=simulated or clock, access=access, planner=planner),
            open_paths=frozenset(native.OPEN_PATHS),
            unauthorized=known.unauthorized,
        )
    if "placement" in prefixes:
        access = placement_rules.access_by(rules, nameable)
        yield Mount(
            "placement",
            prefixes["placement"],
            placement.create_app(
                env.store,
                env.ids,
                access=access,
                settings=settings.writes,
                candidates=settings.candidates,
            ),
            unauthorized=known.unauthorized_bare,
        )
    if "reservation" in prefixes:
        access = lease_rules.access_by(rules, nameable)
        yield Mount(
            "reservation",
            prefixes["reservation"],
            leases.create_app(env, access=access, planner=planner),
            open_paths=frozenset(leases.OPEN_PATHS),
            unauthorized=known.unauthorized,
        )
    if "compute" in prefixes:
        yield Mount(
            "compute",
            prefixes["compute"],
            compute.create_app(env, access=compute_rules.access_by(rules, nameable)),
            open_paths=frozenset(compute.OPEN_PATHS),
            unauthorized=known.unauthorized_bare,
        )


def _with_page(
    settings: Settings, env: UseCaseEnvironment, known: AuthStrategy, mounts: Sequence[Mount]
) -> list[Mount]:
    """The mounts and the page's; the native API takes the page's sessions, too."""
    server = settings.server
    page = web.PageSettings(
        api=server.mounts["native"],
        auth=server.auth,
        version=version("moorage"),
        simulation=settings.clock_file is not None,
        lifetime=server.sessions.lifetime,
        embed_origins=server.sessions.embed_origins,
    )
    file = server.sessions.key_file
    keys = (
        cache(lambda: (env.store.session_key(),))
        if file is None
        else WatchedFile(file, web.keys_in_file).current
    )
    cookies = web.SessionCookies(keys, server.auth)
    sessions = web.SessionAuthentication(known.authenticate, cookies)
    access = native_rules.access_by(
        settings.rules, known_rules(new_defaults=settings.rules.new_defaults)
    )
    made = web.WebApplication(
        page,
        web.StaticFiles.read(),
        _login(known, server.auth),
        cookies,
        sessions,
        partial(native_rules.met, access),
    )
    return [
        *(replace(one, authenticate=sessions) if one.name == "native" else one for one in mounts),
        Mount("web", server.mounts["web"], made, authenticates_itself=True),
    ]


def _login(known: AuthStrategy, auth: str) -> Login:
    """The way into the page's sessions."""
    if known.identity is not None:
        from moorage.web.keystone_login import KeystoneLogin  # noqa: PLC0415 - of an extra

        return KeystoneLogin(known.identity)
    return web.RoleLogin() if auth == "noauth2" else web.TokenLogin()


def application(config: Mapping[str, Any]) -> Application:
    """The application of an HTTP worker process, with its background work started.

    `config` is what `moorage.service` sends: the effective settings, the addresses of the solver
    and planner processes, the folder where the workers count, the memory in which all processes
    show signs of life (descriptor of `ProcessStatus`), and the worker's own name.
    """
    own = _Process.of(config, plans=False)
    ProcessStatus(config["status"]).worker(int(config["worker"]))[Column.OPENED] = 1
    env, health, metrics, settings = own.env, own.health, own.metrics, own.settings
    monitor = own.start_health_monitor()
    failures = FailureLog()
    first = config["worker"] == _FIRST
    judges = settings.clock_file is not None or (first and not settings.planners.processes)
    plans = plan_worker(env, settings, metrics) if first else None
    watch = plan_watch(env, settings) if first else None
    work = background_work(env, settings, metrics, plans, watch, judges=judges)
    simulated = None
    if settings.clock_file is not None:
        turn, clock = RLock(), SettableClock(settings.clock_file)
        ends = tuple if plans is None else plans.ends
        simulated = SimulatedTime(clock, partial(next_edge, env, ends), work, turn)
        work = work.in_turns(turn)
    start_ledger_work(work, health, failures)
    start_service_work(env, settings, metrics, failures)
    checks = {name: partial(monitor.check, name) for name in health.checks}
    monitoring = Monitoring(metrics, lambda: metrics.page(health.on_scrape), checks)
    planner = PlannerClient(config["planner"]) if settings.planners.processes else None
    made = assemble(settings, env, monitoring, planner, simulated)
    follower = None
    if settings.shadow is not None:
        made = shadow = forwarding(
            made,
            settings.shadow,
            settings.server.bounds,
            store=env.store,
            own=placement.create_app(env.store, env.ids, access=lambda *_: True),
            read=read_placement,
        )
        follower = shadow.follower
    if first:
        start_nova_following(env, settings, failures, follower)
    return made if own.traces is None else own.traces.app(made)


def planner(config: Mapping[str, Any]) -> Mapping[str, Application]:
    """The dialects of a planner process, by the names of their mounts.

    `config` is that of `application`. Callers are known and admitted by the HTTP workers. At the
    start of a service the first of these opens the database, and migrates it if need be; that is
    waited for, and both then load the ledger at the same time.
    """
    status = ProcessStatus(config["status"])
    while not any(row[Column.OPENED] for row in status.workers):
        time.sleep(_WAITING_SECONDS)
    own = _Process.of(config, plans=True)
    own.start_health_monitor()
    if own.settings.clock_file is None and config["worker"].endswith(f"-{_FIRST}"):
        start_compliance(own.env, own.metrics)
    threads = own.settings.planners.threads
    admitted = Admission(of_one_project=threads, in_all=threads)
    env = replace(own.env, admission=admitted)
    known = auth_strategy(own.settings.server.auth, own.settings.callers)
    apps = {mount.name: mount.app for mount in _mounts(own.settings, env, known, None)}
    return apps if own.traces is None else {name: own.traces.app(app) for name, app in apps.items()}


@dataclass(frozen=True)
class _Process:
    """What an HTTP worker and a planner process have in common."""

    settings: Settings
    metrics: Metrics
    traces: Traces | None
    env: UseCaseEnvironment
    health: HealthChecks

    @classmethod
    def of(cls, config: Mapping[str, Any], *, plans: bool) -> _Process:
        """Open the ledger, and count this start; see `application`."""
        settings = configure(Effective(**config["effective"]))
        discover()  # once, instead of in each thread that answers one of the first requests
        metrics = Metrics(Path(config["counts"]), config["worker"])
        metrics.count(table.STARTS, metrics.worker)
        counted = StoreMetrics(metrics)
        watch: Watch = counted
        pool = SolverBetweenTurns(PoolSolver(config["solver"]))
        greedy = Greedy(scatter=_scatter(config["worker"], settings) if plans else None)
        solver: Solver = MeteredSolver(Portfolio(pool, greedy), metrics)
        traces = None if settings.traces == "off" else Traces()
        if traces is not None:
            watch, solver = traces.watch(watch), traces.solver(solver)
        ledger = open_ledger(settings, watch)
        health = HealthChecks(
            ledger,
            metrics,
            planners=settings.planners.processes > 0 and not plans,
            unwritable=counted.unwritable,
            status=ProcessStatus(config["status"]),
        )
        return cls(
            settings,
            metrics,
            traces,
            make_environment(settings, store=ledger, solver=solver),
            health,
        )

    def start_health_monitor(self) -> HealthMonitor:
        """Read the ledger before the first request, then check all parts every second."""
        monitor = HealthMonitor(self.health.checks, on_result=self.health.record)
        monitor.start()
        return monitor


def _scatter(worker: str, settings: Settings) -> int | None:
    """The number of a planner, if there are several; see `Greedy`."""
    several = settings.planners.processes > 1
    return int(worker.rpartition("-")[2]) if several else None


def _metrics_page(
    settings: Settings, monitoring: Monitoring, authenticate: Authenticate
) -> MetricsPage:
    server = settings.server
    return MetricsPage(
        monitoring.page, CONTENT_TYPE, server.metrics_from, server.trusted_proxies, authenticate
    )
