"""What a proxy says is believed from named addresses only, and only if it makes sense."""

from typing import Any

import pytest

from moorage.http.proxy_headers import PREFIX, with_proxies
from moorage.http.wsgi import Environ, StartResponse

SAID = {
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_X_FORWARDED_HOST": "api.cloud.example:8443",
    "HTTP_X_FORWARDED_PREFIX": "/region-1/",
}


def through(trusted: tuple[str, ...], **environ: str) -> tuple[str, str, str]:
    seen: Environ = {}

    def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
        seen.update(environ)
        return []

    given = {"HTTP_HOST": "10.0.0.9", "wsgi.url_scheme": "http", **environ}
    with_proxies(app, trusted)(given, lambda *_: lambda data: data)
    return seen["wsgi.url_scheme"], seen["HTTP_HOST"], seen.get(PREFIX, "")


BELIEVED = ("https", "api.cloud.example:8443", "/region-1")
IGNORED = ("http", "10.0.0.9", "")


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("10.0.0.1", BELIEVED),
        ("10.1.0.7", BELIEVED),
        ("::ffff:10.0.0.1", BELIEVED),
        ("fd00::1", BELIEVED),
        ("10.0.0.2", IGNORED),
        ("fd00::2", IGNORED),
        ("", IGNORED),
        ("unix:", IGNORED),
    ],
)
def test_only_named_addresses_are_believed(peer: str, expected: tuple[str, ...]) -> None:
    trusted = ("10.0.0.1", "10.1.0.0/16", "fd00::1")
    assert through(trusted, REMOTE_ADDR=peer, **SAID) == expected


def test_without_names_nobody_is_believed() -> None:
    assert through((), REMOTE_ADDR="127.0.0.1", **SAID) == IGNORED


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"PROTO": "http, https"}, ("https", "10.0.0.9", "")),
        ({"PROTO": "HTTPS"}, ("https", "10.0.0.9", "")),
        ({"PROTO": "javascript"}, IGNORED),
        ({"HOST": "evil.example, api.example"}, ("http", "api.example", "")),
        ({"HOST": "[2001:db8::1]:443"}, ("http", "[2001:db8::1]:443", "")),
        ({"HOST": "a b"}, IGNORED),
        ({"HOST": "user@api.example"}, IGNORED),
        ({"HOST": "api.example/x"}, IGNORED),
        ({"PREFIX": "/a/b"}, ("http", "10.0.0.9", "/a/b")),
        ({"PREFIX": "//evil.example"}, IGNORED),
        ({"PREFIX": "a"}, IGNORED),
        ({"PREFIX": "/"}, IGNORED),
    ],
)
def test_only_what_makes_sense_is_believed(said: dict[str, str], expected: tuple[str, ...]) -> None:
    headers = {f"HTTP_X_FORWARDED_{name}": text for name, text in said.items()}
    assert through(("10.0.0.1",), REMOTE_ADDR="10.0.0.1", **headers) == expected


def hrefs(document: Any) -> set[str]:
    """Where the services of a service document are."""
    return {link["href"] for one in document["services"] for link in one["links"]}


def test_links_and_locations_are_those_of_the_proxy(whole: Any) -> None:
    client = whole(trusted_proxies=["192.0.2.1"])
    body = b'{"name": "node"}'
    sent = {
        **SAID,
        "CONTENT_TYPE": "application/json",
        "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
        "HTTP_HOST": "internal",
    }
    made = client(
        "POST",
        "/placement/resource_providers",
        body=body,
        environ=sent | {"REMOTE_ADDR": "192.0.2.1"},
    )
    prefix = "https://api.cloud.example:8443/region-1/placement/resource_providers/"
    assert made.headers["location"].startswith(prefix)
    links = {link["rel"]: link["href"] for link in made.json["links"]}
    assert links["self"].startswith("/region-1/placement/resource_providers/")
    found = client("GET", "/", environ=sent | {"REMOTE_ADDR": "192.0.2.1"})
    assert "/region-1/v1" in hrefs(found.json)
    plain = client("GET", "/", environ=sent | {"REMOTE_ADDR": "192.0.2.2"})
    assert "/v1" in hrefs(plain.json)
