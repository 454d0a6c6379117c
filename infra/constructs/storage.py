"""What is kept beside the table: files on their way, run logs, the deployment key, connections' credentials."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.constructs.exceptions import accept
from infra.constructs.rights import Right


class StagingBucket(Construct):
    """Files that people bring or fetch pass through here and are deleted after a day."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        self._bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="one-day",
                    expiration=Duration.days(1),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=RemovalPolicy.DESTROY,
        )
        accept(
            self._bucket, "AwsSolutions-S1", because="Files live a day; access is told by the API's own log."
        )

    @property
    def name(self) -> str:
        return self._bucket.bucket_name

    def tell_absence(self) -> Right:
        """The right to be told that an object is absent: without it S3 answers 403 (GetObject, Permissions)."""
        return Right(("s3:ListBucket",), self._bucket.bucket_arn)

    def may(self, *actions: str) -> Right:
        """The right to do `actions` with objects."""
        return Right(actions, self._bucket.arn_for_objects("*"), "Objects are named when they are uploaded.")


class RunLogs(Construct):
    """One log group for all runs, one stream per attempt."""

    def __init__(self, scope: Construct, id_: str, *, ephemeral: bool) -> None:
        super().__init__(scope, id_)
        self._group = logs.LogGroup(
            self,
            "Group",
            retention=logs.RetentionDays.ONE_YEAR,
            removal_policy=RemovalPolicy.DESTROY if ephemeral else RemovalPolicy.RETAIN,
        )

    @property
    def name(self) -> str:
        return self._group.log_group_name

    def may(self, *actions: str) -> Right:
        """The right to do `actions` with the group and its streams."""
        return Right(actions, self._group.log_group_arn)


class DeploymentKey(Construct):
    """The key from which machines' tokens are derived."""

    def __init__(self, scope: Construct, id_: str, *, ephemeral: bool) -> None:
        super().__init__(scope, id_)
        self._secret = secretsmanager.Secret(
            self,
            "Secret",
            description="Tensorant derives the tokens of machines from this key",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=64, exclude_punctuation=True
            ),
            removal_policy=RemovalPolicy.DESTROY if ephemeral else RemovalPolicy.RETAIN,
        )
        accept(
            self._secret,
            "AwsSolutions-SMG4",
            because="A new key would lock out every machine that is running; tokens die with their attempt.",
        )

    @property
    def arn(self) -> str:
        return self._secret.secret_arn

    def may_read(self) -> Right:
        return Right(("secretsmanager:GetSecretValue",), self.arn)


@dataclass(frozen=True)
class ConnectionSecrets:
    """The credentials of connections: secrets that are made at run time, under a prefix, named by their kind."""

    stack: Stack
    prefix: str

    def may_write(self) -> Right:
        """The right to store the credentials of any connection."""
        return self._right("*", "secretsmanager:CreateSecret", "secretsmanager:PutSecretValue")

    def may_delete(self) -> Right:
        """The right to delete the credentials of any connection."""
        return self._right("*", "secretsmanager:DeleteSecret")

    def may_read(self, kind: str) -> Right:
        """The right to read the credentials of one kind of connection."""
        return self._right(f"conn-{kind}-*", "secretsmanager:GetSecretValue")

    def _right(self, names: str, *actions: str) -> Right:
        arn = self.stack.format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{self.prefix}/{names}",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return Right(actions, arn, "A connection's secret is named when an owner makes the connection.")
