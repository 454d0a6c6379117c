"""RunPod's network volumes as buckets.

Source: RunPod's documentation, "S3-compatible API": endpoint and region from the datacenter, the volume's id as
bucket, paths in the URL; known issues: 502s that pass when repeated, and a CompleteMultipartUpload of a large
file that answers late.
"""

from __future__ import annotations

from tensorant.adapters.s3.clients import Place
from tensorant.domain.storages import RUNPOD_ENDPOINT, RunPodStorageSettings

ATTEMPTS = 10
READ_SECONDS = 600


def place(settings: RunPodStorageSettings, *, endpoint: str = RUNPOD_ENDPOINT) -> Place:
    return Place(
        region=settings.datacenter,
        bucket=settings.volume_id,
        prefix=settings.prefix,
        endpoint_url=endpoint.replace("{datacenter}", settings.datacenter.lower()),
        addressing_style="path",
        attempts=ATTEMPTS,
        read_seconds=READ_SECONDS,
    )
