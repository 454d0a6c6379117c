"""Storage that an organization brings: where it is, what it can do, and how its parts are named.

Each rule returns a name as it is kept, or raises `Invalid` with what is wrong and the mend.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tensorant.domain.errors import Invalid

GIB = 2**30
MB = 1_000_000

RUNPOD_DATACENTERS = (
    *("EU-CZ-1", "EU-RO-1", "EUR-IS-1", "EUR-NO-1"),
    *("US-CA-2", "US-GA-2", "US-IL-1", "US-KS-2", "US-MD-1", "US-MO-1", "US-MO-2"),
    *("US-NC-1", "US-NC-2", "US-NE-1", "US-WA-1"),
)
"""Where network volumes have an S3 API. Source: RunPod's documentation, "S3-compatible API", August 2026."""

RUNPOD_ENDPOINT = "https://s3api-{datacenter}.runpod.io"
"""Of a datacenter in lower case (the same page)."""

LONGEST_PREFIX = 512
"""Characters; a key has 1,024 bytes (S3, "Naming Amazon S3 objects"), and ours come after the prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPodStorageSettings:
    """A RunPod network volume, which is a bucket of its datacenter's S3 API; keys are paths on the volume."""

    kind: Literal["runpod_storage"] = "runpod_storage"
    datacenter: str
    volume_id: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAbilities:
    """What a store can do, as its check found it; sizes are the documented limits of one request."""

    presigned: bool
    """URLs that carry a right with them work."""
    conditional_writes: bool
    """A write can be refused because there is such an object already (If-None-Match)."""
    multipart: bool
    max_put_bytes: int
    max_part_bytes: int


S3_ABILITIES = StorageAbilities(
    presigned=True,
    conditional_writes=True,
    multipart=True,
    max_put_bytes=5 * GIB,
    max_part_bytes=5 * GIB,
)
"""Of AWS S3 itself: what holds for a connection whose check was made before abilities were looked at.

Source: S3, "Multipart upload limits".
"""

RUNPOD_ABILITIES = StorageAbilities(
    presigned=False,
    conditional_writes=False,
    multipart=True,
    max_put_bytes=500 * MB - 1,
    max_part_bytes=500 * MB,
)
"""Until a check has looked. Source: RunPod's documentation, "S3-compatible API", limits."""


def datacenter(text: str) -> str:
    """A RunPod datacenter with an S3 API, in capitals."""
    name = text.strip().upper()
    if name in RUNPOD_DATACENTERS:
        return name
    raise Invalid(
        "datacenter_unknown",
        "This is not a RunPod datacenter whose network volumes have an S3 API.",
        mend=f"Use the datacenter of your network volume, one of {', '.join(RUNPOD_DATACENTERS)}.",
    )


def volume_id(text: str) -> str:
    if re.fullmatch(r"[a-z0-9]{6,32}", text):
        return text
    raise Invalid(
        "volume_id_malformed",
        "A network volume's id has 6 to 32 lower case letters and digits.",
        mend="Enter the id that RunPod's console shows under Storage, not the volume's name.",
    )


def bucket(text: str) -> str:
    """3 to 63 lower case letters, digits, hyphens and dots (S3, "Bucket naming rules")."""
    if re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", text) and ".." not in text:
        return text
    raise Invalid(
        "bucket_malformed",
        "A bucket's name has 3 to 63 lower case letters, digits, hyphens and dots, and no two dots in a row.",
        mend="Enter the bucket's name alone: no s3:// before it, no folder after it (that is the prefix).",
    )


def prefix(text: str) -> str:
    """A folder, without slashes around it; characters that every store and URL takes as they are."""
    folder = text.strip("/")
    parts = folder.split("/") if folder else []
    if len(folder) <= LONGEST_PREFIX and all(_is_folder(part) for part in parts):
        return folder
    raise Invalid(
        "prefix_malformed",
        f"A prefix is a path of up to {LONGEST_PREFIX} letters, digits and !_.*'()-, its folders parted by single "
        "slashes and none of them . or ..",
        mend="Enter a folder such as team/tensorant, or leave the prefix out.",
    )


def store_region(text: str) -> str:
    """The name that a store other than AWS signs with: `auto`, `us-east-1`, `default`, …"""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        return text
    raise Invalid(
        "region_malformed",
        "A region's name has letters, digits, hyphens and underscores.",
        mend="Enter the region that your storage's documentation names; Cloudflare R2 calls its own auto.",
    )


def runpod_access_key_id(text: str) -> str:
    """The user's id, as RunPod shows it with an S3 API key."""
    if re.fullmatch(r"user_[A-Za-z0-9]{8,120}", text):
        return text
    raise Invalid(
        "access_key_id_malformed",
        "The access key id of RunPod's S3 API begins with user_.",
        mend="Copy it from Settings → S3 API keys in RunPod's console; a RunPod API key is another thing.",
    )


def _is_folder(part: str) -> bool:
    return part not in {".", ".."} and re.fullmatch(r"[A-Za-z0-9!_.*'()-]+", part) is not None
