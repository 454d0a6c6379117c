"""What the makers of resources share: their surroundings, and properties that must all be accounted for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from tensorant_local.template import Created, NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tensorant_local.http_front import HttpFront
    from tensorant_local.http_routes import Route
    from tensorant_local.jwt_authorizer import JwtAuthorizer
    from tensorant_local.lambda_host import LambdaHost

ACCOUNT_ID = "123456789012"
REGION = "us-east-1"
PARTITION = "aws"

_ABSENT = object()


class Aws(Protocol):
    """The embedded AWS: where it answers, and clients for it."""

    @property
    def url(self) -> str: ...

    def client(self, service: str) -> Any: ...


@dataclass(frozen=True)
class Permission:
    """A statement of a function's resource policy: this service may invoke it for this source."""

    function: str
    principal: str
    source: str

    def allows(self, function: str, principal: str, source: str) -> bool:
        return (function, principal) == (self.function, self.principal) and fnmatchcase(source, self.source)


@dataclass
class Site:
    """Where a stack is built, and what its resources learn of each other beyond Ref and Fn::GetAtt."""

    stack: str
    aws: Aws
    functions: LambdaHost
    front: HttpFront
    code: Path
    """The folder of the functions' sources, which stands for every bundle."""

    role_names: dict[str, str] = field(default_factory=dict)
    integrations: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By id: the function's name and its time limit in seconds."""
    authorizers: dict[str, JwtAuthorizer] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    api_id: str = ""
    permissions: list[Permission] = field(default_factory=list)
    invocations: list[tuple[str, str, str]] = field(default_factory=list)
    """Function, service and source of every invocation that the stack sets up; each needs a permission."""
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """One client for each service: to make one takes longer than to use it."""
        if service not in self.clients:
            self.clients[service] = self.aws.client(service)
        return self.clients[service]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()

    def name(self, logical_id: str, *, limit: int = 64) -> str:
        """A physical name, as CloudFormation makes one where the template gives none."""
        return f"{self.stack}-{logical_id}"[:limit]

    def arn(self, service: str, resource: str, *, region: str = REGION, account: str = ACCOUNT_ID) -> str:
        return f"arn:{PARTITION}:{service}:{region}:{account}:{resource}"


class Properties:
    """A resource's resolved properties. What a maker neither takes nor knows to be without effect is an error."""

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        self._path = path
        self._values = values
        self._taken: set[str] = set()
        self._children: list[Properties] = []

    def take(self, name: str, default: Any = _ABSENT) -> Any:
        """One value, as it is. Raises NotUnderstood if it is absent and there is no default."""
        self._taken.add(name)
        if name in self._values:
            return self._values[name]
        if default is _ABSENT:
            raise NotUnderstood(f"{self._path} without {name}")
        return default

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the named values that are there: for calls whose parameters have the template's names."""
        self._taken.update(names)
        return {name: self._values[name] for name in names if name in self._values}

    def expect(self, name: str, *values: Any) -> Any:
        """A value of which only some have a meaning here; None if absent. Raises NotUnderstood."""
        value = self.take(name, None)
        if value is not None and value not in values:
            raise NotUnderstood(f"{self._path}.{name} {value!r}")
        return value

    def nested(self, name: str) -> Properties:
        """An object, empty if absent."""
        return self._child(f"{self._path}.{name}", self.take(name, {}))

    def each(self, name: str) -> Iterator[Properties]:
        """A list of objects, empty if absent."""
        for position, item in enumerate(self.take(name, [])):
            yield self._child(f"{self._path}.{name}[{position}]", item)

    def disregard(self, known: Mapping[str, str]) -> None:
        """Properties without effect here, each with the reason."""
        self._taken.update(known)

    def finish(self) -> None:
        """Raises NotUnderstood if anything is left over, at any depth."""
        if left := self._values.keys() - self._taken:
            raise NotUnderstood(", ".join(f"{self._path}.{name}" for name in sorted(left)))
        for child in self._children:
            child.finish()

    def _child(self, path: str, values: Mapping[str, Any]) -> Properties:
        child = Properties(path, values)
        self._children.append(child)
        return child


Maker = Callable[[Site, str, Properties], Created]
"""Makes one resource, given its logical id; `finish` is called on the properties afterwards."""
