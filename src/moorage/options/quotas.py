"""Settings of quotas: the limits of projects without their own."""

from __future__ import annotations

from typing import Final

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.period import say_duration
from moorage.options.kinds import (
    UNLIMITED,
    Setting,
    duration,
    longest,
    most,
    show_longest,
    show_most,
    show_size,
    size,
    whole,
)

QUOTAS: Final = (
    Setting(
        "quota_lease_units",
        most,
        UNLIMITED,
        "N",
        "Places that the leases of one project may have at one instant. This and the following"
        " limits are defaults: a project's own quota takes precedence. unlimited: any number.",
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
        "How long a new request waits at most while entries of the waitlist are tried before it;"
        " entries not tried by then are passed over.",
        show=say_duration,
    ),
    Setting(
        "quota_leases",
        most,
        "10000",
        "N",
        "Leases of one project that have not ended.",
        show=show_most,
    ),
    Setting(
        "quota_series",
        most,
        "1000",
        "N",
        "Series of one project with a lease that has not ended.",
        show=show_most,
    ),
    Setting(
        "quota_offers",
        most,
        "10",
        "N",
        "Offers that one project may hold at once; their places count as held ones.",
        show=show_most,
    ),
    Setting(
        "quota_ensembles",
        most,
        "10000",
        "N",
        "Ensembles of one project, without those of its leases and offers.",
        show=show_most,
    ),
    Setting(
        "quota_templates",
        most,
        "1000",
        "N",
        "Templates of one project; each version of one counts.",
        show=show_most,
    ),
    Setting(
        "quota_shares_given",
        most,
        "200",
        "N",
        "Roles of one project's ensembles that are offered to other projects.",
        show=show_most,
    ),
    Setting(
        "quota_shares_received",
        most,
        "1000",
        "N",
        "Roles offered to one project that it has neither accepted nor revoked.",
        show=show_most,
    ),
    Setting(
        "ensemble_members",
        whole(1, MAX_MEMBERS),
        str(MAX_MEMBERS),
        "N",
        "Members of one ensemble.",
    ),
    Setting("ensemble_roles", whole(1, 1_000), "1000", "N", "Roles of one ensemble."),
    Setting("ensemble_policies", whole(1, 1_000), "1000", "N", "Policies of one ensemble."),
    Setting(
        "ensemble_bytes",
        size,
        "1M",
        "SIZE",
        "The description of one ensemble as it is stored: its roles, policies and metadata; and one"
        " version of a template.",
        show=show_size,
    ),
    Setting(
        "metadata_bytes",
        size,
        "16K",
        "SIZE",
        "All keys and values of one ensemble's metadata, of which there are 128 at most.",
        show=show_size,
    ),
    Setting(
        "quota_lease_priority",
        whole(0, 1_000),
        "0",
        "N",
        "The highest priority that a project's leases and preemptible ensembles may have. Callers"
        " who meet the access rule moorage:leases:priority may use any.",
    ),
)
