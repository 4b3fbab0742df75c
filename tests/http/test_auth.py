"""noauth2, row by row as the reference Placement server has it."""

import pytest

from moorage.http.auth import noauth2


@pytest.mark.parametrize(
    ("headers", "user", "project", "roles"),
    [
        ({"X_AUTH_TOKEN": "admin"}, "admin", "admin", {"admin"}),
        ({"X_AUTH_TOKEN": "admin:shop"}, "admin", "shop", {"admin"}),
        ({"X_AUTH_TOKEN": "eve"}, "eve", "eve", set()),
        ({"X_AUTH_TOKEN": "eve:"}, "eve", "eve", set()),
        ({"X_AUTH_TOKEN": "eve:admin"}, "eve", "admin", set()),
        ({"X_AUTH_TOKEN": "eve:shop:more"}, "eve", "shop:more", set()),
        ({"X_AUTH_TOKEN": ""}, "", "", set()),
        ({"X_AUTH_TOKEN": "Admin"}, "Admin", "Admin", set()),
        ({"X_AUTH_TOKEN": "admin", "X_ROLES": "reader"}, "admin", "admin", {"reader"}),
        ({"X_AUTH_TOKEN": "admin", "X_ROLES": ""}, "admin", "admin", set()),
        (
            {"X_AUTH_TOKEN": "eve", "X_ROLES": "Admin, SERVICE ,"},
            "eve",
            "eve",
            {"admin", "service"},
        ),
        ({"X_AUTH_TOKEN": "eve:shop", "X_PROJECT_ID": "other"}, "eve", "other", set()),
        ({"X_AUTH_TOKEN": "admin:shop", "OPENSTACK_SYSTEM_SCOPE": "all"}, "admin", "", {"admin"}),
    ],
)
def test_the_token_is_believed(
    headers: dict[str, str], user: str, project: str, roles: set[str]
) -> None:
    caller = noauth2({f"HTTP_{name}": value for name, value in headers.items()}, "req-1")
    assert caller is not None
    assert (caller.user_id, caller.project_id, set(caller.roles)) == (user, project, roles)
    assert caller.request_id == "req-1"


def test_no_token_is_nobody() -> None:
    assert noauth2({"HTTP_X_ROLES": "admin"}, "req-1") is None
