"""Options of openstack-placement's configuration file, and what each is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.options.oslo import LIBRARY_OPTIONS, LibraryOption, database_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
_PATHS: Final = "Moorage names each file by a setting of its own"
_ORDER: Final = (
    "candidates are computed up to the query's `limit`, always in the same order; with more hosts"
    " than Nova's [scheduler] max_placement_results, raise that"
)

OF_PLACEMENT: Final = (
    LibraryOption("api", "auth_strategy", "auth"),
    LibraryOption("DEFAULT", "auth_strategy", "auth"),
    LibraryOption("DEFAULT", "policy_file", "policy_file"),
    LibraryOption("placement", "policy_file", "policy_file"),
    *(
        LibraryOption("DEFAULT", name, reason=_PATHS)
        for name in ("tempdir", "pybasedir", "state_path")
    ),
    LibraryOption(
        "DEFAULT", "config_source", reason="settings are read from files and the environment only"
    ),
    LibraryOption(
        "placement_database",
        "connection",
        reason="Moorage has a database of its own (`database`); import this one with `moorage admin"
        " import placement --from`",
    ),
    *database_options("placement_database"),
    LibraryOption(
        "placement_database", "sync_on_startup", reason="each start upgrades the schema, if need be"
    ),
    LibraryOption("placement", "randomize_allocation_candidates", reason=_ORDER),
    LibraryOption("placement", "max_allocation_candidates", reason=_ORDER),
    LibraryOption("placement", "allocation_candidates_generation_strategy", reason=_ORDER),
    LibraryOption(
        "placement",
        "allocation_conflict_retry_count",
        reason="allocations are tried ten times, as is the default there",
    ),
    *(
        LibraryOption(
            "placement", name, reason=f"allocations that say nothing belong to {_NOBODY}, always"
        )
        for name in ("incomplete_consumer_project_id", "incomplete_consumer_user_id")
    ),
    LibraryOption(
        "workarounds",
        "optimize_for_wide_provider_trees",
        reason="candidates of wide trees are found without it",
    ),
)
"""Options that only openstack-placement has."""

PLACEMENT_OPTIONS: Final[Mapping[tuple[str, str], LibraryOption]] = {
    (one.section, one.name): one for one in (*LIBRARY_OPTIONS, *OF_PLACEMENT)
}
"""All that its configuration file may have, beside the credentials for Keystone."""


def _is_true(text: str) -> bool:
    return text.strip().lower() in {"1", "true", "yes", "on"}


def _is_other_owner(text: str) -> bool:
    return text.strip() != _NOBODY


MATTERS: Final[Mapping[tuple[str, str], Callable[[str], bool]]] = {
    ("placement", "randomize_allocation_candidates"): _is_true,
    ("placement", "incomplete_consumer_project_id"): _is_other_owner,
    ("placement", "incomplete_consumer_user_id"): _is_other_owner,
    ("oslo_middleware", "enable_proxy_headers_parsing"): _is_true,
    ("oslo_policy", "policy_dirs"): bool,
    ("placement_database", "connection"): bool,
}
"""Options without a setting here whose values somebody has to think about."""
