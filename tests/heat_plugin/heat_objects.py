"""Heat's objects as the plug-in reads them; the real ones are in `tests/minicloud`."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from keystoneauth1.session import Session


class Resource:
    """A resource with its physical id, and Heat's words for its state."""

    FAILED = "FAILED"

    def __init__(
        self,
        resource_id: str | None,
        type_name: str = "OS::Heat::None",
        status: str = "COMPLETE",
        *,
        in_error: bool = False,
    ) -> None:
        self.resource_id, self.status = resource_id, status
        self._type, self._in_error = type_name, in_error

    def type(self) -> str:
        return self._type

    def needs_replace_failed(self) -> bool:
        return self._in_error

    def has_nested(self) -> bool:
        return False


class Server(Resource):
    """Known by the name of its class."""


Server.__module__ = "heat.engine.resources.openstack.nova.server"


class Instance(Resource):
    """Known by the name of its class."""


Instance.__module__ = "heat.engine.resources.aws.ec2.instance"


class Group(Resource):
    """A resource with a stack of its own, once that is made."""

    def __init__(
        self, resource_id: str | None, nested: "Stack | None", removed: str | None = None
    ) -> None:
        super().__init__(resource_id, "OS::Heat::ResourceGroup")
        self._nested = nested
        self._removed = removed

    def data(self) -> dict[str, str]:
        return {} if self._removed is None else {"name_blacklist": self._removed}

    def has_nested(self) -> bool:
        return True

    def nested(self) -> "Stack | None":
        return self._nested


@dataclass
class Environment:
    """The user's environment."""

    parameters: dict[str, Any] = field(default_factory=dict)

    def user_env_as_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters, "resource_registry": {"resources": {}}}


@dataclass
class Template:
    """A template with what goes with it."""

    t: dict[str, Any]
    files: dict[str, Any]
    env: Environment = field(default_factory=Environment)


@dataclass
class Context:
    """Credentials."""

    keystone_session: Session


class Stack:
    """A stack with its resources, and the events that it wrote."""

    def __init__(
        self,
        name: str,
        resources: dict[str, Any],
        template: dict[str, Any] | None = None,
        files: dict[str, Any] | None = None,
    ) -> None:
        self.id, self.name = str(uuid4()), name
        self.owner_id: str | None = None
        self.action, self.status = "CREATE", "IN_PROGRESS"
        self.t = Template(template or {"heat_template_version": "2021-04-16"}, files or {})
        self.adopt_stack_data: dict[str, Any] | None = None
        self.context: Context | None = None
        self.events: list[str] = []
        self._resources = resources

    def items(self) -> Any:
        return self._resources.items()

    def timeout_secs(self) -> float:
        return 3600.0

    def _add_event(self, action: str, status: str, reason: str) -> None:
        self.events.append(reason)
