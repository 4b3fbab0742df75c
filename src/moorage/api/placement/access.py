"""Access rules: the reference's rule names and its default checks.

A rule is met or not by the caller's roles, and for `placement:usages` by the project asked
about. Rules are scoped to projects: a request with a system scope meets none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.errors import Forbidden

if TYPE_CHECKING:
    from moorage.http.access_rules import Access
    from moorage.usecases.ports import Caller


Check: TypeAlias = Callable[["Caller", "str | None"], bool]
"""Says whether a caller meets a rule; the second argument is the project asked about."""

USAGES: Final = "placement:usages"
"""The one rule that looks at the project asked about."""

EVERY_OTHER: Final = "*"


@dataclass(frozen=True, slots=True)
class Checks:
    """Access by single checks; `EVERY_OTHER` names the check of all rules not listed."""

    by_rule: Mapping[str, Check]

    def __call__(self, rule: str, caller: Caller, project: str | None) -> bool:
        """See `access_rules.Access`."""
        return self.by_rule.get(rule, self.by_rule[EVERY_OTHER])(caller, project)


def admin_or_service(caller: Caller, project: str | None) -> bool:  # noqa: ARG001 - one signature for all checks
    """The reference's `admin_or_service_api`."""
    return caller.operator


def service_only(caller: Caller, project: str | None) -> bool:  # noqa: ARG001 - one signature for all checks
    """The reference's `service_api`."""
    return "service" in caller.roles


def or_own_reader(caller: Caller, project: str | None) -> bool:
    """The reference's `admin_or_project_reader_or_service_api`."""
    own = "reader" in caller.roles and project is not None and caller.project_id == project
    return caller.operator or own


_OLD: Final = {USAGES: or_own_reader, EVERY_OTHER: admin_or_service}

DEFAULT: Final = Checks(_OLD)
"""The reference's older default rules (`enforce_new_defaults` off)."""

NEW_DEFAULTS: Final = Checks({**_OLD, "placement:reshaper:reshape": service_only})
"""The reference with `enforce_new_defaults`: admins may not reshape."""


def permit(access: Access, rule: str, caller: Caller | None, *, project: str | None) -> None:
    """Check the rule.

    Raises:
        Forbidden: the rule is not met, or the caller's roles are not roles in a project.
    """
    if caller is None or not caller.project_scoped or not access(rule, caller, project):
        raise Forbidden(f"Policy does not allow {rule} to be performed.")
