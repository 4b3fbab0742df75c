"""From values to the frozen configs of all parts, checked against each other."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import os_resource_classes
import os_traits

from moorage.domain.disclosure import Disclosure
from moorage.domain.ensembles import OnViolation
from moorage.domain.nova.pci_devices import StandardNames, read_aliases
from moorage.domain.nova.server_request import NovaRules
from moorage.domain.period import SECOND
from moorage.domain.plans import AutomaticPlans, PlanKind, PlanLimits
from moorage.domain.quotas import UNLIMITED, QuotaDefaults, QuotaName
from moorage.domain.requests import Objective
from moorage.http.access_rules import RulesConfig
from moorage.http.config import (
    CallersConfig,
    LogConfig,
    PlannersConfig,
    ServerConfig,
    Tls,
    is_loopback,
)
from moorage.http.kernel import RequestLimits
from moorage.http.transport.limits import ConnectionLimits
from moorage.options import default_database
from moorage.settings.candidates import candidate_limit
from moorage.settings.effective_values import KEYSTONE, BadSetting
from moorage.settings.outward import outward, public_targets
from moorage.settings.web_pages import cors, sessions
from moorage.shadow.config import ShadowConfig
from moorage.shadow.upstream import check_url
from moorage.solver.config import PoolConfig
from moorage.usecases.shared.allocation_write import Lifetimes, WriteSettings
from moorage.usecases.shared.limits import Limits, ShownTo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.period import Duration
    from moorage.engine.candidates.limit import CandidateLimit
    from moorage.outward.config import OutwardConfig
from moorage.settings.effective_values import Effective


def _shadow(effective: Effective) -> ShadowConfig | None:
    """What is followed, if anything is.

    Raises:
        BadSetting: a setting does not go together with a shadow.
    """
    value, source = effective.values, effective.sources
    if not value["shadow"]:
        if value["shadow_source"]:
            raise BadSetting("shadow_source", source["shadow_source"], "it needs shadow")
        return None
    try:
        check_url(value["shadow"])
    except ValueError as error:
        raise BadSetting("shadow", source["shadow"], str(error)) from error
    if value["workers"] != 1:
        raise BadSetting(
            "workers", source["workers"], "a shadow has one worker, which keeps writes in order"
        )
    for name in ("end_servers", "move_servers", "ticket_flavors"):
        if value[name] == "nova":
            raise BadSetting(name, source[name], "a shadow changes nothing in Nova")
    mounts = _mounts(effective)
    if "placement" not in mounts:
        raise BadSetting("mount", source["mount"], "a shadow serves placement")
    report = value["shadow_report"] or default_database().with_name("shadow.json")
    return ShadowConfig(
        followed=value["shadow"],
        prefix=mounts["placement"],
        source=value["shadow_source"],
        refresh_seconds=value["shadow_refresh"] / SECOND,
        report=Path(report).absolute(),
    )


WAITING: Final = 128
"""Requests of a worker that wait for one of its `threads`, or are answered without one."""


@dataclass(frozen=True)
class Settings:
    """The configs of all parts."""

    database: str
    database_directory: Path | None
    """The default database's directory, to be made if it is not there."""
    clock_file: str | None
    callers: CallersConfig
    rules: RulesConfig
    server: ServerConfig
    pool: PoolConfig
    planners: PlannersConfig
    limits: Limits
    lifetimes: Lifetimes
    candidates: CandidateLimit
    outward: OutwardConfig
    automatic_plans: AutomaticPlans
    traces: str
    """Where traces go: `off` or `otlp`."""
    shadow: ShadowConfig | None = None

    @property
    def writes(self) -> WriteSettings:
        """By what writes of allocations are judged."""
        return WriteSettings(
            lifetimes=replace(self.lifetimes, notice=self.limits.notice),
            refuse_spent=self.limits.refuse_spent_claims,
            misplaced_members=self.limits.misplaced_members,
            foreign_servers=self.limits.foreign_servers,
            build_retries=self.limits.build_retries,
        )


def configure(effective: Effective) -> Settings:
    """The configs for these values, checked against each other.

    Raises:
        BadSetting: two settings do not go together.
    """
    value = effective.values
    _check_together(effective)
    default = default_database()
    return Settings(
        database=value["database"],
        database_directory=default.parent if value["database"] == f"sqlite:///{default}" else None,
        clock_file=value["clock_file"] or None,
        callers=CallersConfig(
            token_file=value["token_file"] or None, keystone=dict(effective.keystone)
        ),
        rules=RulesConfig(
            file=value["policy_file"] or None, new_defaults=value["enforce_new_defaults"]
        ),
        server=ServerConfig(
            host=value["host"],
            port=value["port"],
            workers=value["workers"],
            auth=value["auth"],
            tls=_tls(effective),
            trusted_proxies=tuple(value["trusted_proxies"]),
            cors=cors(value),
            mounts=_mounts(effective),
            bounds=RequestLimits(
                body=value["body_limit"],
                running=value["threads"],
                of_one_project=value["requests_per_project"] or max(value["threads"] * 3 // 4, 1),
                of_one_address=value["requests_per_address"],
                proxies=tuple(value["trusted_proxies"]),
                seconds=value["request_time_limit"] / SECOND,
            ),
            limits=_wire(value),
            silence=value["worker_timeout"] / SECOND,
            log=_log(value),
            metrics_from=tuple(value["metrics_from"]),
            pid_file=value["pid_file"] or None,
            sessions=sessions(effective),
        ),
        pool=PoolConfig(
            processes=value["solver_workers"],
            queue=value["solver_queue"],
            memory=value["solver_memory"],
            strategies=tuple(dict.fromkeys(value["solver_strategies"])),
        ),
        planners=_planners(value),
        traces=value["traces"],
        shadow=_shadow(effective),
        outward=outward(effective),
        automatic_plans=AutomaticPlans(
            frozenset(map(PlanKind, value["automatic_plans"])),
            value["automatic_plans_hourly"],
            # A simulation's time stands still: its hosts have failed at once.
            settle=0 if value["clock_file"] else value["host_settle_time"],
        ),
        lifetimes=_lifetimes(effective),
        candidates=candidate_limit(value),
        limits=Limits(
            notice=value["notice"],
            plans=PlanLimits(
                value["plan_parallel"], value["plan_per_host"], value["plan_failures"]
            ),
            ticket_flavors=value["ticket_flavors"] == "nova",
            nova=_nova_rules(value),
            refuse_spent_claims=value["spent_claims"] == "refuse",
            moves_shown_to=ShownTo(value["moves_shown_to"]),
            misplaced_members=OnViolation(value["misplaced_members"]),
            foreign_servers=OnViolation(value["foreign_servers"]),
            server_provider_grace=value["server_provider_grace"],
            offered_names=value["offered_names"],
            build_retries=value["build_retries"],
            builds_elsewhere=value["failed_builds"] == "elsewhere",
            grace=0 if value["end_servers"] == "none" else value["notice"],
            preemption_notice=(
                value["preemption_notice"] if value["preemption"] == "pending" else None
            ),
            longest_lease=value["longest_lease"],
            longest_lead=value["longest_lead"],
            longest_cleaning=value["longest_cleaning"],
            horizon=value["lease_horizon"],
            disclosure=Disclosure(
                counts=tuple(sorted({0, *value["capacity_buckets"]})),
                times=value["tenant_times"],
                levels=frozenset(value["tenant_levels"]),
                host_properties=frozenset(value["tenant_host_properties"]),
            ),
            reservations=value["lease_reservations"],
            occurrences=value["series_occurrences"],
            quotas=_quotas(value),
            waitlist_time=value["waitlist_time"],
            dead_letters=value["dead_letters_kept"],
            public_targets=public_targets(value),
            events_age=value["events_kept_for"],
            events=value["events_kept"],
            records_age=value["records_kept_for"],
            thresholds=value["threshold_interval"],
            # A simulation's time stands still: its hosts are trusted at once.
            compliance_settle=0 if value["clock_file"] else value["host_settle_time"],
            compliance_sweep=value["compliance_sweep"],
            default_hold=value["hold_default"],
            longest_hold=value["longest_hold"],
            renewals=value["max_renewals"],
            claim_lifetime=value["claim_lifetime"],
            longest_claim=value["longest_claim"],
            held_members=value["held_members"],
            members=value["ensemble_members"],
            roles=value["ensemble_roles"],
            policies=value["ensemble_policies"],
            description=value["ensemble_bytes"],
            metadata=value["metadata_bytes"],
            explanations=value["explanations_kept"],
            time_limit=value["solve_time_limit"],
            explanation_budget=value["explanation_time"] * value["solve_time_limit"],
            longest_time_limit=value["longest_time_limit"],
            objective=Objective(value["objective"]),
            attempts=value["commit_attempts"],
            expensive=value["expensive_per_project"],
            expensive_in_all=_expensive(value),
            expensive_at_once=_at_once(value),
            page_bytes=value["page_bytes"],
            waiting=max(value["threads"] // 2, 1),
        ),
    )


def _log(value: Mapping[str, Any]) -> LogConfig:
    """Where and how much is logged."""
    file = value["log_file"] or ("moorage.log" if value["log_dir"] else "")
    path = str(Path(value["log_dir"], file).absolute()) if file else ""
    return LogConfig(
        level="debug" if value["debug"] else value["log_level"],
        form=value["log_format"],
        file=path,
        stderr=not path or value["use_stderr"],
    )


def _nova_rules(value: Mapping[str, Any]) -> NovaRules:
    """How this cloud's Nova is configured."""
    standard = StandardNames(
        frozenset(os_resource_classes.STANDARDS), frozenset(os_traits.get_traits())
    )
    return NovaRules(
        aliases=read_aliases(value["pci_alias"], standard),
        pci_in_placement=value["pci_in_placement"],
        image_metadata_prefilter=value["image_metadata_prefilter"],
        image_type_support=value["query_placement_for_image_type_support"],
        standard=standard,
    )


def _wire(value: Mapping[str, Any]) -> ConnectionLimits:
    """The bounds of one worker's connections.

    No request is worked on for longer than its time limit, and what follows a commit.
    """
    return ConnectionLimits(
        connections=value["connections"],
        threads=value["threads"] + WAITING,
        idle_seconds=value["idle_timeout"] / SECOND,
        body_seconds=value["body_timeout"] / SECOND,
        body_limit=value["body_limit"],
        arriving=value["arriving_limit"],
        unsent=value["unsent_limit"],
        running=value["threads"],
        stuck_seconds=(value["request_time_limit"] + value["worker_timeout"]) / SECOND,
        per_address=value["address_connections"],
        proxies=tuple(value["trusted_proxies"]),
    )


def _expensive(value: Mapping[str, Any]) -> int:
    """How many requests that search one worker admits at a time."""
    threads: int = value["threads"]
    return max(threads * 3 // 4, 1)


def _at_once(value: Mapping[str, Any]) -> int | None:
    """How many requests of one project that search a worker has worked on while others ask.

    Half of the planners for all workers together: another project finds one without them.
    """
    planners = _planners(value).processes
    return max(planners // (2 * value["workers"]), 1) if planners else None


def _planners(value: Mapping[str, Any]) -> PlannersConfig:
    """The planner processes; none where only the process that opens the ledger sees it."""
    kind, _, rest = value["database"].partition("://")
    in_memory = kind.partition("+")[0] == "sqlite" and (
        rest.partition("?")[0].strip("/") in {"", ":memory:"}
    )
    asked, cpus = value["planners"], len(os.sched_getaffinity(0))
    return PlannersConfig(
        processes=0 if in_memory else _planners_for(cpus) if asked is None else asked,
        threads=value["workers"] * _expensive(value),
    )


def _planners_for(cpus: int) -> int:
    """Half as many as CPUs, but two where there are two: a search keeps one busy by itself."""
    return max(cpus // 2, min(cpus, 2))


def _quotas(value: Mapping[str, Any]) -> QuotaDefaults:
    """What projects may lease of which nothing is said."""
    named = {
        QuotaName.UNITS: value["quota_lease_units"],
        QuotaName.UNIT_HOURS: value["quota_lease_unit_hours"],
        QuotaName.HORIZON: value["quota_lease_horizon"],
        QuotaName.MAX_LENGTH: value["quota_lease_max_length"],
        QuotaName.LEASES: value["quota_leases"],
        QuotaName.PRIORITY: value["quota_lease_priority"],
        QuotaName.ENSEMBLES: value["quota_ensembles"],
        QuotaName.TEMPLATES: value["quota_templates"],
        QuotaName.SERIES: value["quota_series"],
        QuotaName.OFFERS: value["quota_offers"],
        QuotaName.WAITLIST: value["waitlist_entries"],
        QuotaName.SUBSCRIPTIONS: value["subscriptions"],
        QuotaName.SHARES_GIVEN: value["quota_shares_given"],
        QuotaName.SHARES_RECEIVED: value["quota_shares_received"],
    }
    limits = {name: UNLIMITED if limit is None else limit for name, limit in named.items()}
    return QuotaDefaults(MappingProxyType(limits), value["quota_window"])


def _mounts(effective: Effective) -> dict[str, str]:
    """Name -> prefix of what is served; the root's is empty."""
    named = dict(entry.split("=", 1) for entry in effective.values["mount"])
    places = {name: path.rstrip("/") for name, path in named.items() if path}
    if "native" not in places:
        places.pop("web", None)
    if not places:
        raise BadSetting("mount", effective.sources["mount"], "nothing is left to serve")
    if len(set(places.values())) < len(places):
        raise BadSetting("mount", effective.sources["mount"], "two mounts have the same path")
    return places


def _lifetimes(effective: Effective) -> Lifetimes:
    """How long consumers stay that declare no end; each project is named once."""
    named: list[tuple[str, Duration | None]] = effective.values["project_lifetime"]
    projects = dict(named)
    if len(projects) < len(named):
        source = effective.sources["project_lifetime"]
        raise BadSetting("project_lifetime", source, "a project is named twice")
    return Lifetimes(effective.values["lifetime"], MappingProxyType(projects))


def _tls(effective: Effective) -> Tls | None:
    """Certificate and key, or neither."""
    value, source = effective.values, effective.sources
    cert, key = value["tls_cert"], value["tls_key"]
    if bool(cert) != bool(key):
        name = "tls_key" if key else "tls_cert"
        raise BadSetting(name, source[name], "tls_cert and tls_key go together")
    return Tls(cert, key) if cert else None


def _check_auth(effective: Effective) -> None:
    value, source = effective.values, effective.sources
    strategy = value["auth"]
    if strategy == "noauth2" and not (is_loopback(value["host"]) or value["insecure"]):
        raise BadSetting(
            "host",
            source["host"],
            f"{value['host']} can be reached by others, and auth noauth2 believes everybody;"
            " choose a loopback address, or say --insecure",
        )
    if strategy == "token-file" and not value["token_file"]:
        raise BadSetting("auth", source["auth"], "token-file needs a token_file")
    if strategy == "keystone" and not effective.keystone:
        raise BadSetting(
            "auth", source["auth"], f"keystone needs a section [{KEYSTONE}] in the file"
        )


def _check_together(effective: Effective) -> None:
    value, source = effective.values, effective.sources
    _check_auth(effective)
    for less, more in (
        ("hold_default", "longest_hold"),
        ("claim_lifetime", "longest_claim"),
        ("solve_time_limit", "longest_time_limit"),
        ("idle_timeout", "body_timeout"),
        ("delivery_longest_wait", "delivery_patience"),
        ("delivery_patience", "events_kept_for"),
    ):
        if value[less] > value[more]:
            raise BadSetting(less, source[less], f"it is longer than {more}")
    if value["arriving_limit"] < 2 * value["body_limit"]:
        raise BadSetting(
            "arriving_limit", source["arriving_limit"], "it must be at least twice body_limit"
        )
    if value["threads"] <= value["solver_queue"] + value["solver_workers"]:
        raise BadSetting(
            "threads",
            source["threads"],
            "it must be more than solver_queue and solver_workers together,"
            " or solves leave no thread for anything else",
        )
