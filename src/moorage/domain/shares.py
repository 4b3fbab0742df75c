"""Shares: the consent of a project to a role of another project's ensemble."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from moorage.domain.errors import WrongState


class ShareState(StrEnum):
    """`offered -> accepted -> revoked`, or declined: `offered -> revoked`."""

    OFFERED = "offered"
    ACCEPTED = "accepted"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Share:
    """The project whose servers a role's members are, and whether it consents.

    The id is of one offer: a role that its ensemble's project changes is offered anew, under
    another id, so that nobody accepts what it has not seen.
    """

    id: str
    project_id: str
    state: ShareState = ShareState.OFFERED
    user_id: str | None = None
    """Who accepted it, or an offer of the same role before it; None: nobody, or it is revoked."""

    @property
    def joined(self) -> bool:
        """Whether the project takes part: it accepted, and the share is not revoked since."""
        return self.user_id is not None

    def accepted(self, user_id: str) -> Share:
        """The share with the project's consent.

        Raises:
            WrongState: it is accepted already, or revoked.
        """
        if self.state is not ShareState.OFFERED:
            raise WrongState(f"share {self.id} is {self.state}: only an offered one is accepted")
        return replace(self, state=ShareState.ACCEPTED, user_id=user_id)

    def revoked(self) -> Share:
        """The share without the consent, or declined.

        Raises:
            WrongState: it is revoked already.
        """
        if self.state is ShareState.REVOKED:
            raise WrongState(f"share {self.id} is revoked already")
        return replace(self, state=ShareState.REVOKED, user_id=None)

    def offered_anew(self, id_: str) -> Share:
        """The offer of a role that has changed."""
        return replace(self, id=id_, state=ShareState.OFFERED)
