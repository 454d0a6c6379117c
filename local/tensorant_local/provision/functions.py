"""Functions, the identity each one has, and who may invoke it."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

from tensorant_local.lambda_host import Credentials, FunctionDefinition
from tensorant_local.provision.resources import REGION, Permission, Properties, Site
from tensorant_local.template import Created, NotUnderstood

if TYPE_CHECKING:
    from tensorant_local.provision.resources import Maker


def role(site: Site, logical_id: str, properties: Properties) -> Created:
    """A real role, so that what it signs can be told from what others sign; its policies bind nobody."""
    properties.disregard(
        {
            "ManagedPolicyArns": "the embedded AWS enforces no policies",
            "Policies": "the embedded AWS enforces no policies",
            "Description": "for readers",
        }
    )
    name = properties.take("RoleName", site.name(logical_id))
    trust = json.dumps(properties.take("AssumeRolePolicyDocument"))
    made = site.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]
    return Created(name, {"Arn": made["Arn"], "RoleId": made["RoleId"]})


def policy(_site: Site, logical_id: str, properties: Properties) -> Created:
    """Resolved, hence every resource it names exists; not enforced. tests/infra looks at what it grants."""
    reason = "the embedded AWS enforces no policies"
    properties.disregard({"PolicyDocument": reason, "PolicyName": reason, "Roles": reason})
    return Created(logical_id)


def function(site: Site, logical_id: str, properties: Properties) -> Created:
    """A stub in the embedded AWS, which knows its ARN and its settings, and the function itself in the host."""
    properties.disregard(
        {
            "Architectures": "functions run on this machine's processor",
            "Code": "functions run from their sources",
            "LoggingConfig": "their output goes to files",
            "Description": "for readers",
        }
    )
    runtime = properties.take("Runtime")
    if not runtime.startswith("python"):
        raise NotUnderstood(f"{logical_id}: runtime {runtime}")
    name = properties.take("FunctionName", site.name(logical_id))
    role_arn = properties.take("Role")
    definition = FunctionDefinition(
        name=name,
        arn=site.arn("lambda", f"function:{name}"),
        handler=properties.take("Handler"),
        runtime=runtime,
        code=site.code,
        environment=properties.nested("Environment").take("Variables", {}),
        timeout_seconds=properties.take("Timeout", 3),
        memory_megabytes=properties.take("MemorySize", 128),
        credentials=_credentials(site, name, role_arn),
        region=REGION,
        endpoint_url=site.aws.url,
    )
    _announce(site, definition, role_arn)
    site.functions.register(definition)
    return Created(name, {"Arn": definition.arn})


def _credentials(site: Site, name: str, role_arn: str) -> Credentials:
    """A session of the function's own role, as Lambda gives it; moto lets none expire."""
    session = site.client("sts").assume_role(RoleArn=role_arn, RoleSessionName=name)["Credentials"]
    return Credentials(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])


def _announce(site: Site, definition: FunctionDefinition, role_arn: str) -> None:
    site.client("lambda").create_function(
        FunctionName=definition.name,
        Runtime=definition.runtime,
        Role=role_arn,
        Handler=definition.handler,
        Code={"ZipFile": _empty_archive()},
        Timeout=int(definition.timeout_seconds),
        MemorySize=definition.memory_megabytes,
        Environment={"Variables": dict(definition.environment)},
    )


def _empty_archive() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("README", "This function runs from its sources.")
    return archive.getvalue()


def permission(site: Site, logical_id: str, properties: Properties) -> Created:
    """Noted, and compared at the end with what the stack invokes: a missing one is a 500 in AWS."""
    properties.expect("Action", "lambda:InvokeFunction")
    function_name = properties.take("FunctionName").rsplit(":", 1)[-1]
    site.permissions.append(
        Permission(function_name, properties.take("Principal"), properties.take("SourceArn"))
    )
    return Created(logical_id)


def event_invoke_config(site: Site, logical_id: str, properties: Properties) -> Created:
    """How often an asynchronous invocation is tried again, and where it goes when that did not help."""
    properties.expect("Qualifier", "$LATEST")
    destinations = properties.nested("DestinationConfig")
    failure = destinations.nested("OnFailure").take("Destination", None)
    site.client("lambda").put_function_event_invoke_config(
        FunctionName=properties.take("FunctionName"),
        **properties.given("MaximumRetryAttempts", "MaximumEventAgeInSeconds"),
        **({"DestinationConfig": {"OnFailure": {"Destination": failure}}} if failure else {}),
    )
    return Created(logical_id)


def event_source_mapping(site: Site, logical_id: str, properties: Properties) -> Created:
    """Records of a table's stream to a function. What the function fails at for good is logged, not sent on."""
    properties.expect("StartingPosition", "TRIM_HORIZON")
    source = properties.take("EventSourceArn")
    if ":dynamodb:" not in source:
        raise NotUnderstood(f"{logical_id}: an event source {source}")
    made = site.client("lambda").create_event_source_mapping(
        EventSourceArn=source,
        **properties.given(
            "BatchSize",
            "BisectBatchOnFunctionError",
            "DestinationConfig",
            "Enabled",
            "FilterCriteria",
            "FunctionName",
            "MaximumRetryAttempts",
            "StartingPosition",
        ),
    )
    return Created(made["UUID"], {"Id": made["UUID"]})


MAKERS: dict[str, Maker] = {
    "AWS::IAM::Role": role,
    "AWS::IAM::Policy": policy,
    "AWS::Lambda::Function": function,
    "AWS::Lambda::Permission": permission,
    "AWS::Lambda::EventInvokeConfig": event_invoke_config,
    "AWS::Lambda::EventSourceMapping": event_source_mapping,
}
