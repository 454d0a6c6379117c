"""Which route of an HTTP API answers a request.

Rules: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorant_local.jwt_authorizer import JwtAuthorizer

DEFAULT = "$default"
INTEGRATION_SECONDS = 30.0
"""API Gateway's limit, which no HTTP API can raise."""

_ROUTE_KEY = re.compile(r"(ANY|GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (/\S*)")
_VARIABLE = re.compile(r"\{(\w+)(\+?)\}")


@dataclass(frozen=True)
class Route:
    """A route key (`POST /v1/runs/{run_id}`, `ANY /v1/{proxy+}`, `$default`) and the function behind it."""

    key: str
    function: str
    authorizer: JwtAuthorizer | None = None
    timeout_seconds: float = INTEGRATION_SECONDS

    def __post_init__(self) -> None:
        if self.key != DEFAULT and not _ROUTE_KEY.fullmatch(self.key):
            raise ValueError(f"{self.key!r} is no route key of an HTTP API")

    @cached_property
    def _method(self) -> str:
        return "ANY" if self.key == DEFAULT else self.key.split(" ")[0]

    @cached_property
    def _segments(self) -> tuple[str, ...]:
        return () if self.key == DEFAULT else tuple(self.key.split(" ")[1].split("/")[1:])

    @cached_property
    def specificity(self) -> tuple[bool, tuple[int, ...], bool]:
        """Smaller is more specific: a literal segment, then a variable, then a greedy one; a method before ANY."""
        return self.key == DEFAULT, tuple(map(_vagueness, self._segments)), self._method == "ANY"

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """The path's parameters, or None if the route does not answer this request."""
        if self.key == DEFAULT:
            return {}
        if self._method not in {"ANY", method}:
            return None
        parameters: dict[str, str] = {}
        given = path.split("/")[1:]
        for position, segment in enumerate(self._segments):
            variable = _VARIABLE.fullmatch(segment)
            if variable and variable[2]:
                rest = "/".join(given[position:])
                return {**parameters, variable[1]: rest} if rest else None
            if position >= len(given) or not (given[position] if variable else segment == given[position]):
                return None
            if variable:
                parameters[variable[1]] = given[position]
        return parameters if len(given) == len(self._segments) else None


@dataclass(frozen=True)
class HttpApi:
    """An API as deployed: its id and its routes, the most specific first."""

    id: str
    routes: tuple[Route, ...] = field(default=())

    @classmethod
    def of(cls, api_id: str, routes: Iterable[Route]) -> HttpApi:
        return cls(api_id, tuple(sorted(routes, key=lambda route: route.specificity)))

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        for route in self.routes:
            parameters = route.match(method, path)
            if parameters is not None:
                return route, parameters
        return None


def _vagueness(segment: str) -> int:
    variable = _VARIABLE.fullmatch(segment)
    if variable is None:
        return 0
    return 2 if variable[2] else 1
