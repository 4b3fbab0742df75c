"""`sort_key` and `sort_dir` of listings, page by page."""

from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.api.native.paging import SORT_KEYS
from moorage.testing.service import Service


@pytest.fixture
def named(service: Service) -> Service:
    for name in ("shop", "api", "db", "api"):
        body = {"ensemble": {"name": name}}
        made = service.call("POST", "/ensembles", body)
        if made.status_code == 409:
            body = {"ensemble": {"name": f"{name}-2"}}
            made = service.call("POST", "/ensembles", body)
        assert made.status_code == 201, made.json
    return service


def walked(service: Service, noun: str, **query: Any) -> list[dict[str, Any]]:
    """Every item, two at a time."""
    found: list[dict[str, Any]] = []
    path = f"/{noun}?" + "&".join(f"{key}={value}" for key, value in query.items()) + "&limit=2"
    while True:
        page = service.call("GET", path).json
        found += page[noun]
        if not page[f"{noun}_links"]:
            return found
        path = page[f"{noun}_links"][0]["href"].removeprefix("/v1")


@pytest.mark.parametrize("way", ["asc", "desc"])
def test_ensembles_are_sorted_by_name_over_all_pages(named: Service, way: str) -> None:
    names = [one["name"] for one in walked(named, "ensembles", sort_key="name", sort_dir=way)]
    assert names == sorted(["shop", "api", "db", "api-2"], reverse=way == "desc")


def test_equal_ones_are_by_creation_whichever_way(named: Service) -> None:
    created = [one["name"] for one in walked(named, "ensembles")]
    for way in ("asc", "desc"):
        query = {"sort_key": "project_id", "sort_dir": way}
        assert [one["name"] for one in walked(named, "ensembles", **query)] == created
    newest = walked(named, "ensembles", sort_key="created_at", sort_dir="desc")
    assert [one["name"] for one in newest] == created[::-1]


@pytest.mark.parametrize("noun", SORT_KEYS)
def test_every_key_of_every_listing_is_understood(service: Service, noun: str) -> None:
    for key in SORT_KEYS[noun]:
        for way in ("asc", "desc"):
            query = {"sort_key": key, "sort_dir": way}
            answer = service.call("GET", f"/{noun}", query=query)
            assert answer.status_code == 200, answer.json


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"sort_key": "nmae"}, "sort_key is one of name, created_at, project_id, not 'nmae'"),
        ({"sort_key": "name", "sort_dir": "up"}, "sort_dir is asc or desc"),
        ({"sort_dir": "desc"}, "sort_dir needs a sort_key"),
    ],
)
def test_a_wrong_order_is_refused(service: Service, query: dict[str, str], told: str) -> None:
    error = refused(service.call("GET", "/ensembles", query=query), 400, "invalid_description")
    assert error["detail"].startswith(told)
    other = service.call("GET", "/shares", query={"sort_key": "name"})
    assert refused(other, 400, "invalid_description")["path"] == "sort_key"
