"""Links from one page to the next."""

from typing import Any
from urllib.parse import parse_qsl

from moorage.testing.service import OTHER, Service
from moorage.usecases.ports import Caller


def test_links_to_the_next_page_are_encoded(service: Service) -> None:
    odd = Caller("ann", "a&b =x", frozenset({"admin"}))
    for name in "abc":
        service.call("POST", "/ensembles", {"ensemble": {"name": name}}, caller=odd)
    asked = {"project_id": odd.project_id, "limit": 2}
    first = service.call("GET", "/ensembles", query=asked, caller=odd).json
    (link,) = first["ensembles_links"]
    path, _, query = link["href"].partition("?")
    asked = dict(parse_qsl(query))
    second = service.call("GET", path.removeprefix("/v1"), query=asked, caller=odd).json
    assert len(second["ensembles"]) == 1
    assert second["ensembles_links"] == []


def test_a_marker_of_another_project_is_as_unknown_as_none(
    service: Service, held: dict[str, Any]
) -> None:
    for noun, marker in (
        ("ensembles", held["ensemble"]["id"]),
        ("decisions", held["decision"]["id"]),
    ):
        for query in ({"marker": marker}, {"marker": "11111111-2222-4333-8444-555555555555"}):
            refused = service.call("GET", f"/{noun}", caller=OTHER, query=query)
            assert (refused.status_code, refused.json["errors"][0]["code"]) == (
                404,
                "ensemble.not_found",
            )
        assert service.call("GET", f"/{noun}", query={"marker": marker}).json[noun] == []


def test_head_is_get_without_the_body(service: Service, held: dict[str, Any]) -> None:
    path = f"/ensembles/{held['ensemble']['id']}"
    get, head = service.call("GET", path), service.call("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(get.headers)
    assert int(head.headers["content-length"]) == len(get.content)
    assert (
        service.call("HEAD", "/ensembles/11111111-2222-4333-8444-555555555555").status_code == 404
    )
    assert service.call("HEAD", f"{path}/nothing").status_code == 404
    refused = service.call("POST", path)
    assert refused.headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert service.call("HEAD", "/hot").headers["allow"] == "POST"
