"""Prepared statements and pipelining on a PostgreSQL connection, over libpq (`psycopg.pq`).

A cursor of the driver costs three times what the library and its connection need, and a round
trip for each statement costs the server as much as the statement. So statements are prepared and
sent here, by `psycopg.pq`; what they find is turned into values by psycopg.
"""

from __future__ import annotations

import operator
import select
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

from moorage.domain.errors import InvalidDescription
from moorage.store.postgresql.hang_detector import Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_AT_ONCE: Final = 500
"""Statements sent before their answers are read."""
_DONE: Final = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
STALE: Final = frozenset({"0A000", "26000"})
"""A prepared statement whose columns a migration has changed; one that the server has forgotten."""
_ANSWERED: Final = (False,)
"""What is answered of a statement that was prepared before: its execution alone."""
_UNPREPARED: Final = frozenset({"COMMIT", "ROLLBACK"})
"""So short that preparing them gains nothing, and so seen by whoever watches the connection."""


class Call:
    """A statement with its arguments, and in the end its answer."""

    __slots__ = ("answer", "arguments", "text")

    def __init__(self, text: str, arguments: Sequence[Any] = ()) -> None:
        self.text = text
        self.arguments = arguments
        self.answer: Any = None


class RawConnection:
    """A connection to PostgreSQL. Not safe for threads; after an error of its own, not usable."""

    def __init__(self, driver: psycopg.Connection[Any], waits: Wait | None = None) -> None:
        """`waits` is told while somebody waits for the server."""
        self._driver = driver  # keeps the library's connection open
        self._waits = Wait() if waits is None else waits
        self._library = driver.pgconn
        self._socket = select.poll()
        self._socket.register(self._library.socket, select.POLLIN)
        self._prepared: dict[str, bytes] = {}
        self._named = 0
        self._values = Transformer(driver)

    @property
    def broken(self) -> bool:
        """Whether nothing more can be asked."""
        return self._driver.broken or self._driver.closed

    def close(self) -> None:
        """Hang up."""
        self._driver.close()

    def run(self, calls: Sequence[Call]) -> None:
        """Ask for all of them, then note the answers; after the first that fails none is done.

        Raises:
            psycopg.Error: of the first that failed.
        """
        for start in range(0, len(calls), _AT_ONCE):
            with self._waits:
                self._run(calls[start : start + _AT_ONCE])

    def rows(self, call: Call, row: Callable[[Any], Any] = tuple) -> list[Any]:
        """What a call that was run has found."""
        self._values.set_pgresult(call.answer)
        return self._values.load_rows(0, call.answer.ntuples, row)

    def one(self, text: str, arguments: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - a row
        """The only row that a statement finds.

        Raises:
            psycopg.Error: it failed.
        """
        call = Call(text, arguments)
        self.run([call])
        (found,) = self.rows(call)
        return found

    # --- one round trip -----------------------------------------------------------------------

    def _run(self, calls: Sequence[Call]) -> None:
        if len(calls) == 1:
            self._run_alone(calls[0])
            return
        library = self._library
        encoded = [_encoded(call.arguments) for call in calls]
        library.enter_pipeline_mode()
        try:
            fresh = [self._send(*each) for each in zip(calls, encoded, strict=True)]
            library.pipeline_sync()
            while library.flush():
                self._wait(select.POLLIN | select.POLLOUT)
            failed = self._collect(calls, fresh)
            library.exit_pipeline_mode()
        except BaseException:  # in the middle of a round trip nobody can go on
            self._driver.close()
            raise
        if failed is not None:
            raise failed

    def _run_alone(self, call: Call) -> None:
        """Without a pipeline, each of whose steps is a call: the library waits by itself."""
        library: Any = self._library  # its stub knows no NULL
        arguments = _encoded(call.arguments)
        if call.text in _UNPREPARED:
            call.answer = library.exec_params(call.text.encode(), arguments)
        else:
            name = self._prepared.get(call.text)
            if name is None:
                name = self._name()
                _check(library.prepare(name, call.text.encode()))
                self._prepared[call.text] = name
            call.answer = library.exec_prepared(name, arguments)
        try:
            _check(call.answer)
        except psycopg.Error as error:
            if error.sqlstate in STALE:
                self._prepared.pop(call.text, None)
            raise

    def _send(self, call: Call, arguments: list[bytes | None]) -> bool:
        """Send one; whether it had to be prepared before."""
        if call.text in _UNPREPARED:
            self._library.send_query_params(call.text.encode(), arguments)
            return False
        name = self._prepared.get(call.text)
        fresh = name is None
        if name is None:
            name = self._prepared[call.text] = self._name()
            self._library.send_prepare(name, call.text.encode())
        self._library.send_query_prepared(name, arguments)
        return fresh

    def _name(self) -> bytes:
        """A name for the next statement that is prepared."""
        self._named += 1
        return b"moorage_%d" % self._named

    def _collect(self, calls: Sequence[Call], fresh: Sequence[bool]) -> psycopg.Error | None:
        """Every answer up to the end of the round trip; the first error among them."""
        failed: psycopg.Error | None = None
        come, take = self._library.is_busy, self._library.get_result
        for call, was_fresh in zip(calls, fresh, strict=True):
            for preparing in (True, False) if was_fresh else _ANSWERED:
                while come():
                    self._wait(select.POLLIN)
                answer = take()
                while come():
                    self._wait(select.POLLIN)
                if answer is None or take() is not None:
                    raise self._lost()
                call.answer = answer
                if answer.status not in _DONE:
                    error = self._refused(call, answer, preparing=preparing)
                    failed = failed or error
        while come():
            self._wait(select.POLLIN)
        end = take()
        if end is not None and end.status == ExecStatus.FATAL_ERROR:
            # All was done but the end of the transaction, which begins and ends with these calls.
            failed = failed or error_from_result(end)
            end = self._after_failed_end()
        if end is None or end.status != ExecStatus.PIPELINE_SYNC:
            raise self._lost()
        return failed

    def _after_failed_end(self) -> Any:  # noqa: ANN401 - the library's result
        """What follows after nothing: the end of the round trip, if the connection stands."""
        come, take = self._library.is_busy, self._library.get_result
        while come():
            self._wait(select.POLLIN)
        if take() is not None:
            return None
        while come():
            self._wait(select.POLLIN)
        return take()

    def _refused(self, call: Call, answer: Any, *, preparing: bool) -> psycopg.Error | None:  # noqa: ANN401 - the library's result
        """The error of a statement that was not done; None if it was not come to."""
        if preparing:
            self._prepared.pop(call.text, None)
        if answer.status == ExecStatus.PIPELINE_ABORTED:
            return None  # an earlier one failed, and is told
        error = error_from_result(answer)
        if error.sqlstate in STALE:
            self._prepared.pop(call.text, None)
        return error

    def _wait(self, events: int) -> None:
        self._socket.modify(self._library.socket, events)
        for _, event in self._socket.poll():
            if event != select.POLLOUT:
                self._library.consume_input()

    def _lost(self) -> psycopg.Error:
        said = self._library.get_error_message()
        return psycopg.OperationalError(f"the connection is lost: {said}")


def _check(answer: Any) -> None:  # noqa: ANN401 - the library's result
    """Return if the library has done what it was told.

    Raises:
        psycopg.Error: it has not.
    """
    if answer.status not in _DONE:
        raise error_from_result(answer)


def _encoded(arguments: Sequence[Any]) -> list[bytes | None]:
    """Values as PostgreSQL reads them from text.

    Raises:
        InvalidDescription: text that it cannot hold.
        TypeError: a value of a type that no column has.
    """
    try:
        found = list(map(operator.call, map(_ENCODE.__getitem__, map(type, arguments)), arguments))
    except UnicodeEncodeError as error:
        raise InvalidDescription("a text holds half of a pair of surrogates") from error
    if b"\0" in b"".join(filter(None, found)):
        raise InvalidDescription("a text holds NUL, which PostgreSQL cannot store")
    return found


def _array(values: Sequence[Any]) -> bytes:
    return b"{%b}" % b",".join(map(_element, values))


def _element(value: Any) -> bytes:  # noqa: ANN401 - any value of an array
    encoded = _ENCODE[type(value)](value)
    assert encoded is not None, "lists hold no NULL"
    if not isinstance(value, str):
        return encoded
    return b'"%b"' % encoded.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


class _Encoders(dict[type, "Callable[[Any], bytes | None]"]):
    """By exact type; one that derives from another is written as that."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes | None]:
        for known, encode in list(self.items()):
            if issubclass(kind, known):
                self[kind] = encode
                return encode
        raise TypeError(f"no column holds a {kind.__name__}")


_ENCODE: Final = _Encoders(
    {
        type(None): lambda _none: None,
        str: str.encode,
        bool: lambda value: b"t" if value else b"f",
        int: b"%d".__mod__,
        float: lambda value: repr(value).encode(),
        list: _array,
        tuple: _array,
    }
)
