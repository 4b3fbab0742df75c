"""Errors as messages and exit statuses.

Statuses: 0 done, 2 usage or configuration, 3 infeasible, 4 conflict or stale, 5 quota or forbidden,
6 not found, 1 otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import CONFLICT, FAILED, FORBIDDEN, INFEASIBLE, NOT_FOUND, USAGE
from moorage.cli.parser import WrongUsage
from moorage.client import errors
from moorage.domain import errors as domain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (errors.Infeasible, INFEASIBLE),
    (errors.Contradiction, INFEASIBLE),
    (domain.Contradiction, INFEASIBLE),
    (errors.Conflict, CONFLICT),
    (domain.Conflict, CONFLICT),
    (errors.Forbidden, FORBIDDEN),
    (errors.NotFound, NOT_FOUND),
    (errors.Missing, NOT_FOUND),
    (errors.LoginRefused, FORBIDDEN),
    (domain.BadConfiguration, USAGE),
    (WrongUsage, USAGE),
    (ModuleNotFoundError, USAGE),
)


_NOTHING_THERE: Final = (
    "to try Moorage: moorage sim start --fleet three-racks.yaml; for a cloud set OS_CLOUD, for"
    " another server MOORAGE_ENDPOINT"
)
"""What to do if nothing listens where `moorage serve` does by default."""


def exit_status(error: Exception) -> int:
    """The process's exit status for an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), FAILED)


def sentence(error: Exception) -> str:
    """The message on one line (an infeasible answer: two)."""
    if isinstance(error, errors.Infeasible | errors.Undecided) and error.explanation:
        return _infeasible(error)
    for kind, said in _SENTENCES:
        if isinstance(error, kind):
            return said(error)
    return error.message if isinstance(error, domain.MoorageError) else _unexpected(error)


def _unreachable(error: errors.Unreachable) -> str:
    from moorage.client.discovery import DEFAULT_ENDPOINT

    default = error.endpoint == DEFAULT_ENDPOINT
    return f"{error.message}; {_NOTHING_THERE}" if default else error.message


def _quota(error: errors.QuotaExceeded) -> str:
    lines = [f"{error.status} quota_exceeded {error.detail}"]
    told = "; or ".join(error.error.get("remedies") or ())
    if told:
        lines.append(f"what to do: {told}")
    explanation = error.error.get("explanation") or {}
    if explanation.get("links"):
        lines.append(f"explanation {explanation['id']}")
    return "\n".join(lines)


def _infeasible(error: errors.Infeasible | errors.Undecided) -> str:
    if isinstance(error, errors.SeriesInfeasible):
        from moorage.cli.series_text import refused

        return refused(error)

    from moorage.cli.explanation_text import explained

    return "\n".join([explained(error.explanation), *_kept(error)])


def _kept(error: errors.Infeasible | errors.Undecided) -> list[str]:
    """The id of the stored explanation; empty after a dry run."""
    if not error.explanation.get("links"):
        return []
    id_ = error.explanation["id"]
    follows = f"   more follows: moorage explanation show {id_} --wait"
    return [f"explanation {id_}{follows if error.explanation.get('pending') else ''}"]


def body(error: Exception) -> object:
    """The error for `-f json`: the API's own document if there is one."""
    if isinstance(error, errors.ApiError) and error.body is not None:
        return error.body
    return {"errors": [{"title": type(error).__name__, "detail": sentence(error)}]}


def _refusal(error: errors.ApiError) -> str:
    line = error.error.get("line")
    path = str(error.error.get("path") or "")
    file = str(error.error.get("file") or "")
    parts = [file, f"line {line}" if line else "", "" if path in error.detail else path]
    where = ", ".join(part for part in parts if part)
    place = f"{where}: " if where else ""
    name = f"{error.status} {error.code}: " if error.code else f"{error.status} "
    request = f" ({error.request_id})" if error.request_id else ""
    said = f"{name}{place}{error.detail}{request}"
    return f"{said}\n{_remedies(error)}" if isinstance(error, errors.NameTaken) else said


def _remedies(error: errors.NameTaken) -> str:
    which = error.existing
    return (
        f"change it: moorage ensemble set {which} ...   delete it: moorage ensemble delete {which}"
        "   another name: --name"
    )


_TELLING: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
_HARMLESS: Final = frozenset({"ignored", "narrower"})


def _mismatch(error: errors.DescriptionMismatch) -> str:
    """The differences that matter, vCPUs first."""
    telling = [item for item in error.diff if item.get("effect") not in _HARMLESS]
    telling.sort(key=lambda item: _rank(str(item.get("path"))))
    differences = ", ".join(_difference(item) for item in telling) or error.detail
    said = f"{error.status} {error.code}: {differences}"
    remedies = ", ".join(remedy.split("_")[0] for remedy in error.remedies)
    return f"{said}   remedies: {remedies}" if remedies else said


def _rank(path: str) -> tuple[int, str]:
    name = path.rpartition(".")[2]
    return (_TELLING.index(name) if name in _TELLING else len(_TELLING), path)


def _difference(item: Mapping[str, Any]) -> str:
    return (
        f"{item.get('path')} described {item.get('described')}"
        f" requested {item.get('requested')} ({item.get('effect', 'differs')})"
    )


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"the package of {error.name} is not installed: what runs the service needs the extras"
            " moorage[server,solver]"
        )
    return f"{type(error).__name__}: {error} (repeat with moorage --debug for the traceback)"


def _placed(error: domain.InvalidDescription) -> str:
    if isinstance(error, domain.Contradiction):
        return f"infeasible [static]  {error.message}"
    place = ", ".join(
        part for part in (f"line {error.line}" if error.line else "", error.path or "") if part
    )
    file = getattr(error, "file", None)
    return ": ".join(part for part in (file, place, error.message) if part)


_SENTENCES: Final[tuple[tuple[type[Exception], Callable[[Any], str]], ...]] = (
    (errors.DescriptionMismatch, _mismatch),
    (errors.QuotaExceeded, _quota),
    (errors.ApiError, _refusal),
    (errors.Unreachable, _unreachable),
    (domain.InvalidDescription, _placed),
)
"""Kinds of errors with a sentence of their own; the first that fits counts."""
