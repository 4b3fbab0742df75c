"""Numbers that are none, or longer than any: typed refusals, wherever one is read."""

import pytest
from tests.conformance.conftest import Wire

LONG = "9" * 5_000


@pytest.mark.parametrize("version", [f"1.{LONG}", f"{LONG}.1", "1.9999999999"])
def test_a_version_of_many_digits_is_one_that_does_not_exist(wire: Wire, version: str) -> None:
    assert wire("GET", "/resource_providers", version=version).status == 406


def test_a_length_of_many_digits_is_beyond_the_limit(wire: Wire) -> None:
    for length, status in (
        (LONG, 413),
        ("0" * 30, 200),
        ("0" * 5_000, 400),
        ("1e9", 400),
        ("\u0663", 400),
    ):
        answer = wire("GET", "/resource_providers", headers={"content-length": length})
        assert answer.status == status, length[:10]


@pytest.mark.parametrize(
    "ratio", ["1e400", "-1e400", "NaN", LONG, "-" + LONG, "9" * 4_000, "-" + "9" * 4_000, "-1e39"]
)
def test_a_ratio_that_cannot_be_stored_is_refused(wire: Wire, ratio: str) -> None:
    host = wire.provider("host")
    content = f'{{"VCPU": {{"total": 8, "allocation_ratio": {ratio}}}}}'
    body = f'{{"resource_provider_generation": 0, "inventories": {content}}}'
    answer = wire("PUT", f"/resource_providers/{host}/inventories", raw=body.encode())
    assert answer.status == 400, answer.raw[:200]


@pytest.mark.parametrize("amount", ["1e400", "NaN", LONG, "9" * 4_000, "1e300"])
def test_an_amount_that_nobody_has_is_refused(wire: Wire, amount: str) -> None:
    host = wire.provider("host", VCPU=8)
    body = (
        f'{{"allocations": {{"{host}": {{"resources": {{"VCPU": {amount}}}}}}},'
        ' "project_id": "p", "user_id": "u", "consumer_generation": null,'
        ' "consumer_type": "INSTANCE"}'
    )
    answer = wire("PUT", f"/allocations/{host}", raw=body.encode())
    assert answer.status in {400, 409}, answer.raw[:200]


@pytest.mark.parametrize("amount", [LONG, "9" * 30, "nan", "1e3", "\u00b2"])
def test_a_query_for_an_amount_that_nobody_has_is_answered(wire: Wire, amount: str) -> None:
    answer = wire("GET", f"/allocation_candidates?resources=VCPU:{amount}")
    assert answer.status in {200, 400}, answer.raw[:200]
