"""Idempotency keys: a client repeats a request safely by sending the same key again.

The id of what the request creates is derived from the key and the project, so that two projects may
send the same key, and neither learns of the other's records by it.
"""

from __future__ import annotations

from uuid import UUID, uuid5


def record_id(key: str, project_id: str) -> str:
    """The id of the record that a project's request with this idempotency key creates.

    Both arguments are as on the wire: a UUID, and the project's id as Keystone has it.
    """
    return str(uuid5(UUID(key), project_id))
