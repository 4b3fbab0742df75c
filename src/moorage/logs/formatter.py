"""One line per record: for people (`text`) or for programs (`json`)."""

from __future__ import annotations

import json
import logging
import sys
import time
from logging.handlers import WatchedFileHandler
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import BadConfiguration
from moorage.logs.ids import CURRENT

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMATS: Final = ("text", "json")
"""The forms there are."""

FIELDS: Final = "fields"
"""Attribute of a record (`extra=`) with a mapping of what its message says, for programs."""

_CHATTY: Final = ("alembic",)
"""They tell each of their steps at INFO, at every start."""


def configure(level: str, form: str, file: str = "", *, stderr: bool = True) -> None:
    """Send the process's log to standard error, a file or both, from `level` up.

    Processes may share the file: each line is appended whole. It is opened again when it was moved
    or removed, as logrotate does.

    Raises:
        BadConfiguration: the file cannot be written.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if stderr else []
    if file:
        try:
            handlers.append(WatchedFileHandler(file, encoding="utf-8"))
        except OSError as error:
            raise BadConfiguration(
                f"cannot log to {file}: {error.strerror}", path="log_file"
            ) from error
    for handler in handlers:
        handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=handlers, force=True)
    quiet = max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()])
    for name in _CHATTY:
        logging.getLogger(name).setLevel(quiet)


class _Text(logging.Formatter):
    """`time process LEVEL logger [request id for caller's id] message`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(process)d %(levelname)s %(name)s %(ids)s%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line; whatever a client sent, it stays one."""
        ids = CURRENT.get()
        sent = f" for {ids.called_by}" if ids.called_by else ""
        record.ids = f"[{ids.own}{sent}] " if ids.own else ""
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)


class _Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object: what every record has, then what this one says in particular."""
        ids = CURRENT.get()
        line: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if ids.own:
            line["request_id"] = ids.own
        if ids.called_by:
            line["global_request_id"] = ids.called_by
        fields: Mapping[str, object] = getattr(record, FIELDS, {})
        line.update(fields)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _utc(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"
