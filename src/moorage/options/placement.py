"""Options of openstack-placement's configuration file, and what each is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.options.kinds import UNLIMITED
from moorage.options.oslo import LIBRARY_OPTIONS, LibraryOption, as_truth, database_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
_PATHS: Final = "Moorage names each file by a setting of its own"


def _most(text: str, _file: Path) -> Sequence[str]:
    """A negative number is no bound; 0 is 1: the reference counts after each candidate."""
    number = int(text)
    return (UNLIMITED if number < 0 else str(max(1, number)),)


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
    LibraryOption(
        "placement",
        "randomize_allocation_candidates",
        "randomize_allocation_candidates",
        texts=as_truth,
    ),
    LibraryOption(
        "placement", "max_allocation_candidates", "max_allocation_candidates", texts=_most
    ),
    LibraryOption(
        "placement",
        "allocation_candidates_generation_strategy",
        "allocation_candidates_generation_strategy",
    ),
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
    ("placement", "incomplete_consumer_project_id"): _is_other_owner,
    ("placement", "incomplete_consumer_user_id"): _is_other_owner,
    ("oslo_middleware", "enable_proxy_headers_parsing"): _is_true,
    ("oslo_policy", "policy_dirs"): bool,
    ("placement_database", "connection"): bool,
}
"""Options without a setting here whose values somebody has to think about."""
