"""The one DynamoDB table."""

from __future__ import annotations

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.constructs.rights import Right

INDEXES = ("gsi1", "gsi2")

ACTIONS = (
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:ConditionCheckItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)
"""What functions do with the table. Transactions need no action of their own; nothing scans, nothing deletes."""

FOLLOWING = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
"""What Lambda does in the name of a function that follows a stream (Lambda, DynamoDB event source)."""


class Table(Construct):
    """Keys `pk` and `sk`, two indexes, a stream of changes; kept when the stack goes, unless `ephemeral`."""

    def __init__(self, scope: Construct, id_: str, *, ephemeral: bool) -> None:
        super().__init__(scope, id_)
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=not ephemeral,
            removal_policy=RemovalPolicy.DESTROY if ephemeral else RemovalPolicy.RETAIN,
        )
        for index in INDEXES:
            self._table.add_global_secondary_index(
                index_name=index, partition_key=_text(f"{index}pk"), sort_key=_text(f"{index}sk")
            )

    @property
    def name(self) -> str:
        return self._table.table_name

    @property
    def stream_arn(self) -> str:
        return cast("str", self._table.table_stream_arn)  # the table has one

    def use(self) -> tuple[Right, ...]:
        """The right to read and write items, and to read the indexes."""
        arn = self._table.table_arn
        return (
            Right(ACTIONS, arn),
            *(Right(("dynamodb:Query",), f"{arn}/index/{index}") for index in INDEXES),
        )

    def follow(self) -> Right:
        """The right to read the stream of changes."""
        return Right(FOLLOWING, self.stream_arn)


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
