"""A stand-in for the S3 API of RunPod's network volumes, on loopback, with its gaps and its known troubles.

Source: RunPod's documentation, "S3-compatible API", August 2026, and what its users report; what is guessed is
listed in docs/unverified.md.
"""

from __future__ import annotations

from tensorant_local.runpod_storage.server import RunPodStorage

__all__ = ["RunPodStorage"]
