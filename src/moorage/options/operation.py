"""Settings of operation: what is logged and told, and how much one client may ask of the wire."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import Setting, duration, network, one_of, whole

OPERATION: Final = (
    Setting(
        "log_level",
        one_of("debug", "info", "warning", "error"),
        "info",
        "LEVEL",
        "What is logged to standard error: debug, info (a line per request), warning, error.",
    ),
    Setting(
        "log_format",
        one_of("text", "json"),
        "text",
        "FORM",
        "How a line of the log looks: text for people, json (an object per line) for programs.",
    ),
    Setting(
        "metrics_from",
        network,
        ("127.0.0.0/8", "::1/128"),
        "ADDRESS",
        "Addresses or networks that read /metrics without a token, unless a proxy passed the"
        " request on. Everybody else needs a token with role admin or service. May be repeated;"
        " what is given replaces the default.",
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
        "Open connections one worker serves at a time; further ones wait until one is closed. Where"
        " the limit on open files is lower, it counts.",
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
        "How long a client may take to send a request's body; its connection is ended then.",
        show=say_duration,
    ),
)
