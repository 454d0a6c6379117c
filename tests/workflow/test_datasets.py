"""Dataset versions through the deployed functions: staged, validated, stored, shown, and picked up when stuck."""

from __future__ import annotations

import gzip
import sys
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

from tests.workflow.conftest import ROW, ok, until

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from tests.workflow.conftest import World

CALL = (
    b'{"messages": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [{"type": "function",'
    b' "function": {"name": "weather", "arguments": {}}}]}], "tools": [{"function": {"name": "weather"}}]}\n'
)


def staged(world: World, content: bytes) -> str:
    path = f"{world.path}/projects/{world.project_id}/dataset-versions"
    upload = ok(world.owner.post(path, json={"name": "rows"}))
    httpx.put(upload["upload_url"], content=content, trust_env=False).raise_for_status()
    return str(upload["dataset_version"]["id"])


def shown(world: World, version_id: str) -> dict[str, Any]:
    return ok(world.owner.get(f"{world.path}/dataset-versions/{version_id}"))


def judged(world: World, content: bytes) -> dict[str, Any]:
    version_id = staged(world, content)
    ok(world.owner.post(f"{world.path}/dataset-versions/{version_id}/complete"))
    until(lambda: shown(world, version_id)["status"] != "validating")
    return shown(world, version_id)


def test_a_compressed_file_is_stored_decompressed_and_previewed(world: World) -> None:
    version = judged(world, zstd.compress(CALL * 2 + ROW.replace(b"\n", b"\r\n")))

    assert (version["status"], version["rows"], version["faults"]) == ("valid", 3, [])
    assert version["report"]["compression"] == "zstd"
    assert (version["report"]["duplicates"], version["report"]["tool_rows"]) == (1, 2)
    key = f"acme/projects/{world.project_id}/datasets/{version['sha256']}.jsonl"
    stored = world.cloud.client("s3").get_object(Bucket=world.account.bucket, Key=key)
    assert stored["Body"].read() == CALL * 2 + ROW
    preview = f"{world.path}/dataset-versions/{version['id']}/preview"
    assert (
        ok(world.owner.get(preview, params={"rows": 1}))["rows"][0]["tools"][0]["function"]["name"]
        == "weather"
    )
    assert world.stranger.get(preview).status_code == 404


def test_the_same_content_is_the_same_version_and_what_a_run_is_made_of(world: World) -> None:
    version = judged(world, gzip.compress(ROW * 3))

    assert version["same_as"] == world.dataset_version_id
    listed = ok(world.owner.get(f"{world.path}/projects/{world.project_id}/dataset-versions"))["items"]
    assert version["id"] not in {each["id"] for each in listed}
    drafted = ok(world.draft(dataset_version_id=version["id"]))
    assert drafted["dataset_version_id"] == world.dataset_version_id


def test_a_faulty_file_tells_line_field_and_mend(world: World) -> None:
    version = judged(world, ROW + b'{"messages": [{"role": "human", "content": "Hi"}]}\n')

    assert version["status"] == "invalid"
    (fault,) = version["faults"]
    assert (fault["line"], fault["field"], fault["mend"]) == (2, "messages[0].role", 'Write "user".')


def test_a_validation_without_a_worker_is_picked_up_by_the_sweep(world: World) -> None:
    version_id = staged(world, ROW * 5)
    dataset = world.store.dataset_version(world.organization_id, version_id)
    long_ago = dataset.created_at - timedelta(minutes=21)
    world.store.commit(replace(dataset.validating(at=long_ago), restarts=1))

    report = world.invoke("sweep")

    assert report["datasets"]["restarted"] == [version_id]
    until(lambda: shown(world, version_id)["status"] == "valid")
    assert world.invoke("sweep")["datasets"]["restarted"] == []
