"""Crews with a single thread or several, gone after the test."""

import ssl
from collections.abc import Callable, Iterator

import pytest
from tests.http.transport.crew import WIRE, App, Place

from moorage.http.transport.limits import ConnectionLimits


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def start(app: App) -> Iterator[Callable[..., Place]]:
    """Makes places that are gone afterwards."""
    places: list[Place] = []

    def make(wire: ConnectionLimits = WIRE, tls: ssl.SSLContext | None = None) -> Place:
        places.append(Place(app, wire, tls))
        return places[-1]

    yield make
    for place in places:
        place.close()


@pytest.fixture
def place(start: Callable[..., Place]) -> Place:
    """With a single thread: whoever keeps it is noticed."""
    return start()
