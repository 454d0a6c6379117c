"""Assuming roles as STS and IAM document it. Only roles named `tensorant-…` are guarded here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.support.other_accounts import OtherAccount

if TYPE_CHECKING:
    from tensorant_local.aws.server import EmbeddedAws

CUSTOMER = "444455556666"
EXTERNAL_ID = "a-number-that-we-made"
WITH_ID = {"StringEquals": {"sts:ExternalId": EXTERNAL_ID}}


@pytest.fixture(scope="module")
def customer(aws: EmbeddedAws) -> OtherAccount:
    return OtherAccount(aws, CUSTOMER)


def role(customer: OtherAccount, principal: Any, condition: dict[str, Any] | None = None) -> str:
    """The ARN of a new role that trusts the principal."""
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    statements = [statement | ({"Condition": condition} if condition else {})]
    made = customer.client("iam").create_role(
        RoleName=f"tensorant-{uuid4().hex[:8]}",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": statements}),
    )
    return str(made["Role"]["Arn"])


def assumed(aws: EmbeddedAws, arn: str, **asked: str) -> dict[str, Any]:
    return dict(aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="dep-1-conn-1", **asked))


def us(aws: EmbeddedAws) -> dict[str, str]:
    return {"AWS": f"arn:aws:iam::{aws.account_id}:root"}


def test_the_external_id_opens_the_role_to_the_account_that_it_trusts(
    aws: EmbeddedAws, customer: OtherAccount
) -> None:
    arn = role(customer, us(aws), WITH_ID)

    session = assumed(aws, arn, ExternalId=EXTERNAL_ID)

    keys = {
        "aws_access_key_id": session["Credentials"]["AccessKeyId"],
        "aws_secret_access_key": session["Credentials"]["SecretAccessKey"],
        "aws_session_token": session["Credentials"]["SessionToken"],
    }
    who = aws.client("sts", **keys).get_caller_identity()
    name = arn.split("/")[-1]
    assert who["Account"] == CUSTOMER
    assert who["Arn"] == f"arn:aws:sts::{CUSTOMER}:assumed-role/{name}/dep-1-conn-1"


@pytest.mark.parametrize("asked", [{}, {"ExternalId": "another"}])
def test_without_the_right_external_id_the_role_stays_shut(
    aws: EmbeddedAws, customer: OtherAccount, asked: dict[str, str]
) -> None:
    arn = role(customer, us(aws), WITH_ID)

    with pytest.raises(ClientError) as refused:
        assumed(aws, arn, **asked)

    error = refused.value.response["Error"]
    assert error["Code"] == "AccessDenied"
    assert f"is not authorized to perform: sts:AssumeRole on resource: {arn}" in error["Message"]


def test_a_role_that_asks_for_no_external_id_takes_any(aws: EmbeddedAws, customer: OtherAccount) -> None:
    arn = role(customer, us(aws))

    assert assumed(aws, arn)["Credentials"]
    assert assumed(aws, arn, ExternalId="whatever")["Credentials"]


@pytest.mark.parametrize(
    "principal", [{"AWS": "arn:aws:iam::999999999999:root"}, {"Service": "ec2.amazonaws.com"}]
)
def test_a_role_that_trusts_others_stays_shut(
    aws: EmbeddedAws, customer: OtherAccount, principal: dict[str, str]
) -> None:
    arn = role(customer, principal, WITH_ID)

    with pytest.raises(ClientError, match="AccessDenied"):
        assumed(aws, arn, ExternalId=EXTERNAL_ID)


def test_a_role_that_is_not_there_is_refused_like_one_that_is_shut(aws: EmbeddedAws) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        assumed(aws, f"arn:aws:iam::{CUSTOMER}:role/tensorant-nobody", ExternalId=EXTERNAL_ID)
