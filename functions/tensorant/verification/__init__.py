"""The adapter verifier: the same code judges an archive in the trainer, in Lambda and at a user's desk.

Standard library and contract only. `verify` tells the story; one module per step.
"""

from tensorant.verification.archive import CHUNK_BYTES, Archive, FileArchive
from tensorant.verification.faults import Code
from tensorant.verification.verdict import CHECKS, Expected, verify

__all__ = ["CHECKS", "CHUNK_BYTES", "Archive", "Code", "Expected", "FileArchive", "verify"]
