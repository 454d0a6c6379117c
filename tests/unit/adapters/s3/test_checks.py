"""What a check makes of stores that can't do everything, or do it wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from tensorant.adapters.s3 import S3Store
from tensorant.domain.connections import CheckVerdict
from tensorant_local.aws.server import EmbeddedAws


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as aws:
        aws.client("s3").create_bucket(Bucket="ours")
        yield aws


class Raw:
    """A body as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self) -> Iterator[bytes]:
        yield self.content

    def read(self, *_: object) -> bytes:
        content, self.content = self.content, b""
        return content


def answering(client: Any, operation: str, code: str, status: int, *, when: str = "") -> Any:
    """Lets the store answer an operation with an error, where the request has the header `when`."""

    def answer(request: Any, **_: object) -> AWSResponse | None:
        if when and when not in request.headers:
            return None
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        return AWSResponse(request.url, status, {}, Raw(body))

    client.meta.events.register(f"before-send.s3.{operation}", answer)
    return client


def left(aws: EmbeddedAws) -> int:
    return int(aws.client("s3").list_objects_v2(Bucket="ours")["KeyCount"])


def test_a_store_that_refuses_conditions_is_able_to_do_the_rest(aws: EmbeddedAws) -> None:
    client = answering(aws.client("s3"), "PutObject", "NotImplemented", 501, when="If-None-Match")

    check = S3Store(client, "ours", "team/").check()

    item = next(each for each in check.items if each.name == "conditional_writes")
    assert item.verdict is CheckVerdict.WARNING
    assert "NotImplemented" in item.seen
    assert "the later one wins" in item.mend
    assert check.abilities is not None
    assert (check.abilities.conditional_writes, check.abilities.presigned) == (False, True)
    assert left(aws) == 0


def test_a_store_that_refuses_parts_is_able_to_do_the_rest(aws: EmbeddedAws) -> None:
    client = answering(aws.client("s3"), "CreateMultipartUpload", "AccessDenied", 403)

    check = S3Store(client, "ours", "team/").check()

    item = next(each for each in check.items if each.name == "multipart_uploads")
    assert item.verdict is CheckVerdict.WARNING
    assert "above 256 MiB" in item.mend
    assert check.abilities is not None
    assert check.abilities.multipart is False


@pytest.mark.parametrize(
    ("operation", "failed", "passed"),
    [
        ("PutObject", "write", []),
        ("GetObject", "read", ["write"]),
        ("ListObjectsV2", "list", ["write", "read"]),
        ("DeleteObject", "delete", ["write", "read", "list"]),
    ],
)
def test_a_right_that_is_missing_is_named_by_its_step(
    aws: EmbeddedAws, operation: str, failed: str, passed: list[str]
) -> None:
    client = answering(aws.client("s3"), operation, "AccessDenied", 403)

    check = S3Store(client, "ours", "team/").check()

    assert {item.name: item.verdict for item in check.items} == {
        **dict.fromkeys(passed, CheckVerdict.OK),
        failed: CheckVerdict.FAILED,
    }
    assert "AccessDenied" in check.items[-1].seen
    assert "list the bucket" in check.items[-1].mend
    assert check.abilities is None


def test_two_checks_at_once_do_not_meet(aws: EmbeddedAws) -> None:
    first, second = S3Store(aws.client("s3"), "ours", "team/"), S3Store(aws.client("s3"), "ours", "team/")
    written: list[str] = []

    def note(params: Any, **_: object) -> None:
        written.append(params["Key"])

    for store in (first, second):
        store.client.meta.events.register("provide-client-params.s3.PutObject", note)
        store.check()

    plain = [key for key in written if not key.endswith(("-once", "-parts"))]
    assert len(set(plain)) == 2
