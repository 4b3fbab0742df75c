"""Fingerprints of requests, for safe retries."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from moorage.domain.errors import DuplicateName

if TYPE_CHECKING:
    from collections.abc import Mapping


def digest(body: Mapping[str, object]) -> str:
    """The fingerprint of a request's body; the order of keys does not matter."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def same_request(kind: str, name: str, *, stored: str, given: str) -> None:
    """Let a repeated request pass.

    Raises:
        DuplicateName: the id was used with another body, or by nobody's request.
    """
    if not given or stored != given:
        raise DuplicateName(kind, name)
