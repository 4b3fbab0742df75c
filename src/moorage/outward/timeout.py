"""A call with a time limit.

Libraries bound each wait for the network, not all of them together: a server that sends a byte a
second would never come to an end. So the call runs in a thread, which is left behind when it is
late; it ends by itself when its connection does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")


def call_with_timeout(seconds: float, what: str, call: Callable[[], T]) -> T:
    """The result or exception of the call.

    Raises:
        OutwardFailure: it takes longer than this.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            errors.append(error)

    thread = threading.Thread(target=work, name=f"moorage-{what}", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise OutwardFailure(f"{what} did not answer in {seconds:g} s")
    return results[0]
