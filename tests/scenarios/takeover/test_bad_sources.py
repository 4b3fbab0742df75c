"""Sources that stumble, move while they are read, or are no Placement service at all.

The source is a Placement dialect of ours in this process; what is bad about it happens on the way.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from tests.servers.reference import named

from moorage.cli.admin import placement_over
from moorage.client.credentials import GivenToken, keystone
from moorage.client.errors import NoEndpoint
from moorage.client.placement_source import SourceMoves, read_service
from moorage.client.placement_wire import Options, PlacementWire, SourceFailed, within
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    DeleteAllocations,
    DeleteProvider,
    PutInventories,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.content import Content, differences
from moorage.domain.errors import InvalidDescription
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import private_ledger
from moorage.usecases.ledger.content import ledger_content

HOSTS = [named(f"host-{n}") for n in range(4)]
SERVERS = [named(f"server-{n}") for n in range(4)]


def allocate(server: str, amounts: Mapping[str, int]) -> ReplaceAllocations:
    consumer = Consumer(server, "project", "user", "INSTANCE")
    allocations = {host: {"VCPU": amount} for host, amount in amounts.items()}
    return ReplaceAllocations(consumer, allocations, ANY_GENERATION)


@pytest.fixture
def source() -> Iterator[Ledger]:
    store = private_ledger()
    for number, (host, server) in enumerate(zip(HOSTS, SERVERS, strict=True)):
        stock = PutInventories(host, (Inventory("VCPU", 8),), None)
        changes = CreateProvider(host, f"host-{number}"), stock, allocate(server, {host: 1})
        store.commit(Changeset(changes))
    yield store
    store.close()


class Way(httpx.BaseTransport):
    """The way to the source; something may happen on it before a request arrives."""

    def __init__(
        self, source: Ledger, happens: Callable[[int, httpx.Request], httpx.Response | None]
    ) -> None:
        self._inner = within(placement_over(source))
        self._happens = happens
        self.requests: Counter[str] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests[request.url.path] += 1
        found = self._happens(self.requests.total(), request)
        return found or self._inner.handle_request(request)


def read(way: httpx.BaseTransport, waits: list[float] | None = None) -> Content:
    slept: list[float] = [] if waits is None else waits
    options = Options(through=way, sleep=slept.append)
    with PlacementWire("http://source.invalid", GivenToken("admin"), options) as wire:
        return read_service(wire, connections=1)


def test_a_source_that_stumbles_is_asked_again(source: Ledger) -> None:
    def every_third(number: int, request: httpx.Request) -> httpx.Response | None:
        if number % 9 == 3:
            raise httpx.ReadTimeout("slow", request=request)
        status = (500, 502, 503, 504)[number % 4]
        return httpx.Response(status, text="oops") if number % 3 == 0 else None

    waits: list[float] = []
    way = Way(source, every_third)
    found = read(way, waits)
    assert list(differences(ledger_content(source), found)) == []
    assert len(waits) > 5
    assert min(waits) > 0


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            lambda: httpx.Response(500, text="oops"),
            "GET /.*/inventories: 500 Internal Server Error",
        ),
        (lambda: httpx.Response(403, json={"errors": [{"detail": "not you"}]}), "403 not you"),
        (lambda: httpx.Response(200, text="<html>"), "not JSON"),
        (lambda: httpx.Response(200, json={}), "lacks inventories"),
    ],
)
def test_one_that_only_fails_is_told(
    source: Ledger, answer: Callable[[], httpx.Response], told: str
) -> None:
    def for_inventories(_: int, request: httpx.Request) -> httpx.Response | None:
        return answer() if request.url.path.endswith("inventories") else None

    with pytest.raises(SourceFailed, match=told):
        read(Way(source, for_inventories))


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ({"versions": [{"max_version": "1.14"}]}, "1.28 or newer is needed"),
        ({"service": "keystone"}, "is not a Placement service"),
        ({"versions": []}, "is not a Placement service"),
    ],
)
def test_something_else_or_something_old(source: Ledger, root: object, told: str) -> None:
    with pytest.raises(SourceFailed, match=told):
        read(Way(source, lambda *_: httpx.Response(200, json=root)))


def test_nobody_is_there() -> None:
    options = Options(sleep=lambda _: None)
    with (
        PlacementWire("http://127.0.0.1:9", GivenToken("admin"), options) as wire,
        pytest.raises(SourceFailed, match=r"127\.0\.0\.1:9"),
    ):
        read_service(wire)
    with pytest.raises(SourceFailed, match="not the URL"):
        PlacementWire("placement", GivenToken("admin"))


MOVES: list[tuple[Change, ...]] = [
    (allocate(SERVERS[0], {HOSTS[3]: 2}),),
    (allocate(named("new"), {HOSTS[0]: 1, HOSTS[3]: 1}),),
    (DeleteAllocations(SERVERS[1]), DeleteProvider(HOSTS[1])),
    (CreateProvider("4" * 8 + HOSTS[0][8:], "late", HOSTS[2]),),
    (PutInventories(HOSTS[2], (Inventory("DISK_GB", 7),), None),),
    (UpdateProvider(HOSTS[3], "renamed"),),
]


@pytest.mark.parametrize("moment", [3, 5, 8, 14, 20, 22])
@pytest.mark.parametrize("changes", MOVES)
def test_what_moves_meanwhile_is_read_again(
    source: Ledger, changes: tuple[Change, ...], moment: int
) -> None:
    def at_the_moment(number: int, _: httpx.Request) -> None:
        if number == moment:
            source.commit(Changeset(changes))

    way = Way(source, at_the_moment)
    found = read(way)
    assert way.requests.total() > moment
    assert list(differences(ledger_content(source), found)) == []


def test_one_that_never_rests_is_given_up(source: Ledger) -> None:
    def always(_number: int, _request: httpx.Request) -> None:
        source.commit(Changeset((PutInventories(HOSTS[0], (Inventory("VCPU", 9),), None),)))

    with pytest.raises(SourceMoves, match="faster than it can be read"):
        read(Way(source, always))


class Renewed:
    """A token that is refused once."""

    trust = True

    def __init__(self) -> None:
        self.value = "stale:project"

    def token(self) -> str:
        return self.value

    def renew(self) -> bool:
        self.value = "admin"
        return True


def test_a_token_that_ran_out_is_renewed(source: Ledger) -> None:
    def for_stale(_: int, request: httpx.Request) -> httpx.Response | None:
        stale = request.headers["X-Auth-Token"] != "admin"
        return httpx.Response(401, text="no") if stale else None

    options = Options(through=Way(source, for_stale))
    with PlacementWire("http://source.invalid", Renewed(), options) as wire:
        assert len(read_service(wire).providers) == 4
    given = PlacementWire("http://source.invalid", GivenToken("x"), options)
    with given as wire, pytest.raises(SourceFailed, match="401"):
        read_service(wire)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "no OS_AUTH_URL"),
        ({"OS_AUTH_URL": "http://x.invalid", "OS_AUTH_TYPE": "no-such-kind"}, "unknown auth type"),
        (
            {"OS_AUTH_URL": "http://x.invalid", "OS_AUTH_TYPE": "v3applicationcredential"},
            "do not make",
        ),
    ],
)
def test_variables_that_do_not_do(variables: dict[str, str], told: str, tmp_path: Path) -> None:
    with pytest.raises(NoEndpoint, match=told):
        keystone({"OS_CLIENT_CONFIG_FILE": str(tmp_path / "none.yaml"), **variables}).token()


def test_the_endpoint_and_whom_to_trust_are_as_elsewhere() -> None:
    variables = {
        "OS_AUTH_URL": "https://keystone.invalid/v3",
        "OS_USERNAME": "nova",
        "OS_PASSWORD": "secret",
        "OS_PLACEMENT_ENDPOINT_OVERRIDE": "https://placement.invalid/",
        "OS_INSECURE": "1",
    }
    found = keystone(variables)
    assert (found.endpoint("placement"), found.trust) == ("https://placement.invalid", False)


def test_a_database_that_is_none_of_placement(tmp_path: Path) -> None:
    from moorage.domain.errors import Busy
    from moorage.store.placement_database import read_placement

    own = f"sqlite:///{tmp_path / 'ledger.db'}"
    open_store(own).close()
    with pytest.raises(InvalidDescription, match="not a database of Placement's"):
        read_placement(own)
    with pytest.raises(Busy, match="unable to open"):
        read_placement(f"sqlite:///{tmp_path / 'no.db'}")
    assert not (tmp_path / "no.db").exists()
    for url, told in (("oracle://x/y", "no support"), ("what", "^not a database URL, such")):
        with pytest.raises(InvalidDescription, match=told):
            read_placement(url)
