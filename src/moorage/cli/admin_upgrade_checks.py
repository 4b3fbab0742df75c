"""The checks of `moorage admin upgrade check`, each with its result and what to do.

They write nothing, not even the schema of a ledger that could be upgraded.
"""

from __future__ import annotations

import logging
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final
from wsgiref.util import setup_testing_defaults

from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from moorage import settings
from moorage.cli.admin import OPERATOR
from moorage.domain.errors import Busy, InvalidDescription, MoorageError
from moorage.domain.period import format_instant
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.domain.content import Content
    from moorage.settings import Effective, Settings
    from moorage.store import Ledger

SECONDS: Final = 10.0
"""How long another service may take for an answer."""
_OVERRUN: Final = 100
_GOOD: Final = range(200, 300)


class UpgradeChecks(UpgradeCommands):
    """The checks of one configuration; `results` has what was found, in order."""

    def __init__(
        self, given: Mapping[str, Any], content: Callable[[], Content] | None = None
    ) -> None:
        """Check by these options of the command line; `content` reads an imported Placement."""
        self.results: list[tuple[str, Result]] = []
        self._given = given
        self._content = content
        self._found: tuple[Effective, Settings] | None = None
        self._current = False
        checks: list[tuple[str, Callable[[], Result]]] = [
            ("Settings", self._settings),
            ("Database", self._database),
            ("Schema", self._schema),
            ("Access rules and tokens", self._access),
            ("Keystone", self._keystone),
            ("Nova", self._nova),
            ("Ledger", self._ledger),
            ("Ended bookings", self._ended),
        ]
        if content is not None:
            checks.append(("Import from Placement", self._import))
        self._upgrade_checks = tuple((name, self._kept(name, check)) for name, check in checks)

    def _kept(self, name: str, check: Callable[[], Result]) -> Callable[[object], Result]:
        """The check as the library calls it; what it raises is a failure."""

        def checked(_: object) -> Result:
            try:
                result = check()
            except MoorageError as error:
                result = Result(Code.FAILURE, error.message)
            except Exception as error:  # noqa: BLE001 - its status must not be that of a warning
                result = Result(Code.FAILURE, f"unexpected {type(error).__name__}: {error}")
            self.results.append((name, result))
            return result

        return checked

    @property
    def _configured(self) -> tuple[Effective, Settings]:
        if self._found is None:
            raise InvalidDescription("not checked: the settings cannot be used")
        return self._found

    def read_settings(self) -> Effective:
        """The settings that are checked."""
        return settings.read(self._given, os.environ)

    # --- the service's own ----------------------------------------------------------------------

    def _settings(self) -> Result:
        effective = self.read_settings()
        self._found = effective, settings.configure(effective)
        doubts = [*_doubts(effective), *_unread(effective)]
        return Result(Code.WARNING, "; ".join(doubts)) if doubts else Result(Code.SUCCESS)

    def _database(self) -> Result:
        _, configured = self._configured
        from moorage.store.database_status import database_status

        found = database_status(configured.database)
        if found.too_old:
            return Result(Code.FAILURE, f"{found.server} is too old; see the guide on databases")
        return Result(Code.SUCCESS, found.server)

    def _schema(self) -> Result:
        _, configured = self._configured
        from moorage.store.database_status import database_status, needs_upgrade

        found = database_status(configured.database)
        if found.of_placement:
            return Result(
                Code.FAILURE,
                "this is openstack-placement's database: give Moorage one of its own, and bring the"
                " content over with `moorage admin import placement`",
            )
        if found.missing:
            return Result(
                Code.WARNING,
                f"there is no ledger in {settings.masked(configured.database)}: the first start"
                " makes it",
            )
        self._current = not needs_upgrade(configured.database)
        if self._current:
            return Result(Code.SUCCESS, f"revision {found.newest}")
        if found.reached == found.newest:
            told = f"revision {found.newest}; the next start adds standard names"
            return Result(Code.SUCCESS, told)
        return Result(
            Code.SUCCESS,
            f"revision {found.reached}: the next start upgrades it to {found.newest}; make a backup"
            " before",
        )

    def _access(self) -> Result:
        _, configured = self._configured
        from moorage.api.access_rules import known_rules
        from moorage.api.native import rules as native_rules
        from moorage.http.auth_strategy import auth_strategy

        known = known_rules(new_defaults=configured.rules.new_defaults)
        native_rules.access_by(configured.rules, known)
        auth_strategy(configured.server.auth, configured.callers)
        file = configured.rules.file
        rules = f"rules of {file}" if file else "default rules"
        return Result(Code.SUCCESS, f"{rules}, auth {configured.server.auth}")

    # --- other services -------------------------------------------------------------------------

    def _keystone(self) -> Result:
        _, configured = self._configured
        if configured.server.auth != "keystone":
            return Result(Code.SUCCESS, f"not needed: auth is {configured.server.auth}")
        from moorage.http.auth_strategy import auth_strategy

        # A token that cannot be valid: the answer needs the service's own credentials. That it is
        # refused is as it should be, and no line for the operator.
        logging.getLogger("keystonemiddleware").setLevel(logging.CRITICAL)
        request: dict[str, Any] = {"HTTP_X_AUTH_TOKEN": "moorage-upgrade-check"}
        setup_testing_defaults(request)
        try:
            auth_strategy("keystone", configured.callers).authenticate(request, "req-upgrade-check")
        except Busy as error:
            url = configured.callers.keystone.get("auth_url", "")
            return Result(
                Code.FAILURE,
                f"{error.message}: it does not answer at {url}, or refuses the credentials of"
                " [keystone_authtoken]",
            )
        return Result(Code.SUCCESS, "it answers, and accepts the service's credentials")

    def _nova(self) -> Result:
        _, configured = self._configured
        outward = configured.outward
        uses = [
            name
            for name, used in (
                ("end_servers", outward.end_servers == "nova"),
                ("move_servers", outward.move_servers == "nova"),
                ("ticket_flavors", outward.ticket_flavors),
            )
            if used
        ]
        if not uses:
            return Result(
                Code.SUCCESS,
                "not needed: none of end_servers, move_servers and ticket_flavors is nova",
            )
        from moorage.outward.nova import compute_adapter
        from moorage.outward.timeout import call_with_timeout

        compute = compute_adapter(outward.nova, SECONDS, uses[0])
        status = call_with_timeout(SECONDS, "Nova", lambda: _asked(compute))
        if status not in _GOOD:
            return Result(
                Code.FAILURE, f"Nova answered {status} to GET /flavors ({uses[0]} = nova)"
            )
        return Result(Code.SUCCESS, f"it answers; used for {' and '.join(uses)}")

    # --- the ledger -----------------------------------------------------------------------------

    def _opened(self) -> Ledger:
        """The ledger.

        Raises:
            InvalidDescription: there is none, or opening it would upgrade it.
        """
        _, configured = self._configured
        if not self._current:
            raise InvalidDescription("not checked: the schema is not this version's own")
        from moorage.store import open_store

        return open_store(configured.database)

    def _ledger(self) -> Result:
        if not self._current:
            return Result(Code.SUCCESS, "not checked: the schema is not this version's own")
        from moorage.usecases.ledger.audit import audit

        with closing(self._opened()) as store:
            found = audit(store, OPERATOR, None)
        if not found.findings:
            return Result(Code.SUCCESS, f"{counted(found.consumers, 'consumer')}, no findings")
        kinds = [one.kind.value for one in found.findings]
        numbers = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        return Result(Code.WARNING, f"{numbers}: `moorage admin audit` lists them")

    def _ended(self) -> Result:
        if not self._current:
            return Result(Code.SUCCESS, "not checked: the schema is not this version's own")
        with closing(self._opened()) as store:
            late = store.overrun((0, ""), _OVERRUN)
        if not late:
            return Result(Code.SUCCESS, "no server is past its planned end")
        more = "at least " if len(late) == _OVERRUN else ""
        first = late[0]
        return Result(
            Code.WARNING,
            f"{more}{counted(len(late), 'server')} past the planned end, the first"
            f" {first.consumer.uuid} since {format_instant(first.end)}: they take their places"
            " until they are deleted (setting end_servers)",
        )

    def _import(self) -> Result:
        assert self._content is not None, "or it is no check"
        from moorage.domain.content import DifferenceWay
        from moorage.usecases.ledger.placement_takeover import plan

        content = self._content()
        with closing(self._opened()) as store:
            differences = plan(store, OPERATOR, content, topology=None).differences
        missing = [one for one in differences if one.way is DifferenceWay.MISSING]
        if missing:
            return Result(
                Code.FAILURE,
                f"{counted(len(missing), 'record')} of the source not in the ledger, the first:"
                f" {missing[0].kind} {missing[0].subject}. Repeat `moorage admin import placement`",
            )
        if differences:
            return Result(
                Code.WARNING,
                f"{counted(len(differences), 'record')} changed since the import: repeat it with"
                " --mirror before the switch-over",
            )
        return Result(Code.SUCCESS, "the ledger is equal to the source")


def _doubts(effective: Effective) -> Iterator[str]:
    """Settings that cannot both be meant."""
    value = effective.values
    auth = value["auth"]
    if effective.keystone and auth != "keystone":
        yield f"there is a section [keystone_authtoken], but auth is {auth}"
    if value["token_file"] and auth != "token-file":
        yield f"there is a token_file, but auth is {auth}"
    if value["insecure"] and auth == "noauth2":
        yield "auth is noauth2: everybody who reaches the port is believed to be an administrator"
    users = ("end_servers", "move_servers", "ticket_flavors")
    if effective.nova and all(value[one] != "nova" for one in users):
        yield f"there is a section [nova], but none of {', '.join(users)} is nova"
    if value["clock_file"]:
        yield "clock_file is for simulations: the time is what that file says"


def _unread(effective: Effective) -> Iterator[str]:
    """What is said and has no meaning."""
    for sentence in effective.ignored:
        yield f"ignored {sentence}"
    for variable in settings.strange_variables(os.environ):
        yield f"ignored {variable}: there is no such setting"


def _asked(compute: Any) -> int:  # noqa: ANN401 - keystoneauth's adapter
    from keystoneauth1 import exceptions

    try:
        answer = compute.get("/flavors?limit=1", raise_exc=False)
    except exceptions.ClientException as error:
        raise Busy(f"Nova cannot be asked: {error}") from error
    return int(answer.status_code)
