"""Logins while Keystone does not answer."""

import socket
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

from moorage.domain.errors import Busy
from moorage.http.config import IdentityAddress
from moorage.web.keystone_login import KeystoneLogin
from moorage.web.login import LoginRequest

ASKED = LoginRequest(user="ann", password="secret")
LONG = 120.0


def test_strangers_who_log_in_take_some_threads_and_never_all() -> None:
    with ThreadPoolExecutor(8) as threads:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = IdentityAddress(f"http://127.0.0.1:{silent.getsockname()[1]}")
            login = KeystoneLogin(address, seconds=LONG)
            tried = [threads.submit(login.enter, ASKED) for _ in range(8)]
            # Those who are too many are answered while the others wait for Keystone.
            refused = [one.exception() for one in islice(as_completed(tried, LONG / 4), 4)]
        left = [one.exception() for one in tried if one.exception() not in refused]
    assert all(isinstance(one, Busy) and "too many logins" in str(one) for one in refused)
    assert all(isinstance(one, Busy) and "cannot be asked" in str(one) for one in left)
    assert (len(refused), len(left)) == (4, 4)
