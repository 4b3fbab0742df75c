"""Delivers an event to a subscriber's URL: signed, to permitted addresses, once.

Headers and signature are those of the Standard Webhooks convention. A name is looked up here, each
of its addresses judged, and the connection made to the very address that was judged.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moorage.client.certificates import trusted_at
from moorage.domain.period import SECOND
from moorage.domain.targets import is_public
from moorage.outward.timeout import call_with_timeout
from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    import httpx

    from moorage.usecases.events.deliver import OutgoingEvent

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

_GOOD: Final = range(200, 300)
_GONE: Final = "its address is not public"


@dataclass(frozen=True, slots=True)
class SubscriberClient:
    """A client for subscribers' URLs. A status of 200 to 299 counts as delivered."""

    timeout: float
    """Seconds for all of it: name, connection, request and answer."""
    public_only: bool

    def __call__(self, sending: OutgoingEvent) -> str:
        """Send it.

        Raises:
            OutwardFailure: it may not be reached, was not, took too long, or answered anything
                else.
        """
        import httpx  # noqa: PLC0415 - as in `webhook`

        parts = urlsplit(sending.url)
        where = parts.netloc
        # No redirect is followed, and no proxy of the environment used.
        client = httpx.Client(
            timeout=self.timeout,
            follow_redirects=False,
            trust_env=False,
            verify=trusted_at(sending.url),
        )
        try:
            status = call_with_timeout(self.timeout, where, lambda: self._post(client, sending))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise OutwardFailure(f"{where}: {str(error) or type(error).__name__}") from error
        finally:
            client.close()  # a thread that still waits finds its connection closed
        if status not in _GOOD:
            raise OutwardFailure(f"{where} answered {status}")
        return f"{where} answered {status}"

    def _post(self, client: httpx.Client, sending: OutgoingEvent) -> int:
        """The answer's status; its body is not read."""
        import httpx  # noqa: PLC0415 - as above

        url = httpx.URL(sending.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        address = self._address(url.host, port)
        seconds = str(sending.at // SECOND)
        headers = {
            "Host": url.netloc.decode(),
            "Content-Type": "application/json",
            "User-Agent": "moorage",
            ID: sending.id,
            TIMESTAMP: seconds,
            SIGNATURE: signature(sending.secret, sending.id, seconds, sending.body),
        }
        with client.stream(
            "POST",
            url.copy_with(host=address),
            content=sending.body,
            headers=headers,
            extensions={"sni_hostname": url.host},  # whose certificate it has to be
        ) as answer:
            return answer.status_code

    def _address(self, host: str, port: int) -> str:
        """An address of a host name; refused if any of its addresses is not permitted."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(one[4][0]) for one in found]
        if self.public_only and not all(map(is_public, addresses)):
            raise OSError(_GONE)
        return addresses[0]


def signature(secret: str, id_: str, seconds: str, body: bytes) -> str:
    """The signature that a receiver verifies: `v1,` and the HMAC in base64."""
    key = base64.b64decode(secret.partition("_")[2])
    signed = b".".join((id_.encode(), seconds.encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
