"""Where deliveries may go."""

import pytest

from moorage.domain.errors import Forbidden, InvalidDescription
from moorage.domain.targets import MAX_URL, check_target, is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "::1", "fe80::1%eth0", "fc00::1", "::ffff:10.0.0.1", "224.0.0.1", "::"),
        *("192.0.0.1", "192.0.0.9", "198.18.0.1", "198.19.255.255", "240.0.0.1", "255.255.255.255"),
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "239.255.255.250"),
        *("::10.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:100.64.0.1"),
        *("64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1", "100::1"),
        *("2002:0a00:0001::1", "2002:7f00:1::", "2001:0:a00:1::1", "2001::1", "2001:2::1"),
        *("2001:db8::1", "3fff::1", "5f00::1", "fec0::1", "fe80::1", "ff02::1", "ff0e::1"),
    ],
)
def test_own_networks_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "192.0.1.1", "2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8"],
)
def test_others_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *("", "hook", "ftp://a/", "http://", "http://u:p@a/", "http://a:0/", "http://a:70000/"),
        *("http://a b/", "http://a/\n", "http://a/#x\x00", "http://" + "a" * 2000),
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidDescription):
        check_target(url, public_only=False)


def test_the_longest_url_passes_and_one_more_character_is_refused() -> None:
    longest = "http://a/".ljust(MAX_URL, "x")
    check_target(longest, public_only=False)
    with pytest.raises(InvalidDescription):
        check_target(longest + "x", public_only=False)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "10.0.0.7", "x.internal"])
def test_own_addresses_are_refused_where_only_public_ones_are_allowed(host: str) -> None:
    check_target(f"http://{host}:9000/hook", public_only=False)
    with pytest.raises(Forbidden):
        check_target(f"http://{host}:9000/hook", public_only=True)
    check_target("https://hooks.example.org/x?y=1", public_only=True)
