"""Virtual classes of flavors, and the providers that stand in for them elsewhere."""

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.servers import Server
from moorage.domain.stand_ins import tied_servers
from moorage.domain.virtual_classes import classes_of_flavor


@pytest.mark.parametrize(
    ("key", "amount", "expected"),
    [
        ("resources:CUSTOM_MOORAGE_HOURS", "48", {"CUSTOM_MOORAGE_HOURS"}),
        ("resources1:CUSTOM_RESERVATION_4A1B", "1", {"CUSTOM_RESERVATION_4A1B"}),
        ("resources_NET:CUSTOM_MOORAGE_TICKET_X", "1", {"CUSTOM_MOORAGE_TICKET_X"}),
        ("resources:CUSTOM_MOORAGE_HOURS", "0", set()),
        ("resources:CUSTOM_FPGA", "1", set()),
        ("trait:CUSTOM_MOORAGE_HOURS", "required", set()),
    ],
)
def test_what_a_flavor_requests(key: str, amount: str, expected: set[str]) -> None:
    assert classes_of_flavor({key: amount, "hw:cpu_policy": "shared"}) == expected


def test_servers_whose_flavors_are_not_shown_are_an_error() -> None:
    plain, tied = Server("a", classes=frozenset()), Server("b", classes=frozenset({"X"}))
    assert [one.server for one in tied_servers([plain, tied])] == [tied]
    with pytest.raises(InvalidDescription, match="extra specs of server c"):
        tied_servers([plain, Server("c")])
