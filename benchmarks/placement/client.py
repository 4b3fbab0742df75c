"""A thin client: it shares the machine with what it measures."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

VERSION = "1.39"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - a decoded JSON value
        """The decoded body."""
        return json.loads(self.body)


class Client:
    """One connection by an admin, or by a member of `project`.

    It is opened again when the server has closed it.
    """

    def __init__(self, port: int, prefix: str, *, project: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._prefix = prefix
        self._identity = (
            {"X-Auth-Token": "admin"}
            if project is None
            else {"X-Auth-Token": f"{project}-user:{project}", "X-Roles": "member"}
        )
        self.received = 0
        """Bytes of bodies so far."""

    def get(self, path: str, version: str = VERSION) -> Answer:
        """Read."""
        return self.send("GET", path, None, version)

    def send(self, method: str, path: str, body: object = None, version: str = VERSION) -> Answer:
        """One request; a connection found closed is tried once more, new.

        A body that is not bytes is sent as JSON.
        """
        headers = self._identity | {"OpenStack-API-Version": f"placement {version}"}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            return self._once(method, path, data, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()
            return self._once(method, path, data, headers)

    def _once(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        try:
            self._connection.request(method, self._prefix + path, data, headers)
            response = self._connection.getresponse()
            answer = Answer(response.status, response.read())
            self.received += len(answer.body)
        except http.client.CannotSendRequest:
            self._connection.close()
            raise
        except OSError:
            self._connection.close()
            raise
        return answer

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
