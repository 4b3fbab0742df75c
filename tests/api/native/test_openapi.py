"""The document is made from the table, and is valid."""

from openapi_spec_validator import OpenAPIV31SpecValidator

from moorage.api.native.openapi import document
from moorage.api.native.routes import ROUTES
from moorage.testing.service import Service


def test_the_document_is_valid_openapi(service: Service) -> None:
    served = service.call("GET", "/openapi.json", caller=None)
    assert served.status_code == 200
    OpenAPIV31SpecValidator(served.json).validate()


def test_every_route_is_in_it_and_nothing_else() -> None:
    paths = document(ROUTES)["paths"]
    described = {(verb.upper(), path) for path, verbs in paths.items() for verb in verbs}
    assert described == {(one.method, one.path.replace(":path", "")) for one in ROUTES}


def test_operations_have_names_of_their_own() -> None:
    ids = [
        verb["operationId"]
        for verbs in document(ROUTES)["paths"].values()
        for verb in verbs.values()
    ]
    assert len(set(ids)) == len(ids) == len(ROUTES)


def test_bodies_refuse_what_they_do_not_know() -> None:
    schemas = document(ROUTES)["components"]["schemas"]
    asked = {one.request.__name__ for one in ROUTES if one.request is not None}
    assert asked
    assert all(schemas[name]["additionalProperties"] is False for name in asked)


def test_the_version_document_needs_no_token(service: Service) -> None:
    answer = service.call("GET", "/", caller=None)
    assert answer.json["version"]["max_version"] == "1.0"
    assert answer.headers["openstack-api-version"] == "ensemble 1.0"
    assert "OpenStack-API-Version" in answer.headers["vary"]
