"""Access rules from a file: the reference's language, names and defaults; clear refusals."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from placement import policies

from moorage.api.placement.access import DEFAULT, NEW_DEFAULTS
from moorage.api.placement.rules import RULES, access_by, defaults
from moorage.domain.errors import InvalidDescription
from moorage.http import watched_file
from moorage.http.access_rules import RulesConfig
from moorage.usecases.ports import Caller

RESHAPE = "placement:reshaper:reshape"
LIST = "placement:resource_providers:list"
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return str(path)

    return write


def caller(*roles: str, project: str = "mine") -> Caller:
    return Caller("someone", project, frozenset(roles))


def test_the_rules_and_their_defaults_are_the_references() -> None:
    theirs = {rule.name: rule for rule in policies.list_rules()}
    ours = defaults(new=True)
    assert {name: rule.check_str for name, rule in theirs.items()} == ours
    once_admin = {name for name, rule in theirs.items() if rule.deprecated_rule}
    old = defaults(new=False)
    assert {name for name in ours if ours[name] != old[name]} == once_admin


@pytest.mark.parametrize("new", [False, True])
def test_the_quick_checks_say_what_oslo_policy_says(write: Write, *, new: bool) -> None:
    # The same checks in other words make oslo.policy judge every rule.
    known = defaults(new=new)
    text = "".join(f'"{name}": "({check})"\n' for name, check in known.items())
    judged: Any = access_by(RulesConfig(write(text), new_defaults=new), {})
    assert judged.file.current().touched == set(known)
    quick = access_by(RulesConfig(None, new_defaults=new), {})
    assert quick is (NEW_DEFAULTS if new else DEFAULT)
    words = ("admin", "service", "reader", "member")
    some = itertools.chain.from_iterable(itertools.combinations(words, n) for n in range(5))
    for roles, rule, asked in itertools.product(some, RULES, ("mine", "yours", None)):
        who = caller(*roles)
        assert judged(rule, who, asked) == quick(rule, who, asked), (roles, rule, asked)


def test_a_file_opens_and_closes_single_rules(write: Write) -> None:
    access = access_by(
        RulesConfig(
            write(f'"{LIST}": "role:auditor or rule:mates"\nmates: role:mate\n"{RESHAPE}": "!"\n')
        ),
        {},
    )
    assert access(LIST, caller("auditor"), None)
    assert access(LIST, caller("mate"), None)
    assert not access(LIST, caller("admin"), None)
    assert not access(RESHAPE, caller("admin", "service"), None)
    assert access("placement:traits:list", caller("admin"), None)


def test_a_project_in_a_rule_is_the_one_asked_about_or_the_callers(write: Write) -> None:
    own = '"project_id:%(project_id)s"'
    access = access_by(RulesConfig(write(f'"{LIST}": {own}\n"placement:usages": {own}\n')), {})
    assert access(LIST, caller(), "yours")
    assert not access("placement:usages", caller(), "yours")
    assert access("placement:usages", caller(), "mine")


def test_the_open_profile(write: Write) -> None:
    text = "".join(f'"{rule}": "@"\n' for rule in RULES)
    access = access_by(RulesConfig(write(text)), {})
    assert all(access(rule, caller(), None) for rule in RULES)


def test_only_what_a_file_changes_is_judged_by_oslo_policy(write: Write) -> None:
    access: Any = access_by(RulesConfig(write("service_api: role:robot\n")), {})
    assert access.file.current().touched == {"service_api", RESHAPE}
    assert access(RESHAPE, caller("robot"), None)
    assert not access(RESHAPE, caller("admin"), None)


@pytest.mark.parametrize("text", ["", "# nothing\n", f"{RESHAPE}: rule:service_api\n"])
def test_a_file_that_changes_nothing_costs_nothing(write: Write, text: str) -> None:
    access: Any = access_by(RulesConfig(write(text)), {})
    assert not access.file.current().touched
    assert access(RESHAPE, caller("admin"), None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [b", "is no YAML"),
        ("a: 2026-13-45", "is no YAML"),
        ("- a\n- b\n", "is no mapping of rules"),
        (f"{LIST}:\n", f"rule {LIST} must be a text"),
        (f"{LIST}: [role:admin]\n", "must be a text"),
        ("placement:resource_provider:list: role:x\n", "no rule placement:resource_provider:list"),
        (f"{LIST}: role:admin or\n", f"rule {LIST} cannot be understood"),
        (f"{LIST}: role:admin or nobody\n", "cannot be understood"),
        (f"{LIST}: rule:nowhere\n", f"unknown rule or to themselves: {LIST}"),
        ("a: rule:b\nb: rule:a\n", "to themselves: a, b"),
    ],
)
def test_a_broken_file_is_refused_and_says_why(write: Write, text: str, problem: str) -> None:
    with pytest.raises(InvalidDescription, match=r"policy file .*policy\.yaml") as caught:
        access_by(RulesConfig(write(text)), {})
    assert problem in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match=r"cannot read .*nowhere"):
        access_by(RulesConfig(str(tmp_path / "nowhere")), {})


def test_a_changed_file_is_in_force_at_once_and_a_broken_one_never(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(time, "monotonic", itertools.count(step=watched_file.LOOK_SECONDS).__next__)
    path = write("")
    access = access_by(RulesConfig(path), {})
    assert not access(LIST, caller("mate"), None)
    write(f"{LIST}: role:mate\n")
    assert access(LIST, caller("mate"), None)
    write(f"{LIST}: rule:nowhere\n")
    assert access(LIST, caller("mate"), None)
    assert "the previous content stays in force" in caplog.text
    Path(path).unlink()
    assert access(LIST, caller("mate"), None)
    write("# nothing\n")
    assert not access(LIST, caller("mate"), None)
