"""A few walks of the search for disagreements with the reference, and what the search relies on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fuzz.agreement import Disagreement, agree
from tests.fuzz.differences import DIFFERENCES, name_of
from tests.fuzz.sides import Answer, Call, Reference, ours, send
from tests.fuzz.walk import walk

# Warnings of the reference's own code are not ours to repair.
pytestmark = pytest.mark.filterwarnings("ignore")

DOCUMENTED = Path(__file__).parents[2] / "docs" / "reference" / "placement.md"
SEEDS = range(1, 13)
"""Even ones ask for everything, odd ones mostly for candidates."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    reference = Reference(tmp_path_factory.mktemp("reference"))
    yield reference
    reference.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_finds_no_disagreement(seed: int, reference: Reference) -> None:
    outcome = walk(seed, reference)
    assert not outcome.disagreements, "\n".join(map(str, outcome.disagreements))
    assert outcome.statuses[200] > 10, "a walk that only meets refusals shows nothing"


HOST = "5a3e26ee-ddf1-44e7-9f34-5f0f3a6a3c9e"
LAST = ("", "%0A", "%0A%0A", "%0D", "%09", "%0B", "%1F", "%20", "%C2%85", "%E2%80%A8")
"""Ends of paths: only a single line feed is overlooked."""


def test_what_stands_at_the_end_of_a_path_is_read_alike(reference: Reference) -> None:
    reference.empty()
    host = f"/resource_providers/{HOST}"
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    again = {"resource_provider_generation": 1, "total": 4}
    calls = [
        Call("POST", "/resource_providers", body={"name": "a", "uuid": HOST}),
        Call("PUT", f"{host}/inventories", body=stock),
    ]
    for end in LAST:
        calls += [Call("GET", f"{path}{end}") for path in ("/", "/traits", "/traits/", host)]
        calls += [Call("PUT", f"/traits/CUSTOM_{end}X"), Call("PUT", f"{host}/traits{end}")]
        for name in ("VCPU", "DISK_GB", "NONE"):
            path = f"{host}/inventories/{name}{end}"
            calls += [Call("GET", path), Call("PUT", path, body=again)]
    calls += [Call("DELETE", f"{host}%0A/inventories"), Call("DELETE", f"{host}%0A")]
    with ours() as app:
        for call in calls:
            here, there = send(app, call), send(reference.app, call)
            assert agree(call, here, there) or name_of(Disagreement(call, here, there)), call


@pytest.mark.parametrize("ratio", [1.0, 0.1, 1.1, 1e-9, 3.4e38])
@pytest.mark.parametrize("total", [1, 7, 2**31 - 1])
def test_a_summary_has_the_whole_capacity(ratio: float, total: int, reference: Reference) -> None:
    reference.empty()
    host = f"/resource_providers/{HOST}"
    stock = {"VCPU": {"total": total, "allocation_ratio": ratio}, "DISK_GB": {"total": 9}}
    calls = [
        Call("POST", "/resource_providers", body={"name": "a", "uuid": HOST}),
        Call(
            "PUT",
            f"{host}/inventories",
            body={"resource_provider_generation": 0, "inventories": stock},
        ),
        Call("GET", "/allocation_candidates?resources=DISK_GB:1"),
    ]
    with ours() as app:
        for call in calls:
            here, there = send(app, call), send(reference.app, call)
            assert agree(call, here, there), (here, there)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_documented_by_its_name(name: str) -> None:
    assert f"**{name}" in DOCUMENTED.read_text(encoding="utf-8")


CALL = Call("GET", "/resource_providers")
ANSWER = Answer(200, {"content-type": "application/json", "vary": "x"}, b'{"traits": ["A", "B"]}')


@pytest.mark.parametrize(
    "other",
    [
        replace(ANSWER, status=201),
        replace(ANSWER, headers={**ANSWER.headers, "cache-control": "no-cache"}),
        replace(ANSWER, headers={"content-type": "application/json"}),
        replace(ANSWER, raw=b'{"traits": ["A"]}'),
        replace(ANSWER, raw=b'{"traits": ["A", "B"], "more": 1}'),
    ],
)
def test_answers_that_differ_do_not_agree(other: Answer) -> None:
    assert not agree(CALL, ANSWER, other)
    assert name_of(Disagreement(CALL, other, ANSWER)) is None


def test_order_and_dates_do_not_matter() -> None:
    other = replace(ANSWER, raw=b'{"traits":["B","A"]}')
    assert agree(CALL, ANSWER, other)
    dates = [{**ANSWER.headers, "last-modified": date} for date in ("Mon", "Tue")]
    assert agree(CALL, replace(ANSWER, headers=dates[0]), replace(ANSWER, headers=dates[1]))
