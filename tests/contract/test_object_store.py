"""Object storage: one suite for every kind of store, and for the memory that stands in for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import httpx
import pytest
from botocore.config import Config

from tensorant.adapters.s3 import S3Store, S3Stores, StagingBucket, config
from tensorant.domain.connections import CheckVerdict, Connection, S3Settings
from tensorant.domain.errors import Configuration, Conflict, Storage
from tensorant.domain.storages import RunPodStorageSettings
from tensorant.ports import ObjectStore, Staging
from tensorant_local.aws.server import EmbeddedAws
from tensorant_local.runpod_storage import RunPodStorage
from tests.support.fakes import MemoryObjectStore, MemorySecrets, MemoryStaging
from tests.support.fakes.small import NOON
from tests.support.worlds import S3, aws_connection, later, s3_connection

HOUR = later(hours=1) - NOON
LARGE = bytes(range(256)) * 5000
PART = 16 * 2**20
KEY = {"access_key_id": "AKIAEXAMPLEEXAMPLE00", "secret_access_key": "secret"}
numbers = count()


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as aws, pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_ENDPOINT_URL", aws.url)
        yield aws


@pytest.fixture(scope="module")
def runpod() -> Iterator[RunPodStorage]:
    with RunPodStorage(bad_gateway_every=9) as storage:
        yield storage


def opened(connection: Connection, secret: dict[str, str], **options: Any) -> ObjectStore:
    """As the first check finds it, and then as it is worked with."""
    stores = S3Stores(MemorySecrets({S3: secret}), private_allowed=True, **options)
    abilities = stores.open(connection).check().abilities
    assert abilities is not None
    return stores.open(s3_connection(settings=connection.settings, abilities=abilities))


def in_bucket(aws: EmbeddedAws, prefix: str, **settings: Any) -> ObjectStore:
    bucket = f"bucket-{next(numbers)}"
    aws.client("s3").create_bucket(Bucket=bucket)
    place = S3Settings(region="us-east-1", bucket=bucket, prefix=prefix, **settings)
    return opened(s3_connection(settings=place), KEY)


def on_volume(runpod: RunPodStorage) -> ObjectStore:
    place = RunPodStorageSettings(
        datacenter=runpod.datacenter, volume_id=runpod.volume_id, prefix=f"team/{next(numbers)}"
    )
    return opened(s3_connection(settings=place), runpod.secret, runpod_endpoint=runpod.url)


MAKERS: dict[str, Callable[[pytest.FixtureRequest], ObjectStore]] = {
    "memory": lambda _: MemoryObjectStore(chunk=1000),
    "AWS S3": lambda request: in_bucket(request.getfixturevalue("aws"), "team/"),
    "S3 without a prefix": lambda request: in_bucket(request.getfixturevalue("aws"), ""),
    "S3-compatible": lambda request: in_bucket(
        request.getfixturevalue("aws"),
        "team",
        endpoint_url=request.getfixturevalue("aws").url,
        addressing_style="path",
    ),
    "RunPod": lambda request: on_volume(request.getfixturevalue("runpod")),
}
PRESIGNING = [name for name in MAKERS if name != "RunPod"]


@pytest.fixture(params=MAKERS)
def storage(request: pytest.FixtureRequest) -> ObjectStore:
    return MAKERS[request.param](request)


@pytest.fixture(params=PRESIGNING)
def presigning(request: pytest.FixtureRequest) -> ObjectStore:
    return MAKERS[request.param](request)


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


def test_what_was_deleted_is_gone_and_may_be_deleted_again(storage: ObjectStore) -> None:
    storage.put("a", b"1")

    storage.delete("a")
    storage.delete("a")

    assert storage.head("a") is None


def test_keys_are_listed_through_all_folders(storage: ObjectStore) -> None:
    for key in ("runs/1/a.zip", "runs/1/deep/er/b", "runs/2/c", "runs-of-others/d"):
        storage.put(key, b"x")

    assert sorted(storage.keys("runs/")) == ["runs/1/a.zip", "runs/1/deep/er/b", "runs/2/c"]
    assert list(storage.keys("nothing/")) == []


def test_what_must_not_be_replaced_is_not(storage: ObjectStore) -> None:
    storage.put("once", b"first", replace=False)

    with pytest.raises(Conflict) as caught:
        storage.put("once", b"second", replace=False)

    assert caught.value.code == "object_exists"
    assert storage.get("once", limit=10) == b"first"
    storage.put("once", b"third")
    assert storage.get("once", limit=10) == b"third"


def test_an_object_longer_than_a_part_is_whole(storage: ObjectStore) -> None:
    content = LARGE * 14  # 17,920,000 bytes: a part of 16,777,216, and the rest

    storage.put("long", (content[start : start + 5_000_000] for start in range(0, len(content), 5_000_000)))

    facts = storage.head("long")
    assert facts is not None
    assert facts.size == len(content)
    assert b"".join(storage.stream("long", PART - 3, 6, etag=facts.etag)) == content[PART - 3 : PART + 3]


def test_a_check_leaves_nothing_behind(storage: ObjectStore) -> None:
    check = storage.check()

    assert {item.verdict for item in check.items} <= {CheckVerdict.OK, CheckVerdict.WARNING}
    assert check.abilities is not None
    assert list(storage.keys("")) == []


def test_rights_name_their_object(presigning: ObjectStore) -> None:
    for url in (
        presigning.presign_get("runs/a.zip", lasting=HOUR),
        presigning.presign_put("runs/a.zip", lasting=HOUR),
    ):
        assert "runs/a.zip?" in url
        assert "3600" in url


# -- S3 alone ----------------------------------------------------------------------------------------------


def test_keys_are_relative_to_the_prefix(aws: EmbeddedAws) -> None:
    client = aws.client("s3")
    client.create_bucket(Bucket="prefixed")
    S3Store(client, "prefixed", "team/a/").put("x", b"1")

    assert client.list_objects_v2(Bucket="prefixed")["Contents"][0]["Key"] == "team/a/x"


def test_a_bucket_that_is_not_there_fails_its_check_with_a_mend(aws: EmbeddedAws) -> None:
    check = S3Store(aws.client("s3"), "no-such-bucket", "").check()

    assert [(item.name, item.verdict) for item in check.items] == [("write", CheckVerdict.FAILED)]
    assert "NoSuchBucket" in check.items[0].seen
    assert check.items[0].mend
    assert check.abilities is None


def test_a_check_of_s3_finds_everything(aws: EmbeddedAws) -> None:
    aws.client("s3").create_bucket(Bucket="checked")

    check = S3Store(aws.client("s3"), "checked", "team/").check()

    assert [(item.name, item.verdict) for item in check.items] == [
        ("write", CheckVerdict.OK),
        ("read", CheckVerdict.OK),
        ("list", CheckVerdict.OK),
        ("delete", CheckVerdict.OK),
        ("presigned_urls", CheckVerdict.OK),
        ("conditional_writes", CheckVerdict.OK),
        ("multipart_uploads", CheckVerdict.OK),
    ]
    abilities = check.abilities
    assert abilities is not None
    assert (abilities.presigned, abilities.conditional_writes, abilities.multipart) == (True, True, True)
    assert abilities.max_put_bytes == 5_368_709_120


def test_a_long_object_goes_in_parts_of_16_mib(aws: EmbeddedAws) -> None:
    client = aws.client("s3")
    client.create_bucket(Bucket="parts")

    S3Store(client, "parts", "").put("long", bytes(2 * PART + 1))

    assert client.head_object(Bucket="parts", Key="long")["ETag"].endswith('-3"')
    assert client.list_multipart_uploads(Bucket="parts").get("Uploads", []) == []


def test_an_upload_that_fails_on_its_way_leaves_no_parts(aws: EmbeddedAws) -> None:
    def broken() -> Iterator[bytes]:
        yield bytes(2 * PART)
        raise Storage("storage_failed", "The source has ended.")

    client = aws.client("s3")
    client.create_bucket(Bucket="broken")

    with pytest.raises(Storage):
        S3Store(client, "broken", "").put("long", broken())

    assert client.list_multipart_uploads(Bucket="broken").get("Uploads", []) == []
    assert client.list_objects_v2(Bucket="broken")["KeyCount"] == 0


def test_a_presigned_url_needs_nothing_else(aws: EmbeddedAws) -> None:
    storage = in_bucket(aws, "team")

    put = httpx.put(storage.presign_put("a", lasting=HOUR), content=b"hello", trust_env=False)
    got = httpx.get(storage.presign_get("a", lasting=HOUR), trust_env=False)

    assert (put.status_code, got.content) == (200, b"hello")


def test_presigned_urls_are_sigv4_regional_and_of_one_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
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


# -- RunPod alone ------------------------------------------------------------------------------------------


def volume(server: RunPodStorage, **changes: str) -> Connection:
    place = {"datacenter": server.datacenter, "volume_id": server.volume_id, "prefix": "team", **changes}
    return s3_connection(settings=RunPodStorageSettings(**place))


def opened_volume(server: RunPodStorage, secret: dict[str, str] | None = None, **changes: str) -> ObjectStore:
    stores = S3Stores(
        MemorySecrets({S3: secret or server.secret}), private_allowed=True, runpod_endpoint=server.url
    )
    return stores.open(volume(server, **changes))


def test_a_check_of_a_volume_warns_of_what_it_can_not_do() -> None:
    with RunPodStorage() as server:
        check = opened_volume(server).check()

    assert [(item.name, item.verdict) for item in check.items] == [
        ("write", CheckVerdict.OK),
        ("read", CheckVerdict.OK),
        ("list", CheckVerdict.OK),
        ("delete", CheckVerdict.OK),
        ("presigned_urls", CheckVerdict.WARNING),
        ("conditional_writes", CheckVerdict.WARNING),
        ("multipart_uploads", CheckVerdict.OK),
    ]
    assert "no run can be launched" in check.items[4].mend
    abilities = check.abilities
    assert abilities is not None
    assert (abilities.presigned, abilities.conditional_writes, abilities.multipart) == (False, False, True)
    assert (abilities.max_put_bytes, abilities.max_part_bytes) == (499_999_999, 500_000_000)
    assert server.volume.files == {}


def test_a_volume_gives_no_rights_away() -> None:
    with RunPodStorage() as server:
        storage = opened_volume(server)

        for presign in (storage.presign_get, storage.presign_put):
            with pytest.raises(Configuration) as caught:
                presign("a", lasting=HOUR)
            assert caught.value.code == "storage_without_presigning"


@pytest.mark.parametrize("asked_before", [0, 1])  # so that the last answer of the upload is lost, too
def test_bad_gateways_are_outlasted_even_where_the_work_was_done(asked_before: int) -> None:
    content = bytes(PART + 1)
    with RunPodStorage(bad_gateway_every=2) as server:
        storage = opened_volume(server)
        for _ in range(asked_before):
            storage.head("nothing")
        storage.put("long", content)  # begin, two parts, complete: each is asked for until it is answered

        assert server.volume.files == {"team/long": content}
        assert server.volume.uploads == {}
        assert server.bad_gateways >= 3


def test_a_folder_of_more_than_a_page_is_listed_whole() -> None:
    with RunPodStorage() as server:
        server.volume.files.update({f"team/many/{number:04d}": b"" for number in range(2001)})

        assert len(set(opened_volume(server).keys("many/"))) == 2001


def test_keys_are_never_deleted_in_batches_nor_across_folders() -> None:
    with RunPodStorage() as server:
        storage = opened_volume(server)
        storage.put("a/b", b"1")
        assert list(storage.keys("")) == ["a/b"]
        storage.delete("a/b")

        assert not [asked for asked in server.asked if asked.startswith("POST")]


@pytest.mark.parametrize(
    ("changes", "secret", "code"),
    [
        ({"volume_id": "zzzzzzzzzz"}, {}, "NoSuchBucket"),
        ({"datacenter": "US-KS-2"}, {}, "AuthorizationHeaderMalformed"),
        ({}, {"access_key_id": "user_of_somebody_else"}, "InvalidAccessKeyId"),
        ({}, {"secret_access_key": "rps_WRONG"}, "SignatureDoesNotMatch"),
    ],
)
def test_what_is_wrong_with_a_volume_is_told(changes: Any, secret: Any, code: str) -> None:
    with RunPodStorage() as server:
        (item,) = opened_volume(server, {**server.secret, **secret}, **changes).check().items

    assert item.verdict is CheckVerdict.FAILED
    assert code in item.seen
    assert item.mend


# -- staging -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "s3"])
def staging(request: pytest.FixtureRequest) -> tuple[Staging, Callable[[str, bytes], object]]:
    """And how a file gets there."""
    if request.param == "memory":
        memory = MemoryStaging(chunk=1000)
        return memory, memory.objects.__setitem__
    client = request.getfixturevalue("aws").client("s3")
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
