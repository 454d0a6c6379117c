"""STS: roles that customers make for Tensorant are assumed only as their trust policies say.

moto lets anybody assume any role, even one that does not exist. That stays so for roles of other names, by
which tests get into other accounts.
"""

from __future__ import annotations

import json
from typing import Any

from moto.core.exceptions import AccessDeniedError
from moto.iam.models import iam_backends
from moto.sts.models import STSBackend

from tensorant_local.aws.mending import Mends

PREFIX = "tensorant-"
ASSUME = "sts:AssumeRole"
EXTERNAL_ID = "sts:ExternalId"

mends = Mends()


def apply() -> None:
    """Mend STS; safe to repeat."""
    mends.apply()


@mends(STSBackend, "assume_role")
def trust_policies_are_not_read(original: Any, backend: Any, **asked: Any) -> Any:
    """Absence and refusal look the same to whoever asks.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_common-scenarios_third-party.html
    """
    arn = asked["role_arn"]
    if arn.split(":role/")[-1].startswith(PREFIX) and not _trusts(
        arn, backend.account_id, asked["external_id"]
    ):
        caller = f"arn:aws:iam::{backend.account_id}:user/moto"
        raise AccessDeniedError(caller, f"{ASSUME} on resource: {arn}")
    return original(backend, **asked)


def _trusts(arn: str, caller: str, external_id: str | None) -> bool:
    own = arn.split(":")[4] == caller
    for role in list(iam_backends[arn.split(":")[4]]["aws"].roles.values()):
        if role.arn == arn:
            statements = _listed(json.loads(role.assume_role_policy_document)["Statement"])
            return any(_allows(each, caller, external_id, own=own) for each in statements)
    return False


def _allows(statement: dict[str, Any], caller: str, external_id: str | None, *, own: bool) -> bool:
    """A condition that is not about the external id alone can't be judged here, and so does not hold."""
    if statement["Effect"] != "Allow" or ASSUME not in _listed(statement["Action"]):
        return False
    named = _is_principal(statement["Principal"], caller, own=own)
    return named and _holds(statement.get("Condition", {}), external_id)


def _is_principal(principal: Any, caller: str, *, own: bool) -> bool:
    """The caller's own role of a service is assumed by the host of its functions, which stands for the service."""
    if principal == "*":
        return True
    if "Service" in principal:
        return own
    named = _listed(principal.get("AWS", []))
    return any(each in {"*", caller} or f"::{caller}:" in each for each in named)


def _holds(condition: dict[str, Any], external_id: str | None) -> bool:
    if not condition:
        return True
    wanted = condition.get("StringEquals", {})
    if set(condition) != {"StringEquals"} or set(wanted) != {EXTERNAL_ID}:
        return False
    return external_id in _listed(wanted[EXTERNAL_ID])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
