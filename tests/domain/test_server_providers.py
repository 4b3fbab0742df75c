"""Server providers: who may use one."""

from dataclasses import replace

from moorage.domain.server_providers import ServerProvider

MADE = ServerProvider("provider", "server", "owner", frozenset({"guest"}))


def test_nobody_but_the_owner_and_whom_it_names_may_use_one() -> None:
    assert [MADE.usable_by(one) for one in ("owner", "guest", "other")] == [True, True, False]
    alone, public = replace(MADE, shared_with=frozenset()), replace(MADE, shared_with=None)
    assert [alone.usable_by(one) for one in ("owner", "guest")] == [True, False]
    assert public.usable_by("other")
