"""Rules of a policy file that another server judges."""

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("rule", "path_"),
    [
        ("placement:resource_providers:list", "/placement/resource_providers"),
        ("moorage:ensembles:list", "/v1/ensembles"),
        ("blazar:leases:get", "/reservation/v1/leases"),
    ],
)
def test_a_check_that_nobody_answers_is_no_fault_of_the_service(
    whole: Any, tmp_path: Path, rule: str, path_: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f'"{rule}": "http://127.0.0.1:1/check"\n')
    client = whole(auth="noauth2", policy_file=str(file))
    answer = client("GET", path_, token="admin")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "5"
