"""`ports.ObjectStore` on S3 and on stores that speak its API, and the deployment's own staging bucket."""

from __future__ import annotations

from tensorant.adapters.s3.clients import config
from tensorant.adapters.s3.staging import StagingBucket
from tensorant.adapters.s3.store import S3Store
from tensorant.adapters.s3.stores import S3Stores

__all__ = ["S3Store", "S3Stores", "StagingBucket", "config"]
