"""The examples of the API's page are requests that the API reads."""

from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from moorage.api.native.openapi import document
from moorage.api.native.route import Route
from moorage.api.native.routes import ROUTES

DOCS = Path(__file__).parents[2] / "docs"
TAKING = [route for route in ROUTES if route.request is not None]


@pytest.mark.parametrize("route", TAKING, ids=lambda route: f"{route.method} {route.path}")
def test_an_example_is_of_the_form_that_is_read(
    route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    native_api = import_module("gen.native_api")
    api = document(ROUTES)
    path = route.path.replace(":path", "")
    operation = api["paths"][path][route.method.lower()]
    example = native_api.example(native_api.body_of(operation["requestBody"]), api)
    assert route.request is not None
    read = msgspec.json.decode(msgspec.json.encode(example), type=route.request)
    assert isinstance(read, route.request)
