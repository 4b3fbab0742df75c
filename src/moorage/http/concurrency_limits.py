"""Limits one client's concurrent requests, and their bodies, in this process; refuses further ones.

A client with many connections gets no more than a share of the threads. Further requests are
refused and not queued, for waiting would take a thread as well.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import TooManyRequests
from moorage.http.transport.wsgi_environ import own_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.usecases.ports import Caller

RETRY_AFTER: Final = 1
"""Seconds after which a refused client may ask again: most requests take less."""


class ConcurrencyLimits:
    """Counts concurrent requests by client: by address before authentication, then by project.

    Operators and services are not counted by project: they ask for everybody.
    """

    def __init__(
        self,
        *,
        of_one_project: int,
        bodies_of_one_project: int,
        of_one_address: int | None = None,
        proxies: Sequence[str] = (),
    ) -> None:
        """`of_one_address` None: no limit; addresses of `proxies` are not counted."""
        self._of_one_project = of_one_project
        self._bodies_of_one_project = bodies_of_one_project
        self._of_one_address = of_one_address
        self._proxies = [ipaddress.ip_network(one) for one in proxies]
        self._lock = Lock()
        self._clients: Counter[str] = Counter()

    def request(self) -> CountedRequest:
        """A new request, not counted yet."""
        return CountedRequest(self)

    def address_key(self, address: str) -> str | None:
        """The counter key of an address; None: it is not counted."""
        if self._of_one_address is None:
            return None
        try:
            peer = own_address(address)
        except ValueError:
            return None
        if any(peer in network for network in self._proxies):
            return None
        return f"address {peer}"

    def enter_address(self, key: str) -> None:
        """Count a request of an address.

        Raises:
            TooManyRequests: as many are under way as may be.
        """
        assert self._of_one_address is not None
        if not self._enter(key, self._of_one_address):
            raise TooManyRequests(
                f"{self._of_one_address} requests from this address are under way, as many as may"
                " be (requests_per_address); send this one again when one is answered",
                retry_after=RETRY_AFTER,
            )

    def enter_project(self, key: str) -> None:
        """Count a request of a project.

        Raises:
            TooManyRequests: as many are under way as may be.
        """
        if not self._enter(key, self._of_one_project):
            raise TooManyRequests(
                f"{self._of_one_project} requests of the project are under way, as many as may be"
                " (requests_per_project); send this one again when one is answered",
                retry_after=RETRY_AFTER,
            )

    def enter_body(self, key: str, size: int) -> None:
        """Count the bytes of a project's body.

        Raises:
            TooManyRequests: with those under way they are more than may be.
        """
        if not self._enter(key, self._bodies_of_one_project, size):
            raise TooManyRequests(
                f"bodies of the project's requests under way have {self._bodies_of_one_project}"
                " bytes, as many as may be (twice body_limit); send this one again when one is"
                " answered",
                retry_after=RETRY_AFTER,
            )

    def leave(self, key: str, amount: int) -> None:
        """Release what was counted."""
        with self._lock:
            self._clients[key] -= amount
            if not self._clients[key]:
                del self._clients[key]

    def _enter(self, key: str, most: int, amount: int = 1) -> bool:
        with self._lock:
            if self._clients[key] + amount > most:
                return False
            self._clients[key] += amount
            return True


class CountedRequest:
    """The counters that one request holds until it is over."""

    __slots__ = ("_counts", "_limits")

    def __init__(self, limits: ConcurrencyLimits) -> None:
        self._limits = limits
        self._counts: list[tuple[str, int]] = []

    def count_address(self, address: str) -> None:
        """Count it by its address.

        Raises:
            TooManyRequests: as many are under way as may be.
        """
        key = self._limits.address_key(address)
        if key is not None:
            self._limits.enter_address(key)
            self._counts.append((key, 1))

    def count_caller(self, caller: Caller) -> None:
        """Count it by the caller's project, or by the user without one.

        Raises:
            TooManyRequests: as many are under way as may be.
        """
        if not caller.operator:
            key = _account(caller)
            self._limits.enter_project(key)
            self._counts.append((key, 1))

    def count_body(self, caller: Caller, size: int) -> None:
        """Count its body by the caller's project.

        Raises:
            TooManyRequests: as many bytes are under way as may be.
        """
        if size and not caller.operator:
            key = f"bodies of {_account(caller)}"
            self._limits.enter_body(key, size)
            self._counts.append((key, size))

    def release(self) -> None:
        """Release its counts; idempotent."""
        while self._counts:
            self._limits.leave(*self._counts.pop())


def _account(caller: Caller) -> str:
    return f"project {caller.project_id}" if caller.project_id else f"user {caller.user_id}"
