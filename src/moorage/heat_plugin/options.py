"""The plug-in's options in heat.conf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from oslo_config import cfg

GROUP: Final = "moorage"
OFF, ANNOTATED, ADVISE, ENFORCE = "off", "annotated", "advise", "enforce"
REFUSE, ORDINARY = "refuse", "ordinary"
OPTIONS: Final = (
    cfg.StrOpt(
        "stacks",
        choices=[
            (OFF, "none: as if the plug-in were not there"),
            (ANNOTATED, "stacks with an annotation `moorage` in a template of theirs; must fit"),
            (ADVISE, "all, without a hold: a refusal is an event of the stack, and nothing else"),
            (ENFORCE, "all; must fit"),
        ],
        default=ANNOTATED,
        help="Which stacks ask Moorage before they act.",
    ),
    cfg.StrOpt(
        "failure_mode",
        choices=[
            (REFUSE, "the stack fails before any resource is made"),
            (ORDINARY, "it goes on, and Nova finds hosts one server at a time"),
        ],
        default=REFUSE,
        help="What a stack that must fit does without an answer of Moorage's.",
    ),
    cfg.StrOpt(
        "endpoint", help="URL of Moorage's native API; by default the catalogue's type `ensemble`."
    ),
    cfg.StrOpt("interface", default="public", help="The catalogue's interface that is used."),
    cfg.IntOpt(
        "hold",
        default=4 * 3600,
        min=1,
        help="Seconds for which places are held at most, where a stack may take longer; no more"
        " than `longest_hold` of the service.",
    ),
    cfg.FloatOpt("timeout", default=60, min=1, help="Seconds for each request to Moorage."),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The options' values."""

    stacks: str = ANNOTATED
    failure_mode: str = REFUSE
    endpoint: str | None = None
    interface: str = "public"
    timeout: float = 60
    hold: int = 4 * 3600
    region: str | None = None


def read() -> Settings:
    """The values in Heat's configuration."""
    conf = cfg.CONF
    conf.register_opts(OPTIONS, group=GROUP)
    section = conf[GROUP]
    return Settings(
        stacks=section.stacks,
        failure_mode=section.failure_mode,
        endpoint=section.endpoint,
        interface=section.interface,
        timeout=section.timeout,
        hold=section.hold,
        region=conf.get("region_name_for_services"),
    )
