"""From values to the frozen configs of all parts, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.period import SECOND
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.http.access_rules import RulesConfig
from moorage.http.config import (
    CallersConfig,
    LogConfig,
    ServerConfig,
    Tls,
    Wire,
    is_loopback,
)
from moorage.http.cors import CorsConfig
from moorage.http.kernel import Bounds
from moorage.options import default_database
from moorage.settings.effective import KEYSTONE, BadSetting
from moorage.settings.outward import outward, public_targets
from moorage.solver.config import PoolConfig
from moorage.usecases.limits import Limits
from moorage.usecases.stays import Lifetimes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moorage.domain.period import Duration
    from moorage.outward.config import OutwardConfig
    from moorage.settings.effective import Effective

READERS: Final = 128
"""Request bodies a worker receives at a time, beyond the requests it works on."""


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
    limits: Limits
    lifetimes: Lifetimes
    outward: OutwardConfig
    traces: str
    """Where traces go: `off` or `otlp`."""


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
            cors=_cors(value),
            mounts=_mounts(effective),
            bounds=Bounds(body=value["body_limit"], running=value["threads"], readers=READERS),
            wire=Wire(
                connections=value["connections"],
                threads=value["threads"] + READERS,
                idle_seconds=value["idle_timeout"] / SECOND,
                body_seconds=value["body_timeout"] / SECOND,
            ),
            log=LogConfig(level=value["log_level"], form=value["log_format"]),
            metrics_from=tuple(value["metrics_from"]),
            pid_file=value["pid_file"] or None,
        ),
        pool=PoolConfig(
            processes=value["solver_workers"],
            queue=value["solver_queue"],
            memory=value["solver_memory"],
        ),
        traces=value["traces"],
        outward=outward(effective),
        lifetimes=_lifetimes(effective),
        limits=Limits(
            notice=value["notice"],
            grace=0 if value["end_servers"] == "none" else value["notice"],
            preemption_notice=(
                value["preemption_notice"] if value["preemption"] == "pending" else None
            ),
            longest_lease=value["longest_lease"],
            longest_lead=value["longest_lead"],
            longest_cleaning=value["longest_cleaning"],
            horizon=value["lease_horizon"],
            buckets=tuple(sorted({0, *value["capacity_buckets"]})),
            reservations=value["lease_reservations"],
            occurrences=value["series_occurrences"],
            quotas=_quotas(value),
            waitlist=value["waitlist_entries"],
            waitlist_time=value["waitlist_time"],
            subscriptions=value["subscriptions"],
            dead_letters=value["dead_letters_kept"],
            public_targets=public_targets(value),
            events_age=value["events_kept_for"],
            events=value["events_kept"],
            thresholds=value["threshold_interval"],
            default_hold=value["hold_default"],
            longest_hold=value["longest_hold"],
            renewals=value["max_renewals"],
            claim_lifetime=value["claim_lifetime"],
            longest_claim=value["longest_claim"],
            held_members=value["held_members"],
            explanations=value["explanations_kept"],
            time_limit=value["solve_time_limit"],
            longest_time_limit=value["longest_time_limit"],
            attempts=value["commit_attempts"],
        ),
    )


def _quotas(value: Mapping[str, Any]) -> QuotaDefaults:
    """What projects may lease of which nothing is said."""
    named = {
        QuotaName.UNITS: value["quota_lease_units"],
        QuotaName.UNIT_HOURS: value["quota_lease_unit_hours"],
        QuotaName.HORIZON: value["quota_lease_horizon"],
        QuotaName.MAX_LENGTH: value["quota_lease_max_length"],
        QuotaName.LEASES: value["quota_leases"],
        QuotaName.PRIORITY: value["quota_lease_priority"],
    }
    limits = {name: limit for name, limit in named.items() if limit is not None}
    return QuotaDefaults(MappingProxyType(limits), value["quota_window"])


def _mounts(effective: Effective) -> dict[str, str]:
    """Name -> prefix of what is served; the root's is empty."""
    named = dict(entry.split("=", 1) for entry in effective.values["mount"])
    places = {name: path.rstrip("/") for name, path in named.items() if path}
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


def _cors(value: Mapping[str, Any]) -> CorsConfig:
    return CorsConfig(
        allowed_origins=frozenset(value["cors_allowed_origin"]),
        allow_methods=frozenset(value["cors_allow_method"]),
        allow_headers=frozenset(header.lower() for header in value["cors_allow_header"]),
        expose_headers=tuple(value["cors_expose_header"]),
        allow_credentials=value["cors_allow_credentials"],
        max_age=value["cors_max_age"],
    )


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
    if value["threads"] <= value["solver_queue"] + value["solver_workers"]:
        raise BadSetting(
            "threads",
            source["threads"],
            "it must be more than solver_queue and solver_workers together,"
            " or solves leave no thread for anything else",
        )
