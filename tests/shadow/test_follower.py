"""What overlaps, is dropped, and is seen of boots; tests/scenarios/shadow has the rest."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from tests.servers.ports import free_port

from moorage import logs
from moorage.shadow.boot_offers import BootOffers
from moorage.shadow.comparison import Answered
from moorage.shadow.exchange import Exchange, Reply
from moorage.shadow.follower import PAUSE, WAITING, WAITING_BYTES, Follower, Traffic
from moorage.shadow.forwarding import Forwarding
from moorage.shadow.replay import Replay
from moorage.shadow.report import KINDS, Boots, Example, ReportFile, ShadowReport
from moorage.shadow.upstream import Upstream
from moorage.testing.ledger_copy import private_ledger


def exchange(method: str = "GET", path: str = "/traits", size: int = 0, **more: Any) -> Exchange:
    return Exchange(method, path, "", b"", Reply(200, "OK", (), b"x" * size), **more)


def nothing(*_: Any) -> list[bytes]:
    raise AssertionError("nothing is answered here")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Follower]:
    report = ShadowReport("http://there", "now")
    file = ReportFile(tmp_path / "shadow.json")
    with closing(private_ledger()) as store:
        yield Follower(store, Replay(nothing), None, 60.0, file, report)


def test_an_exchange_overlaps_the_writes_that_were_under_way() -> None:
    traffic = Traffic()
    told: list[tuple[bool, int]] = []

    def end(begun: int, *, writes: bool) -> None:
        traffic.end(begun, writes=writes, tell=lambda *found: told.append(found))

    read, write = traffic.begin(writes=False), traffic.begin(writes=True)
    end(read, writes=False)  # the write began meanwhile
    later = traffic.begin(writes=False)
    end(write, writes=True)  # no other write was there
    end(later, writes=False)  # it ended meanwhile
    alone = traffic.begin(writes=False)
    end(alone, writes=False)
    assert told == [(True, 1), (False, 2), (True, 3), (False, 4)]


def test_neither_numbers_nor_bytes_of_what_waits_are_unbounded(made: Follower) -> None:
    large = exchange(size=WAITING_BYTES // 2 + 1)
    made.note(large)
    made.note(large)
    assert made._missed == {"too many waited to be compared": 1}
    for _ in range(WAITING):
        made.note(exchange())
    assert made._missed == {"too many waited to be compared": 2}
    assert made._waiting.qsize() == WAITING


@pytest.mark.parametrize(("method", "soon"), [("PUT", True), ("GET", False)])
def test_a_write_without_an_answer_is_followed_by_a_refresh_also_when_nothing_waits(
    made: Follower, method: str, *, soon: bool
) -> None:
    made._due = time.monotonic() + 60.0
    nobody = Upstream(f"http://127.0.0.1:{free_port()}", 5.0)
    served = Forwarding(nothing, "", nobody, made, 1000, logs.Lasting())
    environ = {"REQUEST_METHOD": method, "PATH_INFO": "/traits/CUSTOM_A", "CONTENT_LENGTH": "0"}
    setup_testing_defaults(environ)
    statuses: list[str] = []

    def begin(status: str, *_: Any) -> Callable[[bytes], object]:
        statuses.append(status)
        return nothing

    served(environ, begin)
    assert statuses == ["502 Bad Gateway"]
    assert made._waiting.empty()
    made._round()
    assert (made._due <= time.monotonic() + PAUSE) is soon


def test_kinds_and_examples_are_bounded(tmp_path: Path) -> None:
    report = ShadowReport("http://there", "now")
    for kind in range(KINDS + 50):
        for _ in range(5):
            report.differ(str(kind), Example("now", "GET", "/", "1.0", "it differs"))
    assert len(report.different) == KINDS + 1
    assert report.different["other"].count == 250
    assert {len(kind.examples) for kind in report.different.values()} == {3}
    file = ReportFile(tmp_path / "shadow.json")
    file.save(report)
    assert file.load() == report
    assert file.resumed("http://there").differences == report.differences
    assert file.resumed("http://elsewhere").differences == 0
    file.path.write_text("{")
    assert file.resumed("http://there").requests == 0


def test_where_servers_went_is_compared_with_the_offers_of_their_request() -> None:
    offers, boots = BootOffers(), Boots()
    headers = {"HTTP_X_OPENSTACK_REQUEST_ID": "req-1"}
    ours = Answered(
        200,
        b'{"allocation_requests": [{"allocations": {"a": {}}}, {"allocations":'
        b' [{"resource_provider": {"uuid": "b"}, "resources": {}}]}]}',
    )
    offers.remember(exchange(path="/allocation_candidates", headers=headers), ours)

    def wrote(body: bytes, path: str = "/allocations/s", sent: dict[str, str] = headers) -> None:
        reply = Reply(204, "No Content", (), b"")
        offers.count(Exchange("PUT", path, "", body, reply, sent), boots)

    wrote(b'{"allocations": {"a": {"resources": {}}}}')
    wrote(b'{"s": {"allocations": {"b": {}}}, "m": {"allocations": {}}}', "/allocations")
    wrote(b'{"allocations": {"c": {}}}')
    wrote(b'{"allocations": {"c": {}}}', sent={})
    wrote(b'{"allocations": {"c": {}}}', "/resource_providers/c/inventories")
    assert (boots.seen, boots.possible_here, boots.first_here) == (3, 2, 1)
    assert [one.detail for one in boots.elsewhere.examples] == ["on c, of 2 offers"]
