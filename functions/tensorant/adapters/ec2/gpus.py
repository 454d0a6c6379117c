"""What EC2 does not say of a GPU, or says wrong: its generation, and its memory."""

from __future__ import annotations

import re

_PRE_AMPERE = re.compile(r"(?:Tesla |GRID |Quadro )*(?:[KMPVT]\d|Quadro|GTX)", re.IGNORECASE)
"""NVIDIA names a data-centre GPU by the letter of its generation: Kepler, Maxwell, Pascal, Volta and Turing are
older than Ampere (compute capability 8.0). That set is closed: EC2 adds no types with old GPUs, so a name that
is not of it counts as newer, and a new family appears in the catalog by itself. The machine's own preflight is
the second guard. Source: NVIDIA, "CUDA GPU compute capability"."""

_NOMINAL_MIB = {"A10G": 24 * 1024, "L4": 24 * 1024, "L40S": 48 * 1024}
"""EC2 reports these by 10^9 bytes (22888 MiB for 24 GB), and others by 2^30 (NVIDIA data sheets: 24 and 48 GB)."""

_TOLERANCE = 0.1
"""How far a report may be from the nominal size to be the same memory; a slice of a GPU is farther."""


def is_older_than_ampere(name: str) -> bool:
    return _PRE_AMPERE.match(name) is not None


def memory_mib(name: str, reported_mib: int) -> int:
    """The GPU's memory, the same for each vintage of the API."""
    nominal = _NOMINAL_MIB.get(name)
    if nominal is None or abs(reported_mib - nominal) > _TOLERANCE * nominal:
        return reported_mib
    return nominal
