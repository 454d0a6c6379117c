"""One measurement in a process of its own: `python -m bench._verifying HOW URL KEY FILE`.

Prints seconds of wall time and the process's peak memory in bytes. Importing is not counted in the time.
"""

# ruff: noqa: PLC0415 - each way imports what it needs, and nothing of the others

from __future__ import annotations

import hashlib
import json
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUCKET = "bench"


def main() -> int:
    how, url, key, file = sys.argv[1:]
    work = {"floor": floor, "verifier": verifier, "usual": usual}[how](url, key, Path(file))
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))
    return 0


def floor(_url: str, _key: str, file: Path) -> Callable[[], object]:
    """SHA-256 over the same bytes, which the kernel has in memory."""

    def work() -> str:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    return work


def verifier(url: str, key: str, _file: Path) -> Callable[[], object]:
    """What VerifyAdapter does with the archive, over the product's own S3 adapter."""
    from tensorant.adapters.s3 import S3Store
    from tensorant.contract import Manifest
    from tensorant.services.verify import StoredArchive
    from tensorant.verification import Expected, verify

    storage = S3Store(client(url), BUCKET, "")

    def work() -> None:
        stated = storage.get(f"{key}.json", limit=1 << 20)
        facts = storage.head(key)
        assert stated is not None
        assert facts is not None
        digest = Manifest.model_validate_json(stated).archive
        report = verify(StoredArchive(storage, key, facts), Expected(archive=digest))
        assert report.sound, report.fault

    return work


def usual(url: str, key: str, _file: Path) -> Callable[[], object]:
    """Download, unzip, safetensors to numpy, look for NaN and zeros, hash each file."""
    import numpy as np
    from safetensors.numpy import load_file

    s3 = client(url)

    def work() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch, "adapter.zip")
            s3.download_file(BUCKET, key, str(archive))
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(scratch)
            tensors = load_file(Path(scratch, "adapter_model.safetensors"))
            assert all(np.isfinite(each).all() and each.any() for each in tensors.values())
            for path in Path(scratch).iterdir():
                with path.open("rb") as opened:
                    hashlib.file_digest(opened, "sha256")

    return work


def client(url: str) -> Any:
    import boto3

    from tensorant.adapters.s3 import config

    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
        config=config("path"),
    )


if __name__ == "__main__":
    sys.exit(main())
