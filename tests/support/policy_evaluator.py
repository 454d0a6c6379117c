"""Judges AWS calls by an identity policy, as far as this project's policies go (docs/adr/0009).

Sources: IAM User Guide (evaluation logic, condition operators); Service Authorization Reference (EC2, IAM, Service
Quotas): on which resources a call is authorized, and with which condition keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Context = Mapping[str, str]


@dataclass(frozen=True)
class Authorization:
    """One action on one resource; the names of condition keys are in lower case."""

    action: str
    resource: str
    context: Context = field(default_factory=dict)


# -- the judge ---------------------------------------------------------------------------------------------


def allows(policy: Mapping[str, Any], asked: Authorization) -> bool:
    """An explicit deny wins; what nothing allows is denied."""
    effects = {each["Effect"] for each in policy["Statement"] if _applies(each, asked)}
    return effects == {"Allow"}


def denied(policy: Mapping[str, Any], wanted: list[Authorization]) -> Authorization | None:
    """The first that the policy does not allow."""
    return next((each for each in wanted if not allows(policy, each)), None)


def _applies(statement: Mapping[str, Any], asked: Authorization) -> bool:
    if unknown := statement.keys() - {"Sid", "Effect", "Action", "Resource", "Condition"}:
        raise NotImplementedError(f"elements {unknown}")
    return (
        any(_like(asked.action.lower(), each.lower()) for each in _listed(statement["Action"]))
        and any(_like(asked.resource, each) for each in _listed(statement["Resource"]))
        and all(
            _holds(operator, asked.context.get(key.lower()), _listed(values))
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _like(value: str, pattern: str) -> bool:
    """`*` and `?`, unless written as `${*}` and `${?}`; any other policy variable is not known here."""
    parts = re.findall(r"\$\{[*?$]\}|\$\{|.", pattern, re.DOTALL)
    if "${" in parts:
        raise NotImplementedError(f"a policy variable: {pattern}")
    regex = "".join({"*": ".*", "?": "."}.get(part) or re.escape(part[2:3] or part) for part in parts)
    return re.fullmatch(regex, value, re.DOTALL) is not None


OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringLike": _like,
    "ArnEquals": _like,
    "ArnLike": _like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
}


def _holds(operator: str, value: str | None, wanted: list[str]) -> bool:
    """A key that is not in the request fails its condition, but for Null and …IfExists."""
    if operator == "Null":
        return any((value is None) == (each.lower() == "true") for each in wanted)
    name = operator.removesuffix("IfExists")
    if name not in OPERATORS:
        raise NotImplementedError(f"the condition operator {operator}")
    if value is None:
        return name != operator
    return any(OPERATORS[name](value, each) for each in wanted)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


# -- what a call asks for ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    """Where calls are made, and what its instances and instance profiles are."""

    id: str
    region: str
    tags_of: Callable[[str], Context] = lambda _instance_id: {}
    role_of: Callable[[str], str] = lambda profile_arn: profile_arn.replace(":instance-profile/", ":role/")

    def wants(self, service: str, operation: str, request: Mapping[str, Any]) -> list[Authorization]:
        """Everything that must be allowed for a call. Raises for calls that the table does not know."""
        action = f"{service.replace('-', '')}:{operation}"
        if action == "sts:GetCallerIdentity":  # STS API reference: no permissions are required
            return []
        if action == "ec2:RunInstances":
            return self._launch(request)
        if action in {"ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances"}:
            found = {each: _tags("ec2:ResourceTag", self.tags_of(each)) for each in request["InstanceIds"]}
            return [self._on(f"instance/{each}", action, tags) for each, tags in found.items()]
        if action == "iam:GetInstanceProfile":
            name = request["InstanceProfileName"]
            return [Authorization(action, f"arn:aws:iam::{self.id}:instance-profile/{name}")]
        if action == "servicequotas:GetServiceQuota":
            quota = f"{self.region}:{self.id}:{request['ServiceCode']}/{request['QuotaCode']}"
            return [Authorization(action, f"arn:aws:servicequotas:{quota}")]
        if operation.startswith("Describe") or operation in {"GetProducts", "GetAWSDefaultServiceQuota"}:
            return [Authorization(action, "*")]
        raise NotImplementedError(f"what {action} is authorized on")

    def _launch(self, request: Mapping[str, Any]) -> list[Authorization]:
        """The inputs, what is made (whose tags are only asked for yet), the tags, and the role that is passed."""
        tagged = {
            each["ResourceType"]: _tags("aws:RequestTag", {tag["Key"]: tag["Value"] for tag in each["Tags"]})
            for each in request.get("TagSpecifications", [])
        }
        inputs = [f"key-pair/{request['KeyName']}"] if "KeyName" in request else []
        for interface in request["NetworkInterfaces"]:
            inputs.append(f"subnet/{interface['SubnetId']}")
            inputs.extend(f"security-group/{each}" for each in interface["Groups"])
        run, made = "ec2:RunInstances", ("network-interface", "instance", "volume")
        wanted = [Authorization(run, f"arn:aws:ec2:{self.region}::image/{request['ImageId']}")]
        wanted += [self._on(each, run) for each in inputs]
        wanted += [self._on(f"{kind}/*", run, tagged.get(kind)) for kind in made]
        wanted += [
            self._on(f"{kind}/*", "ec2:CreateTags", {"ec2:createaction": "RunInstances", **tags})
            for kind, tags in tagged.items()
        ]
        if profile := request.get("IamInstanceProfile"):
            passed = {"iam:passedtoservice": "ec2.amazonaws.com"}
            wanted.append(Authorization("iam:PassRole", self.role_of(profile["Arn"]), passed))
        return wanted

    def _on(self, resource: str, action: str, context: Context | None = None) -> Authorization:
        return Authorization(action, f"arn:aws:ec2:{self.region}:{self.id}:{resource}", context or {})


def _tags(key: str, tags: Context) -> dict[str, str]:
    return {f"{key}/{name}".lower(): value for name, value in tags.items()}
