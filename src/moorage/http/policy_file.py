"""Access rules from an operator's oslo.policy file: one file for every dialect.

The language is oslo.policy's, and oslo.policy judges. Defaults are a dialect's own, written as
check strings, because rules of the file may refer to them by name.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml
from oslo_config import cfg
from oslo_policy import _checks, policy
from requests import RequestException

from moorage.domain.errors import Busy, InvalidDescription
from moorage.http.watched_file import WatchedFile

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from moorage.http.access_rules import Access
    from moorage.usecases.ports import Caller

# It writes a trace for each check it cannot parse; the refusal here says it in a line.
logging.getLogger("oslo_policy._parser").setLevel(logging.CRITICAL)

_log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5
_REMOTE_SECONDS: Final = 5.0
"""For which the server of an `http:` check is waited; a worker's thread waits meanwhile."""
_REFERENCE: Final = re.compile(r"rule:([^\s()]+)")
_NOBODY: Final = re.compile(r"(?<![^\s(])!(?![^\s)])")


def access_from_file(
    path: str,
    base: Access,
    known: Mapping[str, str],
    *,
    about_projects: Collection[str] = frozenset(),
) -> Access:
    """Rules by a policy file over the defaults `known`; `base` judges where it overrides nothing.

    Calling it raises Busy where a check asks another server (`http:`) that does not answer.
    The target of a check is the caller's own project; of the rules `about_projects`, the project
    that is asked about.

    Raises:
        InvalidDescription: the file cannot be read, is no mapping of rules, names a rule that
            does not exist, or has a check that cannot be understood.
    """
    file = WatchedFile(path, lambda found: _read(found, known))
    return _FromFile(file, base, frozenset(about_projects))


@dataclass(frozen=True, slots=True)
class _Overrides:
    """What one version of the file says."""

    touched: frozenset[str]
    """Names whose check, or one it refers to, is another than by default. oslo.policy takes a
    hundred times as long as the defaults' own functions, so it judges these alone."""
    enforcer: policy.Enforcer


@dataclass(frozen=True, slots=True)
class _FromFile:
    """The rules in force now."""

    file: WatchedFile[_Overrides]
    base: Access
    about_projects: frozenset[str]

    def __call__(self, rule: str, caller: Caller, project: str | None) -> bool:
        """Whether the caller passes the rule; `project` is the one that the request is about."""
        overrides = self.file.current()
        if rule not in overrides.touched:
            return self.base(rule, caller, project)
        asked = project if rule in self.about_projects else caller.project_id
        target = {"project_id": asked, "user_id": caller.user_id}
        try:
            return bool(overrides.enforcer.enforce(rule, target, _credentials(caller)))
        except (RequestException, RuntimeError) as error:
            # What an `http:` check raises: it reaches nobody, or lacks its certificates.
            _log.warning("rule %s of the policy file cannot be judged: %s", rule, error)
            raise Busy(
                "the access rules cannot be judged now", retry_after=_RETRY_SECONDS
            ) from error


def _credentials(caller: Caller) -> dict[str, Any]:
    return {
        "user_id": caller.user_id,
        "project_id": caller.project_id,
        "roles": sorted(caller.roles),
        "is_admin_project": True,
    }


def _read(path: Path, known: Mapping[str, str]) -> _Overrides:
    given = _mapping(path)
    prefixes = {name.partition(":")[0] for name in known if ":" in name}
    aliases = set(_REFERENCE.findall(" ".join(given.values())))
    for name in given:
        prefix, colon, _ = name.partition(":")
        if colon and name not in known and (prefix in prefixes or name not in aliases):
            raise InvalidDescription(f"policy file {path}: there is no rule {name}", path=name)
    rules = policy.Rules.from_dict({**known, **given})
    for name, check in given.items():
        if _refusals(rules[name]) != len(_NOBODY.findall(check)):
            raise InvalidDescription(
                f"policy file {path}: rule {name} cannot be understood: {check!r}", path=name
            )
    conf = cfg.ConfigOpts()
    conf([], project="moorage", default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf, use_conf=False)
    conf.set_override("remote_timeout", _REMOTE_SECONDS, group="oslo_policy")
    enforcer.set_rules(rules, overwrite=True, use_conf=False)
    lost = [
        name
        for name, check in rules.items()
        if enforcer._undefined_check(check) or enforcer._cycle_check(check)  # noqa: SLF001 - the public check_rules does not tell the names
    ]
    if lost:
        names = ", ".join(lost)
        raise InvalidDescription(
            f"policy file {path}: rules that refer to an unknown rule or to themselves: {names}"
        )
    return _Overrides(_touched(known, given), enforcer)


def _touched(known: Mapping[str, str], given: Mapping[str, str]) -> frozenset[str]:
    checks = {**known, **given}
    touched = {name for name, check in given.items() if known.get(name) != check}
    while True:
        more = {
            name
            for name, check in checks.items()
            if name not in touched and touched & set(_REFERENCE.findall(check))
        }
        if not more:
            return frozenset(touched)
        touched |= more


def _mapping(path: Path) -> dict[str, str]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, LookupError) as error:
        raise InvalidDescription(f"policy file {path} is no YAML: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidDescription(f"policy file {path} is no mapping of rules to checks")
    for name, check in found.items():
        if not (isinstance(name, str) and isinstance(check, str)):
            raise InvalidDescription(
                f"policy file {path}: rule {name} must be a text such as role:admin", path=str(name)
            )
    return found


def _refusals(check: Any) -> int:  # noqa: ANN401 - oslo.policy's tree
    """How many leaves deny always: oslo.policy turns what it cannot parse into one of them."""
    if isinstance(check, _checks.FalseCheck):
        return 1
    if isinstance(check, _checks.NotCheck):
        return _refusals(check.rule)
    return sum(_refusals(one) for one in getattr(check, "rules", ()))
