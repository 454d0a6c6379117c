"""Object storage: one suite for S3 and for the memory that stands in for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.config import Config

from tensorant.adapters.s3 import S3Store, S3Stores, StagingBucket, config
from tensorant.domain.connections import CheckVerdict
from tensorant.domain.errors import Configuration, Storage
from tensorant.ports import ObjectStore, Staging
from tests.support.fakes import MemoryObjectStore, MemorySecrets, MemoryStaging
from tests.support.fakes.small import NOON
from tests.support.worlds import S3, aws_connection, later, s3_connection

HOUR = later(hours=1) - NOON
LARGE = bytes(range(256)) * 5000
numbers = count()


@pytest.fixture(params=["memory", "s3", "s3 without a prefix"])
def storage(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "memory":
        return MemoryObjectStore(chunk=1000)
    request.getfixturevalue("moto_client")
    client = boto3.client("s3", config=config("virtual"))
    bucket = f"bucket-{next(numbers)}"
    client.create_bucket(Bucket=bucket)
    return S3Store(client, bucket, "team/" if request.param == "s3" else "")


def test_what_was_put_is_there(storage: ObjectStore) -> None:
    storage.put("a/b.txt", b"hello")

    facts = storage.head("a/b.txt")
    assert facts is not None
    assert facts.size == 5
    assert storage.get("a/b.txt", limit=5) == b"hello"
    assert storage.read("a/b.txt", 0, 5, etag=facts.etag) == b"hello"


def test_what_is_not_there_is_none(storage: ObjectStore) -> None:
    storage.put("a", b"hello")

    assert storage.head("a/b.txt") is None
    assert storage.get("a/b.txt", limit=100) is None


@pytest.mark.parametrize("content", [b"", b"one", LARGE])
def test_chunks_are_put_as_one_object(storage: ObjectStore, content: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield b""
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    storage.put("chunks", chunks())

    assert storage.get("chunks", limit=len(content)) == content


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 3, b"012"), (3, 4, b"3456"), (8, 2, b"89"), (8, 100, b"89"), (0, 0, b""), (5, 0, b"")],
)
def test_a_range_is_read(storage: ObjectStore, offset: int, length: int, expected: bytes) -> None:
    storage.put("digits", b"0123456789")
    facts = storage.head("digits")
    assert facts is not None

    assert storage.read("digits", offset, length, etag=facts.etag) == expected
    assert b"".join(storage.stream("digits", offset, length, etag=facts.etag)) == expected


def test_a_large_range_is_streamed(storage: ObjectStore) -> None:
    storage.put("large", LARGE)
    facts = storage.head("large")
    assert facts is not None

    streamed = b"".join(storage.stream("large", 1, len(LARGE) - 2, etag=facts.etag))

    assert streamed == LARGE[1:-1]


def test_an_object_that_was_replaced_is_not_the_same(storage: ObjectStore) -> None:
    storage.put("archive", b"first")
    facts = storage.head("archive")
    assert facts is not None
    storage.put("archive", b"other")

    with pytest.raises(Storage):
        storage.read("archive", 0, 5, etag=facts.etag)


def test_reading_past_the_end_or_what_is_gone_is_trouble(storage: ObjectStore) -> None:
    storage.put("short", b"abc")
    facts = storage.head("short")
    assert facts is not None

    with pytest.raises(Storage):
        storage.read("short", 3, 1, etag=facts.etag)
    with pytest.raises(Storage):
        storage.read("nothing", 0, 1, etag=facts.etag)


def test_a_small_object_has_a_limit(storage: ObjectStore) -> None:
    storage.put("manifest", b"x" * 11)

    with pytest.raises(Storage) as caught:
        storage.get("manifest", limit=10)
    assert caught.value.code == "object_too_large"


def test_a_check_leaves_nothing_behind(storage: ObjectStore) -> None:
    (item,) = storage.check()

    assert item.verdict is CheckVerdict.OK
    assert storage.head(".tensorant-check") is None


def test_rights_name_their_object(storage: ObjectStore) -> None:
    for url in (
        storage.presign_get("runs/a.zip", lasting=HOUR),
        storage.presign_put("runs/a.zip", lasting=HOUR),
    ):
        assert "runs/a.zip?" in url
        assert "3600" in url


# -- S3 alone ----------------------------------------------------------------------------------------------


def test_keys_are_relative_to_the_prefix(moto_client: Callable[[str], Any]) -> None:
    client = moto_client("s3")
    client.create_bucket(Bucket="prefixed")
    S3Store(client, "prefixed", "team/a/").put("x", b"1")

    assert client.list_objects_v2(Bucket="prefixed")["Contents"][0]["Key"] == "team/a/x"


def test_a_bucket_that_is_not_there_fails_its_check_with_a_mend(moto_client: Callable[[str], Any]) -> None:
    (item,) = S3Store(moto_client("s3"), "no-such-bucket", "").check()

    assert item.verdict is CheckVerdict.FAILED
    assert "NoSuchBucket" in item.seen
    assert item.mend


def test_presigned_urls_are_sigv4_regional_and_of_one_method() -> None:
    secrets = MemorySecrets({S3: {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "s"}})
    storage = S3Stores(secrets).open(s3_connection())

    url = urlsplit(storage.presign_put("runs/a.zip", lasting=HOUR))

    query = parse_qs(url.query)
    assert url.netloc in {"adapters.s3.amazonaws.com", "adapters.s3.us-east-1.amazonaws.com"}
    assert url.path == "/team/runs/a.zip"
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == ["3600"]
    assert query["X-Amz-SignedHeaders"] == ["host"]
    assert query["X-Amz-Credential"][0].startswith("AKIAEXAMPLE/")
    assert url.query != urlsplit(storage.presign_get("runs/a.zip", lasting=HOUR)).query


def test_only_storage_is_opened_as_storage() -> None:
    with pytest.raises(Configuration):
        S3Stores(MemorySecrets()).open(aws_connection())


def test_nobody_listening_is_trouble_with_the_storage() -> None:
    client = boto3.client(
        "s3",
        endpoint_url="http://127.0.0.1:9",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=config("path").merge(Config(retries={"total_max_attempts": 1})),
    )
    store = S3Store(client, "bucket", "")

    for read in (lambda: store.head("x"), lambda: store.get("x", limit=1), lambda: store.put("x", b"1")):
        with pytest.raises(Storage):
            read()


# -- staging -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "s3"])
def staging(request: pytest.FixtureRequest) -> tuple[Staging, Callable[[str, bytes], object]]:
    """And how a file gets there."""
    if request.param == "memory":
        memory = MemoryStaging(chunk=1000)
        return memory, memory.objects.__setitem__
    client = request.getfixturevalue("moto_client")("s3")
    bucket = f"staging-{next(numbers)}"
    client.create_bucket(Bucket=bucket)
    return StagingBucket(client, bucket), lambda key, body: client.put_object(
        Bucket=bucket, Key=key, Body=body
    )


def test_an_uploaded_file_is_streamed_as_often_as_wanted(staging: Any) -> None:
    bucket, upload = staging
    upload("datasets/a", LARGE)

    for _ in range(2):
        assert b"".join(bucket.stream("datasets/a")) == LARGE


def test_a_file_that_was_not_uploaded_is_none(staging: Any) -> None:
    assert staging[0].stream("datasets/b") is None


def test_an_upload_has_its_own_address(staging: Any) -> None:
    assert "datasets/a?" in staging[0].upload_url("datasets/a", lasting=HOUR)
