"""The provider function: reviews and adapters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tensorant import bootstrap
from tensorant.contract import VerificationReport
from tensorant.domain.connections import ConnectionStatus
from tensorant.domain.quotas import VcpuQuota
from tensorant.domain.runs import Adapter, Outcome
from tensorant.handlers import provider
from tensorant.handlers.review_views import ReviewView
from tensorant.services.reviews import Reviews
from tests.support.calls import Caller
from tests.support.worlds import MEMBER, ORG, RUN, S3, World, aws_connection, dataset_version, run

BASE = f"/v1/organizations/{ORG}/runs/{RUN}"
ADAPTER = Adapter(key="runs/run-1/attempt-1/adapter.zip", etag='"e"', report=VerificationReport(sound=True))


@pytest.fixture
def member(cloud: World, people: Callable[..., Caller]) -> Caller:
    return people(provider)


@pytest.mark.parametrize("route", ["review", "adapter"])
def test_a_foreign_run_is_not_found(cloud: World, member: Caller, route: str) -> None:
    cloud.store.commit(run())

    assert member.as_("sam").get(f"{BASE}/{route}").status == 404
    assert member.get(f"/v1/organizations/org-2/runs/{RUN}/{route}").status == 404


def test_a_review_needs_a_connection_that_is_ready(cloud: World, member: Caller) -> None:
    cloud.store.commit(run(), aws_connection(status=ConnectionStatus.FAILED, version=1))

    answer = member.get(f"{BASE}/review")

    assert (answer.status, answer.error["code"]) == (409, "connection_not_ready")


def test_a_review_needs_credentials(cloud: World, member: Caller) -> None:
    cloud.store.commit(run())

    answer = member.get(f"{BASE}/review")

    assert (answer.status, answer.error["code"]) == (409, "credentials_missing")
    assert answer.error["mend"]


def test_a_review_is_answered_in_plain_numbers(cloud: World) -> None:
    """What a person reads: two hours of g6.xlarge at $0.8207, with a quota that is used up."""
    cloud.store.commit(run())
    cloud.compute.quota_result = VcpuQuota(family="G and VT", code="L-DB2E81BA", needed=4, limit=8, in_use=6)
    review = Reviews(cloud.store, cloud.computes, cloud.clock).review(MEMBER, ORG, RUN)

    answer = ReviewView.of(review).model_dump(mode="json")

    assert answer["quote"] == {
        "usd_per_hour": "0.8207",
        "compute_usd_per_hour": "0.8048",
        "disk_usd_per_hour": "0.0159",
        "disk_gib": 145,
        "instance_type": "g6.xlarge",
        "priced_at": "2026-08-01T12:00:00Z",
        "priced_seconds_ago": 0,
        "parts": [
            {"name": "compute", "usd_per_hour": "0.8048", "basis": "g6.xlarge, Linux, on demand"},
            {
                "name": "disk",
                "usd_per_hour": "0.0159",
                "basis": "145 GiB of gp3 at $0.08 a GiB-month, over 730 hours",
            },
        ],
        "excluded": ["NAT gateway", "data transfer", "taxes", "account-specific discounts"],
    }
    assert answer["quotes"] == [{**answer["quote"], "within_limit": True}]
    assert (answer["within_limit"], answer["most_usd"]) == (True, "1.6414")
    assert answer["quota"] == {
        "family": "G and VT",
        "code": "L-DB2E81BA",
        "needed": 4,
        "limit": 8,
        "in_use": 6,
        "headroom": 2,
        "suffices": False,
        "unknown_because": "",
    }
    (problem,) = answer["problems"]
    assert (problem["code"], problem["field"], problem["blocking"]) == (
        "quota_insufficient",
        "instance_types",
        False,
    )
    assert "2 of 8 are free" in problem["message"]


@pytest.fixture(scope="module")
def stored(deployment: pytest.MonkeyPatch) -> str:
    """The ETag of an archive in the organization's bucket."""
    client = bootstrap.client("s3")
    client.create_bucket(Bucket="adapters")
    stored = client.put_object(Bucket="adapters", Key=f"team/{ADAPTER.key}", Body=b"an archive")
    return str(stored["ETag"])


def test_an_adapter_is_downloaded_from_the_organizations_own_bucket(
    cloud: World, member: Caller, stored: str
) -> None:
    cloud.store.commit(run(outcome=Outcome.SUCCEEDED, adapter=replace(ADAPTER, etag=stored)))
    bootstrap.secrets().write(S3, {"access_key_id": "AKIA", "secret_access_key": "secret"})

    answer = member.get(f"{BASE}/adapter")

    assert answer.status == 200
    assert answer.body["key"] == ADAPTER.key
    assert answer.body["report"]["sound"] is True
    url = answer.body["download_url"]
    assert url.startswith("https://adapters.s3.")
    assert "/team/runs/run-1/attempt-1/adapter.zip?" in url
    assert f"X-Amz-Expires={answer.body['expires_in_seconds']}" in url


@pytest.mark.usefixtures("stored")
def test_an_object_that_is_no_longer_the_verified_one_is_not_handed_out(cloud: World, member: Caller) -> None:
    cloud.store.commit(run(outcome=Outcome.SUCCEEDED, adapter=ADAPTER))
    bootstrap.secrets().write(S3, {"access_key_id": "AKIA", "secret_access_key": "secret"})

    answer = member.get(f"{BASE}/adapter")

    assert (answer.status, answer.error["code"]) == (409, "adapter_changed")


def test_without_an_adapter_there_is_nothing_to_download(cloud: World, member: Caller) -> None:
    cloud.store.commit(run())

    answer = member.get(f"{BASE}/adapter")

    assert (answer.status, answer.error["code"]) == (409, "no_adapter")


# -- previews ----------------------------------------------------------------------------------------------

PREVIEW = f"/v1/organizations/{ORG}/dataset-versions/data-1/preview"


def test_a_preview_is_of_the_own_organization(member: Caller) -> None:
    assert member.as_("sam").get(PREVIEW).status == 404
    assert member.get(PREVIEW.replace(ORG, "org-2")).status == 404


def test_a_preview_shows_the_first_rows(cloud: World, member: Caller) -> None:
    cloud.store.commit(dataset_version(stored_key="shown.jsonl", version=1))
    storage = bootstrap.storages().open(cloud.store.connection(ORG, S3))
    storage.put("shown.jsonl", b'{"text": "a"}\n{"text": "b"}\n')

    answer = member.get(PREVIEW, "rows=1")

    assert (answer.status, answer.body) == (200, {"rows": [{"text": "a"}], "more": True})


def test_a_preview_of_what_is_gone_from_the_storage_is_a_conflict(member: Caller) -> None:
    answer = member.get(PREVIEW)

    assert (answer.status, answer.error["code"]) == (409, "dataset_missing")
    assert answer.error["mend"] == "Upload the same file again: it is stored in its old place."


@pytest.mark.parametrize("rows", ["0", "101", "all"])
def test_a_preview_has_from_one_to_a_hundred_rows(member: Caller, rows: str) -> None:
    answer = member.get(PREVIEW, f"rows={rows}")

    assert (answer.status, answer.error["field"]) == (422, "rows")
