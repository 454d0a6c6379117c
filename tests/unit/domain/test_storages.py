"""How storage is named, and what is known of it before a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tensorant.domain import storages
from tensorant.domain.connections import CheckItem, CheckVerdict
from tensorant.domain.errors import Invalid
from tensorant.domain.storages import S3_ABILITIES, RunPodStorageSettings
from tests.support.worlds import NOON, aws_connection, s3_connection

VOLUME = RunPodStorageSettings(datacenter="EU-RO-1", volume_id="a1b2c3d4e5")
GOOD = (CheckItem(name="write", verdict=CheckVerdict.OK, seen="wrote"),)


@pytest.mark.parametrize(
    ("rule", "entered", "kept"),
    [
        (storages.datacenter, " eu-ro-1", "EU-RO-1"),
        (storages.volume_id, "a1b2c3d4e5", "a1b2c3d4e5"),
        (storages.bucket, "our.adapters-2", "our.adapters-2"),
        (storages.prefix, "", ""),
        (storages.prefix, "/", ""),
        (storages.prefix, "/team/tensor_ant/", "team/tensor_ant"),
        (storages.store_region, "auto", "auto"),
        (storages.store_region, "us-west-004", "us-west-004"),
        (storages.runpod_access_key_id, "user_2fJq0abcdefg", "user_2fJq0abcdefg"),
    ],
)
def test_what_is_well_named_is_kept(rule: Callable[[str], str], entered: str, kept: str) -> None:
    assert rule(entered) == kept


@pytest.mark.parametrize(
    ("rule", "entered"),
    [
        (storages.datacenter, "EU-XX-1"),
        (storages.volume_id, "My Volume"),
        (storages.volume_id, "short"),
        (storages.bucket, "s3://ours"),
        (storages.bucket, "Ours"),
        (storages.bucket, "o"),
        (storages.bucket, "a..b"),
        (storages.prefix, "a//b"),
        (storages.prefix, "../b"),
        (storages.prefix, "a/./b"),
        (storages.prefix, "a#b"),
        (storages.prefix, "a b"),
        (storages.prefix, "a" * 513),
        (storages.store_region, "us east"),
        (storages.store_region, ""),
        (storages.runpod_access_key_id, "rpa_ABCDEFGHIJKL"),
    ],
)
def test_what_is_not_is_refused_with_a_mend(rule: Callable[[str], str], entered: str) -> None:
    with pytest.raises(Invalid) as caught:
        rule(entered)
    assert caught.value.mend


def test_a_volume_keeps_the_archive_with_its_run() -> None:
    assert s3_connection().archive_path("run-1") == "adapter.zip"
    assert s3_connection(settings=VOLUME).archive_path("run-1") == "runs/run-1/adapter.zip"


def test_before_a_check_a_store_can_do_what_its_kind_is_documented_to_do() -> None:
    assert s3_connection().storage_abilities.presigned is True
    assert s3_connection(settings=VOLUME).storage_abilities.presigned is False


def test_what_a_good_check_found_counts_until_another_finds_otherwise() -> None:
    poor = replace(S3_ABILITIES, presigned=False)
    checked = s3_connection().checked(GOOD, at=NOON, abilities=poor)

    assert checked.storage_abilities == poor
    assert checked.checked(GOOD, at=NOON).storage_abilities == poor  # one that failed before it looked
    assert checked.checked(GOOD, at=NOON, abilities=S3_ABILITIES).storage_abilities == S3_ABILITIES
    assert checked.unproven().abilities is None


def test_compute_has_no_such_abilities() -> None:
    assert aws_connection().abilities is None
