"""Table, bucket, secret, log groups, queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorant_local.provision.resources import REGION, Properties, Site
from tensorant_local.template import Created

if TYPE_CHECKING:
    from tensorant_local.provision.resources import Maker

POLICIES_ARE_NOT_ENFORCED = "the embedded AWS enforces no policies"


def table(site: Site, logical_id: str, properties: Properties) -> Created:
    """A table with its indexes, stream and time to live. Nothing expires: moto deletes no item by itself."""
    properties.expect("BillingMode", "PAY_PER_REQUEST")
    properties.disregard(
        {
            "PointInTimeRecoverySpecification": "the table lives as long as the process",
            "DeletionProtectionEnabled": "the table goes with the process, whatever protects it",
        }
    )
    dynamodb = site.client("dynamodb")
    name = properties.take("TableName", site.name(logical_id))
    description = dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        **properties.given("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes"),
        **_stream(properties),
    )["TableDescription"]
    expiry = properties.nested("TimeToLiveSpecification")
    if attribute := expiry.take("AttributeName", None):
        specification = {"AttributeName": attribute, "Enabled": expiry.take("Enabled")}
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
    attributes = {"Arn": description["TableArn"], "StreamArn": description.get("LatestStreamArn", "")}
    return Created(name, attributes)


def _stream(properties: Properties) -> dict[str, Any]:
    view = properties.nested("StreamSpecification").take("StreamViewType", None)
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view}} if view else {}


def bucket(site: Site, logical_id: str, properties: Properties) -> Created:
    """An empty bucket."""
    properties.disregard(
        {
            "BucketEncryption": "objects are kept in this process's memory",
            "LifecycleConfiguration": "moto expires no object; the bucket lives as long as the process",
            "OwnershipControls": "there is one account, which owns everything",
            "PublicAccessBlockConfiguration": "the server answers on the loopback address alone",
        }
    )
    name = properties.take("BucketName", site.name(logical_id, limit=63).lower())
    site.client("s3").create_bucket(Bucket=name)
    attributes = {
        "Arn": f"arn:aws:s3:::{name}",
        "DomainName": f"{name}.s3.amazonaws.com",
        "RegionalDomainName": f"{name}.s3.{REGION}.amazonaws.com",
    }
    return Created(name, attributes)


def bucket_policy(_site: Site, _logical_id: str, properties: Properties) -> Created:
    properties.disregard({"PolicyDocument": POLICIES_ARE_NOT_ENFORCED})
    return Created(properties.take("Bucket"))


def secret(site: Site, logical_id: str, properties: Properties) -> Created:
    """A secret that is generated, or given (`SecretString`)."""
    secrets = site.client("secretsmanager")
    value = properties.take("SecretString", None)
    if value is None:
        value = _generated(secrets, properties.nested("GenerateSecretString"))
    name = properties.take("Name", site.name(logical_id, limit=512))
    made = secrets.create_secret(Name=name, SecretString=value, **properties.given("Description"))
    return Created(made["ARN"], {"Id": made["ARN"]})


def _generated(secrets: Any, wanted: Properties) -> str:
    rules = wanted.given(
        "PasswordLength",
        "ExcludeCharacters",
        "ExcludeLowercase",
        "ExcludeNumbers",
        "ExcludePunctuation",
        "ExcludeUppercase",
        "IncludeSpace",
        "RequireEachIncludedType",
    )
    return str(secrets.get_random_password(**rules)["RandomPassword"])


def log_group(site: Site, logical_id: str, properties: Properties) -> Created:
    logs = site.client("logs")
    name = properties.take("LogGroupName", site.name(logical_id, limit=512))
    logs.create_log_group(logGroupName=name)
    if days := properties.take("RetentionInDays", None):
        logs.put_retention_policy(logGroupName=name, retentionInDays=days)
    return Created(name, {"Arn": f"{site.arn('logs', f'log-group:{name}')}:*"})


def queue(site: Site, logical_id: str, properties: Properties) -> Created:
    properties.disregard({"SqsManagedSseEnabled": "messages are kept in this process's memory"})
    given = properties.given("MessageRetentionPeriod", "VisibilityTimeout", "DelaySeconds")
    settings = {name: str(value) for name, value in given.items()}
    name = properties.take("QueueName", site.name(logical_id, limit=80))
    url = site.client("sqs").create_queue(QueueName=name, Attributes=settings)["QueueUrl"]
    return Created(url, {"Arn": site.arn("sqs", name), "QueueName": name, "QueueUrl": url})


def queue_policy(_site: Site, logical_id: str, properties: Properties) -> Created:
    properties.disregard({"PolicyDocument": POLICIES_ARE_NOT_ENFORCED, "Queues": POLICIES_ARE_NOT_ENFORCED})
    return Created(logical_id)


MAKERS: dict[str, Maker] = {
    "AWS::DynamoDB::Table": table,
    "AWS::S3::Bucket": bucket,
    "AWS::S3::BucketPolicy": bucket_policy,
    "AWS::SecretsManager::Secret": secret,
    "AWS::Logs::LogGroup": log_group,
    "AWS::SQS::Queue": queue,
    "AWS::SQS::QueuePolicy": queue_policy,
}
