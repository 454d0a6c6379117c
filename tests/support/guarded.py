"""A boto3 session that a policy stands guard over: AWS hears what is allowed, and the rest is refused in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from tests.support.policy_evaluator import Account, Authorization, denied

FORBIDDEN = 403


@dataclass
class Guard:
    """Judges the calls of a session before they are sent; `answers` are those of services that nobody plays here."""

    policy: Mapping[str, Any]
    account: Account
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    passed: list[Authorization] = field(default_factory=list)
    refused: list[Authorization] = field(default_factory=list)

    def watch(self, session: boto3.Session) -> boto3.Session:
        """Over every client that the session makes from here on. Source: botocore's client events."""
        session.events.register("before-parameter-build", _remember)
        session.events.register("before-call", self._judge)
        return session

    def _judge(self, *, model: Any, context: dict[str, Any], **_: Any) -> Any:
        """What `before-call` returns is taken for the service's answer; None lets the call go on."""
        service, operation = model.service_model.service_name, model.name
        wanted = self.account.wants(service, operation, context["asked"])
        missing = denied(self.policy, wanted)
        if missing is not None:
            self.refused.append(missing)
            return _answer(FORBIDDEN, {"Error": self._refusal(service, missing)})
        self.passed += wanted
        return _answer(200, self.answers[operation]) if operation in self.answers else None

    def _refusal(self, service: str, missing: Authorization) -> dict[str, str]:
        """As AWS words it. Source: IAM user guide, "Troubleshoot access denied error messages"."""
        on = "" if missing.resource == "*" else f" on resource: {missing.resource}"
        text = (
            f"User: arn:aws:iam::{self.account.id}:user/tensorant is not authorized to perform: {missing.action}{on} "
            f"because no identity-based policy allows the {missing.action} action"
        )
        if service != "ec2":
            return {"Code": "AccessDenied" if service == "iam" else "AccessDeniedException", "Message": text}
        blob = "Encoded authorization failure message: 4Uq0Xb9sRkVnbG9vbXk"
        whole = f"You are not authorized to perform this operation. {text}. {blob}"
        return {"Code": "UnauthorizedOperation", "Message": whole}


def _remember(*, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["asked"] = dict(params)


def _answer(status: int, parsed: Mapping[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    whole = {**parsed, "ResponseMetadata": {"HTTPStatusCode": status}}
    return AWSResponse("https://aws.invalid", status, HTTPHeaders(), None), whole
