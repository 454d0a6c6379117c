"""Accepted findings of cdk-nag, each said beside the construct that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk

if TYPE_CHECKING:
    from constructs import IConstruct


def accept(construct: IConstruct, rule: str, *, because: str) -> None:
    """Acknowledge one finding of `rule` (as cdk-nag prints it) on `construct` and what lies under it."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=because))
