"""API Gateway's JWT authorizer.

Rules: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import jwt

ALGORITHMS = ("RS256", "RS384", "RS512")
"""API Gateway accepts RSA signatures alone."""

Claims = dict[str, Any]
KeySource = Callable[[], bytes]
"""Fetches the issuer's JWKS, as JSON."""


class Unauthorized(Exception):
    """The token is missing, not the issuer's, not for this API, or out of its time."""


class JwtAuthorizer:
    """Checks tokens of one issuer for one audience; keys are fetched at first need and when one is unknown."""

    def __init__(self, *, issuer: str, audience: tuple[str, ...], keys: KeySource) -> None:
        self.issuer = issuer
        self.audience = audience
        self._fetch = keys
        self._keys: dict[str, jwt.PyJWK] = {}
        self._lock = Lock()

    def claims(self, authorization: str | None) -> Claims:
        """The claims of an Authorization header's token; `Bearer` may be left out. Raises Unauthorized."""
        token = (authorization or "").removeprefix("Bearer ").strip()
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims: Claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=self.issuer,
                options={"require": ["exp", "iss"], "verify_aud": False},
            )
        except jwt.PyJWTError as error:
            raise Unauthorized(str(error)) from error
        if not self._is_for_us(claims):
            raise Unauthorized("the token is for another audience")
        return claims

    def _is_for_us(self, claims: Claims) -> bool:
        """`aud` decides; `client_id` (Cognito's access tokens) only where there is no `aud`."""
        audience = claims.get("aud") or claims.get("client_id")
        named = audience if isinstance(audience, list) else [audience]
        return not set(self.audience).isdisjoint(named)

    def _key(self, key_id: str | None) -> jwt.PyJWK:
        with self._lock:
            if key_id not in self._keys:
                found = jwt.PyJWKSet.from_dict(json.loads(self._fetch())).keys
                self._keys = {key.key_id: key for key in found if key.key_id}
            if key_id is None or key_id not in self._keys:
                raise Unauthorized(f"the issuer has no key {key_id!r}")
            return self._keys[key_id]


def as_strings(claims: Claims) -> dict[str, str]:
    """Claims as a function sees them: every value a string, lists and maps as Go prints them (`[a b]`)."""
    return {name: _as_string(value) for name, value in claims.items()}


def _as_string(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{' '.join(map(_as_string, value))}]"
        case Mapping():
            return f"map[{' '.join(f'{name}:{_as_string(item)}' for name, item in value.items())}]"
        case _:
            return str(value)
