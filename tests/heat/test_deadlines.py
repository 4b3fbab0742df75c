"""A template ends at its request's deadline, whatever part of it takes the time."""

from collections.abc import Iterator
from itertools import count

import pytest

from moorage.domain import deadline
from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import Source, compile_template
from moorage.heat.yaml_tree import parse

HEAD = "heat_template_version: wallaby\n"
SERVER = "{type: OS::Nova::Server, properties: {flavor: m1.small}}"
MANY = 400
SERVERS = HEAD + "resources:\n" + "".join(f"  s{n}: {SERVER}\n" for n in range(MANY))


def ticking(step: float) -> Iterator[float]:
    """A clock of which each look takes so long."""
    return count(step=step)


def test_reading_looks_at_the_clock_for_each_value() -> None:
    ticks = ticking(0.001)
    with deadline.within(lambda: next(ticks), 1.0), pytest.raises(deadline.TimeExpired):
        parse(SERVERS)


def test_every_server_is_a_look_at_the_clock_after_reading() -> None:
    ticks = ticking(0.001)
    with deadline.within(lambda: next(ticks), 10.0**6):
        parse(SERVERS)
        read = next(ticks)
        compile_template(Source(SERVERS))
        whole = next(ticks) - read
    assert whole > read + 0.001 * 3 * MANY


def test_a_word_that_is_replaced_too_often_is_found_before_it_is_replaced() -> None:
    long = "x" * 1_000_000
    text = f"{{str_replace: {{template: {long}, params: {{x: y}}}}}}"
    server = f"{{type: OS::Nova::Server, properties: {{flavor: {text}}}}}"
    with pytest.raises(InvalidDescription, match="replaced too often"):
        compile_template(Source(f"{HEAD}resources: {{s: {server}}}\n"))
