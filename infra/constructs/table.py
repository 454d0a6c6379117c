"""The one DynamoDB table."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.constructs.rights import Right

INDEX = "gsi1"

ACTIONS = (
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)
"""What functions do with the table. Transactions need no action of their own; nothing scans, nothing deletes."""


class Table(Construct):
    """Keys `pk` and `sk`, one index, a stream of changes; kept when the stack goes, unless `ephemeral`."""

    def __init__(self, scope: Construct, id_: str, *, ephemeral: bool) -> None:
        super().__init__(scope, id_)
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            time_to_live_attribute="expires_at",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=not ephemeral,
            removal_policy=RemovalPolicy.DESTROY if ephemeral else RemovalPolicy.RETAIN,
        )
        self._table.add_global_secondary_index(
            index_name=INDEX, partition_key=_text("gsi1pk"), sort_key=_text("gsi1sk")
        )

    @property
    def name(self) -> str:
        return self._table.table_name

    def use(self) -> tuple[Right, ...]:
        """The right to read and write items, and to read the index."""
        return (
            Right(ACTIONS, self._table.table_arn),
            Right(("dynamodb:Query",), f"{self._table.table_arn}/index/{INDEX}"),
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
