"""Listings: pages that end at a number of things or of bytes, sent in parts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from falcon.testing import TestClient, create_environ

from moorage.api.native import create_app
from moorage.api.native.call import Call
from moorage.api.native.ensembles import ensemble_view
from moorage.api.native.paging import listed
from moorage.client.lookup import replies
from moorage.domain.changes import Changeset, DeleteEnsemble
from moorage.domain.ensembles import Ensemble
from moorage.http.transport.response_writer import StartResponse
from moorage.testing.service import TENANT, Service
from moorage.usecases.paging import Page
from moorage.usecases.shared.access import list_ensembles
from moorage.usecases.shared.limits import Limits

FLEET = ""
LIMITS = Limits(page_bytes=60_000)
FAT = {f"key-{number}": "v" * 1000 for number in range(10)}


def create(service: Service, count: int, **more: object) -> list[str]:
    made = []
    for number in range(count):
        body = {"ensemble": {"name": f"e{number}", **more}}
        made.append(service.call("POST", "/ensembles", body).json["ensemble"]["id"])
    return made


def walked(service: Service, path: str, key: str, **query: object) -> list[list[str]]:
    """The ids of each page, by the links from one to the next."""
    found, asked = [], dict(query)
    while True:
        page = service.call("GET", path, query=asked).json
        found.append([one["id"] for one in page[key]])
        if not page[f"{key}_links"]:
            return found
        asked = dict(parse_qsl(page[f"{key}_links"][0]["href"].partition("?")[2]))


def test_a_page_ends_at_its_bytes_and_links_to_the_next(service: Service) -> None:
    made = create(service, 20, metadata=FAT)
    found = walked(service, "/ensembles", "ensembles")
    assert [one for page in found for one in page] == made
    assert [len(page) for page in found] == [6, 6, 6, 2]
    assert [len(page) for page in walked(service, "/ensembles", "ensembles", limit=5)] == [
        5
    ] * 4 + [0]


def test_one_thing_larger_than_a_page_is_a_page(service: Service) -> None:
    made = create(service, 2, metadata={f"k{n}": "v" * 1000 for n in range(15)})
    service.env = replace(service.env, limits=Limits(page_bytes=1))
    service._client = TestClient(create_app(service.env, clock=service.clock))
    assert walked(service, "/ensembles", "ensembles") == [[made[0]], [made[1]]]


def test_the_client_follows_the_links_and_not_the_size_of_pages(service: Service) -> None:
    made = create(service, 20, metadata=FAT)

    class Reply:
        def __init__(self, body: Any) -> None:
            self.body = body

    def call(method: str, path: str, *, params: dict[str, Any]) -> Any:
        return Reply(service.call(method, path, query=params).json)

    every = list(replies(call, "/ensembles", "ensembles"))
    assert len(every) == 4
    assert [one["id"] for reply in every for one in reply.body["ensembles"]] == made


def test_a_long_page_is_made_while_it_is_sent(service: Service) -> None:
    """Of what is not yet sent nothing is read: what is deleted meanwhile is not listed."""
    made = create(service, 40, metadata={"k": "v" * 1000, **FAT})
    app = create_app(replace(service.env, limits=Limits()), clock=service.clock)
    environ = create_environ("/ensembles", root_path="/v1") | {"moorage.caller": TENANT}
    started = StartResponse()
    parts = iter(app(environ, started))
    first = next(parts)
    assert started.status.startswith("200")
    assert "content-length" not in {name.lower() for name, _ in started.headers}
    assert len(first) < 100_000
    service.store.commit(Changeset(tuple(DeleteEnsemble(one) for one in made[-3:])))
    rest = [*parts]
    text = first + b"".join(rest)
    assert len(rest) > 2
    assert max(map(len, rest)) < 100_000
    assert made[0].encode() in text
    assert all(one.encode() in text for one in made[:-3])
    assert not any(one.encode() in text for one in made[-3:])


def test_what_was_told_last_may_be_deleted_while_the_rest_is_sent(service: Service) -> None:
    made = create(service, 40, metadata={"k": "v" * 1000})
    asked: list[int] = []

    def read(page: Page) -> Sequence[Ensemble]:
        found = list_ensembles(service.env, TENANT, page)
        asked.append(page.limit)
        if len(asked) == 1:
            service.store.commit(Changeset((DeleteEnsemble(found[-1].id),)))
        return found

    call = Call(replace(service.env, limits=Limits()), TENANT, "/v1")
    reply = listed(call, "ensembles", read, partial(ensemble_view, call))
    assert reply.parts is not None
    told = json.loads(b"".join(reply.parts))
    assert [one["id"] for one in told["ensembles"]] == made
    assert told["ensembles_links"] == []
    assert len(asked) > 1
