"""Parameters of all types, with constraints, and their values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.heat_judge.generator.expressions import SAFE, TEXTS
from tests.heat_judge.generator.language import raw

if TYPE_CHECKING:
    from random import Random

    from tests.heat_judge.generator.expressions import Reach

TYPES: Final = {
    "text": "string",
    "word": "string",
    "number": "number",
    "list": "comma_delimited_list",
    "json": "json",
    "flag": "boolean",
}
"""What parameters are called -> their type. Those of one name have one type in all templates, so
that an environment's `parameter_defaults` fit them all."""
DOCUMENT: Final = {
    "a": {"b": "m1.small", "l": ["c2", "x"], "n": 2},
    "list": [{"f": "gpu"}, {"f": "tiny"}],
    "map": {"k": "v", "l": "w"},
    "t": True,
}
"""What most parameters of type json hold."""
PATHS: Final = {
    "string": (("a", "b"), ("a", "l", 0), ("list", 1, "f"), ("map", "k"), ("absent", "x")),
    "number": (("a", "n"),),
    "list": (("a", "l"),),
    "map": (("map",),),
}


@dataclass
class Section:
    """A template's parameters: what is written, and a value that fits each."""

    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def needed(self) -> list[str]:
        """Those without a default."""
        return [name for name, schema in self.schemas.items() if "default" not in schema]


def declare(random: Random, reach: Reach, number: int) -> Section:
    """The parameters of the template with that number; what they offer is added to `reach`."""
    section = Section()
    for i in range(random.randint(1, 5)):
        word = random.choice(sorted(TYPES))
        kind, value = TYPES[word], sample(random, TYPES[word])
        schema: dict[str, Any] = {"type": kind}
        name = f"{word}_{i}"
        if kind in {"string", "number"} and random.random() < 0.3:
            schema["constraints"] = [_constraint(random, kind, value)]
            name = f"{word}_of_{number}_{i}"
        if random.random() < 0.1:
            schema["hidden"] = random.choice((True, "true"))
        if random.random() < 0.6:
            schema["default"] = value
        section.schemas[name], section.values[name] = schema, value
        reach.parameters[name] = kind
        if kind == "json":
            for type_, paths in PATHS.items():
                reach.paths.setdefault(type_, []).extend((name, path) for path in paths)
        if kind == "comma_delimited_list":
            reach.paths.setdefault("string", []).append((name, (0,)))
    return section


def as_option(value: Any) -> str:
    """The value as text on a command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value)
    return text.removeprefix("@raw(").removesuffix(")@")


def sample(random: Random, kind: str) -> Any:
    """A value of a type."""
    match kind:
        case "number":
            return random.choice((0, 1, 2, 3, "1", "2"))
        case "comma_delimited_list":
            return random.choice(("c2,gpu", ["a", "b", "c2"], "m1.small", "a, b", ["x"]))
        case "json":
            return random.choice((DOCUMENT, DOCUMENT, json.dumps(DOCUMENT)))
        case "boolean":
            return random.choice((True, False, "true", "off", "1", "No", "t"))
        case _:
            if random.random() < 0.1:
                return random.choice((1, 2.5, True, raw("1_000"), raw("yes"), raw("0x1F")))
            return random.choice((*SAFE, *TEXTS))


def mergeable(kind: str, value: Any) -> Any:
    """The value in a form that two environments can merge; None if there is none."""
    match kind:
        case "comma_delimited_list":
            return ",".join(value) if isinstance(value, list) else value
        case "json":
            return json.loads(value) if isinstance(value, str) else value
        case "string":
            return value if isinstance(value, str) and "@" not in value else None
        case _:
            return None


def _constraint(random: Random, kind: str, value: Any) -> dict[str, Any]:
    if kind == "number":
        return random.choice(
            (
                {"range": {"min": 0, "max": 10}},
                {"allowed_values": [0, 1, 2, 3]},
                {"range": {"max": 9}},
            )
        )
    if not isinstance(value, str) or value.startswith("@raw("):
        return {"custom_constraint": "nova.flavor"}
    return random.choice(
        (
            {"allowed_values": [value, "other", "m1.small"]},
            {"length": {"min": len(value), "max": 40}},
            {"allowed_pattern": ".*"},
            {"custom_constraint": "nova.flavor"},
        )
    )
