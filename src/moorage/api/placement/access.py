"""Who may do what: the reference's rule names and its default checks.

A rule is met or not by the caller's roles, and for `placement:usages` by the project asked
about. Rules are scoped to projects: a request with a system scope meets none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.errors import Forbidden

if TYPE_CHECKING:
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class RulesConfig:
    """Which rules are in force."""

    file: str | None = None
    """A policy file of oslo.policy, or None for the defaults."""
    new_defaults: bool = False
    """The reference's `enforce_new_defaults`."""


Check: TypeAlias = Callable[["Caller", "str | None"], bool]
"""Says whether a caller meets a rule; the second argument is the project asked about."""

Access: TypeAlias = Mapping[str, Check]
"""Checks of single rules; `EVERY_OTHER` names the check of all rules not listed."""

EVERY_OTHER: Final = "*"


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


def anyone(caller: Caller, project: str | None) -> bool:  # noqa: ARG001 - one signature for all checks
    """Whoever has a token."""
    return True


DEFAULT: Final[Access] = {"placement:usages": or_own_reader, EVERY_OTHER: admin_or_service}
"""What the reference does out of the box (`enforce_new_defaults` off)."""

NEW_DEFAULTS: Final[Access] = {**DEFAULT, "placement:reshaper:reshape": service_only}
"""The reference with `enforce_new_defaults`: admins may not reshape."""

OPEN: Final[Access] = {EVERY_OTHER: anyone}
"""Every rule set to `@`, as a policy file may."""


def permit(access: Access, rule: str, caller: Caller | None, *, project: str | None) -> None:
    """Let the caller pass, or not. A caller without a project scope is None.

    Raises:
        Forbidden: the rule is not met.
    """
    check = access.get(rule, access[EVERY_OTHER])
    if caller is None or not check(caller, project):
        raise Forbidden(f"Policy does not allow {rule} to be performed.")
