"""Building blocks that convert newest schemas and answers to older microversions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.http.microversion import JSON, Lower, Response, Schemas


def without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The mapping without some keys; absent keys are ignored."""
    return {key: value for key, value in mapping.items() if key not in keys}


def forgetting(*names: str) -> Schemas:
    """An object schema without these properties."""

    def before(schema: JSON) -> JSON:
        kept = {**schema, "properties": without(schema["properties"], *names)}
        if "patternProperties" in schema:
            kept["patternProperties"] = {
                pattern: value
                for pattern, value in schema["patternProperties"].items()
                if not pattern.startswith(tuple(f"^{name}(" for name in names))
            }
        if "required" in schema:
            kept["required"] = [name for name in schema["required"] if name not in names]
        return kept

    return before


def in_each(step: Schemas) -> Schemas:
    """Apply the step to the schema of every value of a keyed object."""

    def before(schema: JSON) -> JSON:
        patterns = schema["patternProperties"]
        return {**schema, "patternProperties": {key: step(one) for key, one in patterns.items()}}

    return before


def of_property(name: str, step: Schemas) -> Schemas:
    """Apply the step to the schema of one property."""

    def before(schema: JSON) -> JSON:
        properties = schema["properties"]
        return {**schema, "properties": {**properties, name: step(properties[name])}}

    return before


def on_body(step: Callable[[JSON], JSON]) -> Lower:
    """Apply a step to the body of answers that have one."""

    def lower(response: Response) -> Response:
        return response if response.body is None else replace(response, body=step(response.body))

    return lower


def hiding(*keys: str) -> Lower:
    """Remove these keys from the body of answers."""
    return on_body(lambda body: without(body, *keys))


def in_entries(name: str, step: Callable[[JSON], JSON]) -> Lower:
    """Apply a step to every entry of a list or object in the body."""

    def of_body(body: JSON) -> JSON:
        entries = body[name]
        if isinstance(entries, dict):
            return {**body, name: {key: step(entry) for key, entry in entries.items()}}
        return {**body, name: [step(entry) for entry in entries]}

    return on_body(of_body)


def on_providers(step: Callable[[JSON], JSON]) -> dict[str, Lower]:
    """Apply a step to a provider's representation in every answer."""
    one = on_body(step)
    return {
        "providers.list": in_entries("resource_providers", step),
        "providers.create": one,
        "providers.show": one,
        "providers.update": one,
    }


def hiding_link(rel: str) -> dict[str, Lower]:
    """Remove a link from providers' representations."""
    return on_providers(
        lambda provider: {
            **provider,
            "links": [link for link in provider["links"] if link["rel"] != rel],
        }
    )


def each_value(step: Callable[[JSON], JSON]) -> Callable[[JSON], JSON]:
    """Apply a step to every value of an object."""
    return lambda body: {key: step(value) for key, value in body.items()}
