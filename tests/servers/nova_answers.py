"""Answers of the small server of `tests.servers.nova` other than the ordinary ones."""

from dataclasses import dataclass


class Lost(Exception):
    """The connection breaks and there is no answer."""


@dataclass
class Reply(Exception):
    """An answer other than the ordinary one."""

    status: int
    message: str = "no"
