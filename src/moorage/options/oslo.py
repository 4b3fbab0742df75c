"""Options of OpenStack's libraries as other services take them, and what each is here.

Each is the same as one of our settings, or has no meaning for this service; the reason is said.
Sections of libraries that this service does not use are accepted as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.options.kinds import show_truth, truth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

UNUSED_SECTIONS: Final = ("oslo_", "cache", "healthcheck", "profiler", "os_profiler")
"""Beginnings of the names of sections that belong to libraries without a part in this service."""


def _same(text: str, _file: Path) -> Sequence[str]:
    return (text,)


def _separated(text: str, _file: Path) -> Sequence[str]:
    """The elements of a list with commas."""
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _beside(text: str, file: Path) -> Sequence[str]:
    """A path that is relative to the configuration file, as oslo.policy looks for it."""
    return (str(file.absolute().parent / text) if text else "",)


def _log_format(text: str, _file: Path) -> Sequence[str]:
    return ("json" if truth(text) else "text",)


def without_driver(text: str, _file: Path) -> Sequence[str]:
    """A database URL without SQLAlchemy's driver: `mysql+pymysql://` is `mysql://`."""
    scheme, separator, rest = text.partition("://")
    return (scheme.partition("+")[0] + separator + rest,)


def as_truth(text: str, _file: Path) -> Sequence[str]:
    """A truth value as the settings here write it."""
    return (show_truth(truth(text)),)


@dataclass(frozen=True)
class LibraryOption:
    """An option of a library: the setting that it is here, or why it is none."""

    section: str
    name: str
    setting: str = ""
    reason: str = ""
    """Why there is no such setting; empty where there is one."""
    texts: Callable[[str, Path], Sequence[str]] = _same
    """From its text, and the file where it stands, to the setting's; raises ValueError."""
    refused: bool = False
    """Whether the service must not start without it."""


_DEFAULT: Final = "DEFAULT"
_FORMAT: Final = "the format of log lines is `log_format`"
_ROTATION: Final = "log files are rotated by logrotate; the file is opened again when it is gone"
_JOURNAL: Final = "the log goes to standard error, which systemd keeps, or to `log_file`"
_REMOTE: Final = "checks over HTTP (`http:`) are made with oslo.policy's defaults"
_POOL: Final = "the number of connections follows from `workers` and `threads`"
_REPEATED: Final = "how long a database may be away is fixed; see the guide on databases"


def _log(reason: str, *names: str) -> tuple[LibraryOption, ...]:
    return tuple(LibraryOption(_DEFAULT, name, reason=reason) for name in names)


LOG: Final = (
    LibraryOption(_DEFAULT, "logfile", "log_file"),
    LibraryOption(_DEFAULT, "logdir", "log_dir"),
    LibraryOption(_DEFAULT, "use_json", "log_format", texts=_log_format),
    *_log("the log is set up by `log_level` and `log_format`", "log_config_append", "log_config"),
    *_log("`log_level` is for all loggers", "default_log_levels"),
    *_log(
        _FORMAT,
        *("log_date_format", "log_color", "logging_context_format_string"),
        *("logging_default_format_string", "logging_debug_format_suffix"),
        *("logging_exception_prefix", "logging_user_identity_format"),
        *("instance_format", "instance_uuid_format"),
    ),
    *_log(_JOURNAL, "use_syslog", "use_journal", "syslog_log_facility"),
    *_log(
        _ROTATION,
        *("log_rotate_interval", "log_rotate_interval_type", "max_logfile_count"),
        *("max_logfile_size_mb", "log_rotation_type"),
    ),
    *_log(
        "what lasts is logged once, other lines are not limited",
        *("rate_limit_interval", "rate_limit_burst", "rate_limit_except_level"),
    ),
    *_log("there are no notifications; see subscriptions", "publish_errors"),
    *_log("`moorage config show` shows the settings", "log_options"),
    *_log("deprecated settings are named at the start", "fatal_deprecations"),
)
"""oslo.log; `debug`, `log_file`, `log_dir` and `use_stderr` are settings by these names."""

POLICY: Final = (
    LibraryOption("oslo_policy", "policy_file", "policy_file", texts=_beside),
    LibraryOption("oslo_policy", "enforce_new_defaults", "enforce_new_defaults", texts=as_truth),
    LibraryOption(
        "oslo_policy", "enforce_scope", reason="only tokens of a project are accepted, always"
    ),
    LibraryOption(
        "oslo_policy", "policy_default_rule", reason="every rule there is has a default of its own"
    ),
    LibraryOption(
        "oslo_policy",
        "policy_dirs",
        reason="rules are read from `policy_file` only: put them into that file",
        refused=True,
    ),
    *(
        LibraryOption("oslo_policy", name, reason=_REMOTE)
        for name in (
            *("remote_content_type", "remote_ssl_verify_server_crt", "remote_ssl_ca_crt_file"),
            *("remote_ssl_client_crt_file", "remote_ssl_client_key_file", "remote_timeout"),
        )
    ),
)

MIDDLEWARE: Final = (
    LibraryOption("oslo_middleware", "max_request_body_size", "body_limit"),
    LibraryOption(
        "oslo_middleware",
        "enable_proxy_headers_parsing",
        reason="headers of proxies are believed that `trusted_proxies` names, by address",
    ),
    LibraryOption(
        "oslo_middleware", "http_basic_auth_user_file", reason="callers are authenticated by `auth`"
    ),
    LibraryOption(
        "oslo_middleware", "secure_proxy_ssl_header", reason="X-Forwarded-Proto is the header"
    ),
)

CORS: Final = (
    LibraryOption("cors", "allowed_origin", "cors_allowed_origin", texts=_separated),
    LibraryOption("cors", "allow_methods", "cors_allow_method", texts=_separated),
    LibraryOption("cors", "allow_headers", "cors_allow_header", texts=_separated),
    LibraryOption("cors", "expose_headers", "cors_expose_header", texts=_separated),
    LibraryOption("cors", "allow_credentials", "cors_allow_credentials", texts=as_truth),
    LibraryOption("cors", "max_age", "cors_max_age"),
)


def database_options(section: str) -> tuple[LibraryOption, ...]:
    """The options of oslo.db beside the URL, in the section that a service has for them."""
    return tuple(
        LibraryOption(section, name, reason=reason)
        for reason, names in (
            (_POOL, ("max_pool_size", "max_overflow", "pool_timeout", "min_pool_size")),
            (
                "connections are replaced when they break or have become old",
                ("connection_recycle_time", "idle_timeout"),
            ),
            (
                _REPEATED,
                (
                    *("max_retries", "retry_interval", "use_db_reconnect", "db_retry_interval"),
                    *("db_inc_retry_interval", "db_max_retry_interval", "db_max_retries"),
                ),
            ),
            (
                "every connection must reach the primary, or reads would miss writes",
                ("slave_connection", "asyncio_slave_connection", "synchronous_reader"),
            ),
            ("there is one connection URL", ("asyncio_connection", "backend")),
            ("arguments of the driver are part of the URL, after ?", ("connection_parameters",)),
            (
                "each session of a database is set up by Moorage itself",
                ("mysql_sql_mode", "mysql_wsrep_sync_wait", "sqlite_synchronous"),
            ),
            ("statements are not logged", ("connection_debug", "connection_trace")),
        )
        for name in names
    )


DATABASE: Final = (
    LibraryOption("database", "connection", "database", texts=without_driver),
    *database_options("database"),
)

LIBRARY_OPTIONS: Final = (*LOG, *POLICY, *MIDDLEWARE, *CORS, *DATABASE)
"""All that are read from a configuration file."""
