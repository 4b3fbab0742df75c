"""A request as handlers get it; independent of the framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from moorage.http.microversion import Response

if TYPE_CHECKING:
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed routing, version, access rules and schemas.

    Handlers know the newest version alone: `body` has its shape, and so has what they answer.
    """

    env: UseCaseEnvironment
    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, str]
    """Of a name that is given several times the last value."""
    body: Any = None


Handler: TypeAlias = Callable[[Call], Response]
