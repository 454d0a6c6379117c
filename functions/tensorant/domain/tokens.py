"""The tokens of a machine, derived from the deployment key: nothing secret needs to be stored.

The one-time token belongs to one ask. Its first exchange binds it to a nonce that the machine made; the
session token follows from ask and nonce, so the same nonce gets the same session when a reply was lost.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

from tensorant.domain.errors import Unauthenticated
from tensorant.domain.machines import Machine

ONE_TIME = "tt1"
SESSION = "ts1"
PLACEHOLDER = "@one-time-token@"
"""Stands in stored user data where the token goes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Which attempt a token says it is for; believed only once the token itself has been compared."""

    kind: str
    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True, repr=False)
class TokenMint:
    """Makes and checks tokens with the deployment key."""

    key: bytes

    def one_time(self, machine: Machine) -> str:
        return self._token(ONE_TIME, machine, machine.client_token)

    def session(self, machine: Machine, nonce: str) -> str:
        return self._token(SESSION, machine, f"{machine.client_token}/{nonce}")

    def _token(self, kind: str, machine: Machine, about: str) -> str:
        digest = hmac.new(self.key, f"{kind}/{about}".encode(), hashlib.sha256).hexdigest()
        return f"{kind}.{machine.run_id}.{machine.attempt}.{digest}"


def claim(token: str, *, kind: str) -> Claim:
    """Read what a token claims. Raises `Unauthenticated` if it is not shaped like one of that kind."""
    shape = re.fullmatch(r"(\w+)\.([\w-]{1,64})\.(\d{1,6})\.[0-9a-f]{64}", token, re.ASCII)
    if shape is None or shape[1] != kind:
        raise refused()
    return Claim(kind=kind, run_id=shape[2], attempt=int(shape[3]))


def require_same(token: str, expected: str) -> None:
    """Compare in constant time. Raises `Unauthenticated`."""
    if not hmac.compare_digest(token.encode(), expected.encode()):
        raise refused()


def refused() -> Unauthenticated:
    return Unauthenticated(
        "token_refused", "The token is not valid.", mend="Machines get theirs from their own user data."
    )
