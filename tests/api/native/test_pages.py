"""Links from one page to the next."""

from urllib.parse import parse_qsl

from moorage.testing.service import Service


def test_links_to_the_next_page_are_encoded(service: Service) -> None:
    name = "a&b =x"
    for _ in range(3):
        service.call("POST", "/ensembles", {"ensemble": {"name": name, "members": []}})
    first = service.call("GET", "/ensembles", query={"name": name, "limit": 2}).json
    (link,) = first["ensembles_links"]
    path, _, query = link["href"].partition("?")
    second = service.call("GET", path.removeprefix("/v1"), query=dict(parse_qsl(query))).json
    assert len(second["ensembles"]) == 1
    assert second["ensembles_links"] == []
