"""Settings of operation: logs, metrics, traces, and limits per client."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import (
    AUTO,
    UNLIMITED,
    Setting,
    duration,
    most,
    network,
    number_or_auto,
    one_of,
    show_most,
    show_number_or_auto,
    show_size,
    show_truth,
    size,
    truth,
    whole,
)

OPERATION: Final = (
    Setting(
        "log_level",
        one_of("debug", "info", "warning", "error"),
        "info",
        "LEVEL",
        "What is logged: debug, info (a line per request), warning, error.",
    ),
    Setting(
        "debug",
        truth,
        "false",
        "BOOL",
        "Log everything: the same as log_level debug, whatever that is.",
        show=show_truth,
    ),
    Setting(
        "log_file",
        str,
        "",
        "FILE",
        "Log to this file, relative to `log_dir`, in place of standard error. It is opened again"
        " after logrotate has moved it.",
    ),
    Setting(
        "log_dir",
        str,
        "",
        "DIRECTORY",
        "The directory of `log_file`; without log_file the log is moorage.log there.",
    ),
    Setting(
        "use_stderr",
        truth,
        "false",
        "BOOL",
        "Log to standard error beside the log file. Without a file the log goes there anyway.",
        show=show_truth,
    ),
    Setting(
        "log_format",
        one_of("text", "json"),
        "text",
        "FORM",
        "Format of the log: text, or json (an object per line).",
    ),
    Setting(
        "metrics_from",
        network,
        ("127.0.0.0/8", "::1/128"),
        "ADDRESS",
        "Addresses or networks that read /metrics without a token, unless a proxy forwarded the"
        " request. Others need a token with role admin or service. May be repeated; values"
        " replace the default.",
        multi=True,
    ),
    Setting(
        "traces",
        one_of("off", "otlp"),
        "off",
        "WHERE",
        "Where OpenTelemetry traces go: otlp sends them as the OTEL_ variables of the environment"
        " say. Needs the extra moorage[otel].",
    ),
    Setting(
        "connections",
        whole(1, 1_000_000),
        "16384",
        "N",
        "Open connections of one worker; if all are taken, the one idle for longest is closed for a"
        " new one. A lower limit on open files takes precedence.",
    ),
    Setting(
        "idle_timeout",
        duration,
        "30s",
        "DURATION",
        "How long a client may take to send a request's head, or keep a connection without one, or"
        " take nothing of an answer.",
        show=say_duration,
    ),
    Setting(
        "body_timeout",
        duration,
        "1m",
        "DURATION",
        "How long a client may take to send a request's body; then its connection is closed.",
        show=say_duration,
    ),
    Setting(
        "arriving_limit",
        size,
        "128M",
        "SIZE",
        "Memory of one worker for request bodies that are not complete yet. Beyond it the largest"
        " bodies that have stalled longest are refused with 503. At least twice body_limit.",
        show=show_size,
    ),
    Setting(
        "unsent_limit",
        size,
        "256M",
        "SIZE",
        "Memory of one worker for answers that clients have not read yet. Beyond it the"
        " connections with the largest answers that have stalled longest are closed. It must exceed"
        " the longest answers that are read at the same time.",
        show=show_size,
    ),
    Setting(
        "address_connections",
        most,
        UNLIMITED,
        "N",
        "Open connections one client address may have to one worker; more are closed at once."
        " Addresses of trusted_proxies have no such limit.",
        show=show_most,
    ),
    Setting(
        "page_bytes",
        size,
        "4M",
        "SIZE",
        "Bytes of things after which a page of a listing ends, whatever number was asked for.",
        show=show_size,
    ),
    Setting(
        "requests_per_project",
        number_or_auto,
        AUTO,
        "N",
        "Requests of one project that one worker has in progress at once; more are refused with"
        " 429. Callers with role admin or service are not counted. auto: three quarters of"
        " `threads`.",
        show=show_number_or_auto,
    ),
    Setting(
        "requests_per_address",
        most,
        UNLIMITED,
        "N",
        "Requests from one client address that one worker has in progress at once, of all callers;"
        " more are refused with 429. Addresses of trusted_proxies have no such limit.",
        show=show_most,
    ),
    Setting(
        "worker_timeout",
        duration,
        "30s",
        "DURATION",
        "How long an HTTP worker, planner or solver process may be unresponsive before it is"
        " killed and replaced. Processes that are starting are exempt.",
        show=say_duration,
    ),
)
