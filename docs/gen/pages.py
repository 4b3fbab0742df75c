"""The generated pages: address -> the function that writes it.

moorage is imported when a page is made, so the hook itself needs nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen import (
    commands,
    errors,
    events,
    fleet_format,
    joint,
    metrics,
    microversions,
    month,
    native_api,
    policies,
    public,
    rules,
    settings,
    speed,
    time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/policies.md": policies.page,
    "reference/microversions.md": microversions.page,
    "reference/settings.md": settings.page,
    "reference/events.md": events.page,
    "reference/errors.md": errors.page,
    "reference/fleet-format.md": fleet_format.page,
    "reference/metrics.md": metrics.page,
    "reference/rules.md": rules.page,
    "reference/cli.md": commands.page,
    "reference/api.md": native_api.page,
    "reference/speed.md": speed.page,
    "reference/time.md": time.page,
    "reports/joint.md": joint.page,
    "reports/public.md": public.page,
    "reports/month.md": month.page,
}
