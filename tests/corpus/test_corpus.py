"""Every story's answers are as recorded, and every route of every dialect has its stories."""

import pytest
from tests.corpus.comparison import differences, recorded
from tests.corpus.coverage import NEVER_FAIL, reached, routes
from tests.corpus.play import play
from tests.corpus.story import ALL, names, read

from moorage.api.native.routes import ROUTES

ANEW = "record anew with `python -m tests.corpus --write STORY` if that is meant"


@pytest.mark.parametrize("name", names())
def test_answers_are_as_recorded(name: str) -> None:
    told = list(differences(recorded(name), play(read(name))))
    assert not told, f"{len(told)} differ; {ANEW}\n" + "\n".join(told[:3])


def test_every_route_succeeds_and_is_refused_somewhere() -> None:
    found = reached()
    never = sorted(one for one in routes() if not found[one].succeeded)
    always = sorted(one for one in routes() if not found[one].refused and one not in NEVER_FAIL)
    assert (never, always) == ([], [])


def test_every_dry_run_is_recorded() -> None:
    found = reached()
    mutating = [f"{one.method} /v1{one.path}" for one in ROUTES if one.mutates]
    assert [one for one in mutating if not found[one].dry_runs] == []


@pytest.mark.parametrize(
    "route",
    [
        "GET /placement/",
        "GET /placement/resource_providers",
        "GET /placement/allocation_candidates",
        "PUT /placement/allocations/{consumer_uuid}",
        "GET /placement/usages",
    ],
)
def test_main_operations_are_recorded_in_every_microversion(route: str) -> None:
    assert set(ALL) <= reached()[route].versions


def test_no_story_is_without_record() -> None:
    assert [one for one in names() if not recorded(one)] == []
