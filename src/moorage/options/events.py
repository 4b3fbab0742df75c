"""Settings of events: retention and delivery."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import Setting, duration, one_of, whole

EVENTS: Final = (
    Setting(
        "events_kept_for",
        duration,
        "30d",
        "DURATION",
        "How long events are kept. A reader who is further behind is answered that some are lost.",
        show=say_duration,
    ),
    Setting(
        "events_kept",
        whole(1_000, 100_000_000),
        "100000",
        "N",
        "How many events of each project are kept: the newest. None pushes out another's.",
    ),
    Setting(
        "subscriptions",
        whole(0, 10_000),
        "100",
        "N",
        "Subscriptions that a project may have.",
    ),
    Setting(
        "subscription_targets",
        one_of("auto", "public", "any"),
        "auto",
        "WHICH",
        "Addresses that events are delivered to: public ones, or any, including the service's own"
        " networks. auto: any if auth is noauth2 on a loopback address, else public.",
    ),
    Setting(
        "deliveries",
        whole(1, 256),
        "16",
        "N",
        "Concurrent deliveries of one worker, at most half of them to targets that fail.",
    ),
    Setting(
        "deliveries_per_project",
        whole(1, 256),
        "4",
        "N",
        "How many of these may be to one project's targets, however many events it has.",
    ),
    Setting(
        "delivery_timeout",
        duration,
        "5s",
        "DURATION",
        "How long one delivery may take; one that takes longer has failed, and is tried again.",
        show=say_duration,
    ),
    Setting(
        "delivery_patience",
        duration,
        "1d",
        "DURATION",
        "How long an event is tried before it is given up and kept as a dead letter.",
        show=say_duration,
    ),
    Setting(
        "delivery_longest_wait",
        duration,
        "1h",
        "DURATION",
        "The longest wait between two attempts; it doubles from 5s on.",
        show=say_duration,
    ),
    Setting(
        "dead_letters_kept",
        whole(1, 100_000),
        "1000",
        "N",
        "Dead letters kept for one subscription: the newest.",
    ),
    Setting(
        "host_settle_time",
        duration,
        "10s",
        "DURATION",
        "How long a host must be in service again until the violations that it began have ended: a"
        " host that flaps makes one event.",
        show=say_duration,
    ),
    Setting(
        "compliance_sweep",
        duration,
        "1h",
        "DURATION",
        "The interval between two judgements of all ensembles. They find only what went unnoticed,"
        " which is logged as a fault.",
        show=say_duration,
    ),
    Setting(
        "threshold_interval",
        duration,
        "10s",
        "DURATION",
        "The shortest interval between two evaluations of the thresholds of subscriptions.",
        show=say_duration,
    ),
)
