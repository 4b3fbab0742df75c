"""Settings of quotas: what a project may lease where its operator has said nothing of it."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import (
    UNLIMITED,
    Setting,
    duration,
    longest,
    most,
    show_longest,
    show_most,
    whole,
)

QUOTAS: Final = (
    Setting(
        "quota_lease_units",
        most,
        UNLIMITED,
        "N",
        "Places that the leases of one project may have at one instant, unless its quota says"
        " otherwise; so with those below. unlimited: any number.",
        show=show_most,
    ),
    Setting(
        "quota_lease_unit_hours",
        most,
        UNLIMITED,
        "N",
        "Places times hours of all leases of one project that a window of `quota_window` touches.",
        show=show_most,
    ),
    Setting(
        "quota_window",
        duration,
        "30d",
        "DURATION",
        "The sliding window in which unit-hours are counted.",
        show=say_duration,
    ),
    Setting(
        "quota_lease_horizon",
        longest,
        UNLIMITED,
        "DURATION",
        "How far ahead a project's lease may end; `lease_horizon` holds for all in any case.",
        show=show_longest,
    ),
    Setting(
        "quota_lease_max_length",
        longest,
        UNLIMITED,
        "DURATION",
        "A project's longest lease; `longest_lease` holds for all in any case.",
        show=show_longest,
    ),
    Setting(
        "waitlist_entries",
        whole(0, 100_000),
        "100",
        "N",
        "Leases of one project that may wait for capacity or quota at once; 0: none may.",
    ),
    Setting(
        "waitlist_time",
        duration,
        "5s",
        "DURATION",
        "How long somebody who asks for a lease waits while those before it in the waitlist have"
        " their turn; when it has passed, those not looked at are passed over.",
        show=say_duration,
    ),
    Setting(
        "quota_leases",
        most,
        UNLIMITED,
        "N",
        "Leases of one project that have not ended.",
        show=show_most,
    ),
    Setting(
        "quota_lease_priority",
        whole(0, 1_000),
        "0",
        "N",
        "The highest priority that a project's leases and preemptible ensembles may have. Whoever"
        " meets the access rule moorage:leases:priority may ask for any.",
    ),
)
