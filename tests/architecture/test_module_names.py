"""Modules are named with the words of the glossary, and of engineering in general."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

GENERAL = frozenset(
    """
    accept access action addition additional address admin admission affinity aggregate answer api
    app application apply arrival assignment audit auth auto aws backend ban basis batch blazar body
    boot bound buffer build cache calendar call cancel certificate cfn chain change changelog check
    child chunk class cli client clock cloud codec collaborator column command commit comparison
    compile complete compute concurrency condition config configuration connect connection
    constraint content contract conversion convert cookie copy cors count counter counting cpsat cpu
    create credential database date deadline decide delete deliver delivery demo describe
    description
    detector difference digest discovery dispatch ec2 element end engine enter entry enumerate env
    environ equivalence error estimate exchange exclusive expand expansion expiry explain explaining
    export expression extra failure falcon feasibility feature fence field fifo file filter
    fingerprint fit flavor follower format formatter forwarding fragment freshness function gantt
    grant greedy group hang header health heat hint hitting host hot http hypervisor id image impact
    import index instrument isolate judge judgement kernel key keystone kind label launch ledger
    lifecycle limit line list listing load loading location lock log login lookup loop lowering main
    maker map mariadb match measure memory merge message metric microversion middleware model
    monitor
    moorage move name naming native negotiation neutron notification nova number observer obstacle
    occurrence openapi opening openstack operation option order os oslo outcome output overview
    owner page
    paging parameter parser path pattern pause pci peek peer permit place plan plugin pool port
    postgresql precedence prefetch prefilter priority probe problem process profile program
    progress project promise proof property protocol proximity proxy query queue read
    reader reading rebooking record recurrence redecide reentry reference refusal registry remark
    removal rendering repetition
    replacement replay report request requirement resolution response restart restoration result
    retention retry return root round route row rule satisfiable schema scope script sdk secret
    separation serve server service session set setting shape shaping shared sharing shortage sim
    size slot solution solve source spec spread sqlite stack start state statement status step store
    strategy stream struct subscriber survive svg sweeper sync syntax system systemd table target
    telemetry template term test testing text thread threshold tick time timeout timer token trace
    transport trim type upgrade upstream url usecase validation value verify version view warmup
    wait watch web window wire word work write writer wsgi yaml yaql
    """.split()  # noqa: SIM905 - a page of words reads better than a page of quotes
)
"""Nouns and verbs of engineering, and names of products."""

QUALIFIERS = frozenset(
    """
    alone anti before bounded by closed deferred derived earlier earliest early
    effective exhaustive expanded external fast free freed granted hypothetical ideal if in
    kept lapsed largest late leased local max min movable moved next no now outgoing pending
    over partial placed plain preempted presented proved repeated reservable rolling sequential
    settable short simulated single spared standalone standing static stored sufficient taken typed
    unclaimed unknown unplaced virtual watched weighted
    """.split()  # noqa: SIM905 - as above
)
"""Words that qualify a subject: a name has another word beside them."""

SUBJECTLESS = frozenset({"asking", "fact", "form", "instead", "part", "view"})
"""Nouns that say nothing alone: of what?"""

EMPTY = frozenset({"utils", "util", "helpers", "helper", "manager", "misc", "common", "stuff"})


def singular(word: str) -> str:
    """A noun's singular, as far as names need it."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + instead
    if word in {"aws", "cors", "os"}:
        return word
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def glossary(root: Path) -> frozenset[str]:
    """The words of the glossary's terms."""
    text = (root / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    terms = [line for line, after in pairwise(lines) if after.startswith(":   ")]
    unchanged = text.partition("unchanged\n")[2].partition("mean what")[0]
    return frozenset(
        singular(word) for word in re.findall(r"[a-z]+", " ".join([*terms, unchanged.lower()]))
    )


def complaint(name: str, known: frozenset[str]) -> str | None:
    """What is wrong with a module's name; None if nothing is."""
    words = {singular(word) for word in name.split("_") if word}
    if empty := {word for word in name.split("_") if word in EMPTY}:
        return f"{', '.join(sorted(empty))} says nothing of a subject"
    if strange := words - known - GENERAL - QUALIFIERS - SUBJECTLESS:
        return f"{', '.join(sorted(strange))}: neither in the glossary nor a word of engineering"
    if words <= QUALIFIERS - known or (len(words) == 1 and words <= SUBJECTLESS - known):
        return "it names no subject"
    return None


def modules(package: Path) -> list[Path]:
    """Modules and packages; microversions and migrations are called by their numbers."""
    found = [path for path in package.rglob("*.py") if path.name != "__init__.py"]
    found += [path.parent for path in package.rglob("__init__.py") if path.parent != package]
    return sorted(path for path in found if "versions" not in path.parts)


def test_a_module_is_named_with_words_of_the_glossary(root: Path, package: Path) -> None:
    known = glossary(root)
    wrong = {
        str(path.relative_to(package)): said
        for path in modules(package)
        if (said := complaint(path.stem, known)) is not None
    }
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())


@pytest.mark.parametrize("name", ["utils", "lease_helpers", "offspring", "kept", "view", "no_one"])
def test_names_that_say_nothing_are_refused(name: str, root: Path) -> None:
    assert complaint(name, glossary(root)) is not None


@pytest.mark.parametrize("name", ["leases", "freed_capacity", "policy_view", "min_hitting_set"])
def test_names_with_a_subject_are_accepted(name: str, root: Path) -> None:
    assert complaint(name, glossary(root)) is None
