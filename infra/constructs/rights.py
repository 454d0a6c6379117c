"""Rights: exact actions on one resource, and the reason where a wildcard cannot be avoided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from infra.constructs.exceptions import accept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constructs import IConstruct


@dataclass(frozen=True)
class Right:
    """What a role may do with one resource. A resource that ends in a wildcard says why it needs it."""

    actions: tuple[str, ...]
    resource: str
    wildcard_because: str = ""
    conditions: Mapping[str, Mapping[str, str]] | None = None
    """As a policy statement writes them."""


def give(holder: IConstruct, add: Callable[[iam.PolicyStatement], Any], *rights: Right) -> None:
    """Add the statement of each right, and accept its wildcard on `holder`, the role or policy that gets it."""
    for right in rights:
        add(
            iam.PolicyStatement(
                actions=list(right.actions), resources=[right.resource], conditions=right.conditions
            )
        )
        if right.wildcard_because:
            finding = f"AwsSolutions-IAM5[Resource::{_as_printed(holder, right.resource)}]"
            accept(holder, finding, because=right.wildcard_because)


def _as_printed(scope: IConstruct, arn: str) -> str:
    """An ARN as cdk-nag prints it: references in angle brackets."""
    return _flat(Stack.of(scope).resolve(arn))


def _flat(value: Any) -> str:
    match value:
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(_flat(part) for part in parts)
        case _:
            return str(value)
