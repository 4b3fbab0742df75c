"""Settings that repeat Nova's own: its requests to Placement depend on them."""

from __future__ import annotations

from typing import Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.pci_devices import StandardNames, read_aliases
from moorage.domain.period import say_duration
from moorage.options.kinds import Setting, duration, or_word, show_or_word, show_truth, truth

NEVER: Final = "never"
interval, show_interval = or_word(duration, NEVER), show_or_word(NEVER, say_duration)
"""A duration of at least a second in microseconds, or never."""


def pci_alias(text: str) -> str:
    """An entry of the table of PCI aliases, kept as text."""
    try:
        read_aliases([text], StandardNames())
    except InvalidDescription as error:
        raise ValueError(error.message) from error
    return text


def bus(text: str) -> str:
    """The URL of a message bus with queues for several listeners, or nothing."""
    if text and not text.startswith("rabbit://"):
        raise ValueError("must be a URL such as rabbit://USER:PASSWORD@HOST:5672/")
    return text


NOVA: Final = (
    Setting(
        "pci_alias",
        pci_alias,
        (),
        "JSON",
        "[pci] alias of nova.conf, an entry as it stands there. Flavors with pci_passthrough:alias"
        " name them. May be repeated; not in the environment, where a comma separates values.",
        multi=True,
    ),
    Setting(
        "pci_in_placement",
        truth,
        "false",
        "BOOL",
        "[filter_scheduler] pci_in_placement of nova.conf: whether Nova asks Placement for PCI"
        " devices. If not, only Nova knows whether a host has them.",
        show=show_truth,
    ),
    Setting(
        "image_metadata_prefilter",
        truth,
        "false",
        "BOOL",
        "[scheduler] image_metadata_prefilter of nova.conf: whether Nova makes traits of an image's"
        " architecture and device models.",
        show=show_truth,
    ),
    Setting(
        "query_placement_for_image_type_support",
        truth,
        "false",
        "BOOL",
        "[scheduler] query_placement_for_image_type_support of nova.conf: whether Nova asks for"
        " hosts that support the format of an image.",
        show=show_truth,
    ),
    Setting(
        "nova_sync",
        interval,
        "never",
        "DURATION",
        "How often the service brings its flavors in step with Nova's, and its topology by"
        " `topology_rules`, with the credentials of section [nova]; or never. `moorage admin sync"
        " nova` does it once. A shadow with a section [nova] does it every `shadow_refresh`, or as"
        " often as this says, and takes over Nova's server groups too.",
        show=show_interval,
    ),
    Setting(
        "nova_notifications",
        bus,
        "",
        "URL",
        "The message bus to which Nova sends versioned notifications, as in its `transport_url`:"
        " `rabbit://USER:PASSWORD@HOST:5672/`. Hosts whose compute service is disabled, enabled or"
        " forced down are then known at once; `nova_sync` says the rest. A section"
        " `[oslo_messaging_rabbit]` has the options of the connection. Needs the extra"
        " moorage[notifications]. Empty: notifications are not read.",
        secret=True,
    ),
    Setting(
        "topology_rules",
        str,
        "",
        "FILE",
        "A fleet file that places hosts in racks, zones and other domains, by Nova's availability"
        " zones and aggregates too; read at each time. Empty: the topology is left alone.",
    ),
)
