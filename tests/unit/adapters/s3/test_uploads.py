"""Objects in parts: sizes, limits, and what a store without parts can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from tensorant.adapters.s3 import S3Store
from tensorant.adapters.s3.uploads import WHOLE_BYTES, blocks
from tensorant.domain.errors import Conflict, Storage
from tensorant.domain.storages import S3_ABILITIES, StorageAbilities

TWO = replace(S3_ABILITIES, max_put_bytes=2, max_part_bytes=2)
WHERE = {"Bucket": "bucket", "Key": "k"}


@pytest.fixture
def opened() -> Iterator[Callable[[StorageAbilities], tuple[S3Store, Stubber]]]:
    client: Any = boto3.client(
        "s3", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    with Stubber(client) as stubber:
        yield lambda abilities: (S3Store(client, "bucket", "", abilities), stubber)
        stubber.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([], [b""]),
        ([b""], [b""]),
        ([b"ab"], [b"ab"]),
        ([b"a", b"b", b"c"], [b"ab", b"c"]),
        ([b"abcdefg"], [b"ab", b"cd", b"ef", b"g"]),
        ([b"abc", b"", b"d"], [b"ab", b"cd"]),
    ],
)
def test_blocks_are_of_one_size_but_the_last(chunks: list[bytes], expected: list[bytes]) -> None:
    assert list(blocks(chunks, 2)) == expected


def test_parts_are_numbered_and_completed_in_order(opened: Any) -> None:
    storage, s3 = opened(TWO)
    s3.add_response("create_multipart_upload", {"UploadId": "u"}, WHERE)
    for number, body in ((1, b"ab"), (2, b"c")):
        s3.add_response(
            "upload_part",
            {"ETag": f"e{number}"},
            {**WHERE, "UploadId": "u", "PartNumber": number, "Body": body},
        )
    parts = [{"PartNumber": 1, "ETag": "e1"}, {"PartNumber": 2, "ETag": "e2"}]
    s3.add_response(
        "complete_multipart_upload", {}, {**WHERE, "UploadId": "u", "MultipartUpload": {"Parts": parts}}
    )

    storage.put("k", b"abc")


def test_an_object_that_must_be_new_is_so_when_its_parts_are_joined(opened: Any) -> None:
    storage, s3 = opened(TWO)
    s3.add_response("create_multipart_upload", {"UploadId": "u"}, WHERE)
    for _ in range(2):
        s3.add_response(
            "upload_part", {"ETag": "e"}, {**WHERE, "UploadId": "u", "PartNumber": ANY, "Body": ANY}
        )
    s3.add_client_error(
        "complete_multipart_upload",
        "PreconditionFailed",
        expected_params={**WHERE, "UploadId": "u", "MultipartUpload": ANY, "IfNoneMatch": "*"},
    )
    s3.add_response("abort_multipart_upload", {}, {**WHERE, "UploadId": "u"})

    with pytest.raises(Conflict) as caught:
        storage.put("k", b"abc", replace=False)
    assert caught.value.code == "object_exists"


def test_an_upload_that_is_gone_without_its_object_is_trouble(opened: Any) -> None:
    storage, s3 = opened(TWO)
    s3.add_response("create_multipart_upload", {"UploadId": "u"}, WHERE)
    for _ in range(2):
        s3.add_response(
            "upload_part", {"ETag": "e"}, {**WHERE, "UploadId": "u", "PartNumber": ANY, "Body": ANY}
        )
    s3.add_client_error("complete_multipart_upload", "NoSuchUpload")
    s3.add_client_error("head_object", "404")
    s3.add_response("abort_multipart_upload", {}, {**WHERE, "UploadId": "u"})

    with pytest.raises(Storage, match="NoSuchUpload"):
        storage.put("k", b"abc")


def test_without_parts_an_object_goes_whole_and_is_limited(opened: Any) -> None:
    storage, s3 = opened(replace(TWO, multipart=False))
    s3.add_response("put_object", {}, {**WHERE, "Body": b"ab"})

    storage.put("k", b"ab")
    with pytest.raises(Storage) as caught:
        storage.put("k", b"abc")

    assert caught.value.code == "object_too_large_to_store"
    assert WHOLE_BYTES == 268_435_456


def test_without_conditions_the_store_is_asked_first(opened: Any) -> None:
    storage, s3 = opened(replace(S3_ABILITIES, conditional_writes=False))
    s3.add_client_error("head_object", "404")
    s3.add_response("put_object", {}, {**WHERE, "Body": b"ab"})
    s3.add_response("head_object", {"ContentLength": 2, "ETag": "e"}, WHERE)

    storage.put("k", b"ab", replace=False)
    with pytest.raises(Conflict):
        storage.put("k", b"cd", replace=False)


def test_a_listing_in_circles_ends(opened: Any) -> None:
    storage, s3 = opened(S3_ABILITIES)
    page = {"IsTruncated": True, "NextContinuationToken": "t", "Contents": [{"Key": "a"}]}
    for _ in range(2):
        s3.add_response("list_objects_v2", page)

    with pytest.raises(Storage) as caught:
        list(storage.keys(""))
    assert caught.value.code == "listing_in_circles"


def test_a_store_that_overlooks_the_condition_of_a_read_is_caught(opened: Any) -> None:
    storage, s3 = opened(S3_ABILITIES)
    s3.add_response("get_object", {"ETag": '"other"', "Body": b""})

    with pytest.raises(Storage) as caught:
        storage.read("k", 0, 1, etag='"first"')
    assert caught.value.code == "object_changed"
