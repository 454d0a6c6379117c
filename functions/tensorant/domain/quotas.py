"""How much of a provider's quota a machine would take, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VcpuQuota:
    """vCPUs of one family of on-demand instances in one region; None where it could not be read.

    `unknown_because` says why `limit` or `in_use` are not known, and how to make them known.
    """

    family: str
    """For people: "G and VT" or "P"."""
    code: str
    """AWS's own code of the quota, for a request to raise it."""
    needed: int
    """What one machine of the type takes."""
    limit: int | None = None
    in_use: int | None = None
    unknown_because: str = ""

    @property
    def headroom(self) -> int | None:
        """What is left before the machine; None if unknown."""
        if self.limit is None or self.in_use is None:
            return None
        return max(0, self.limit - self.in_use)

    @property
    def suffices(self) -> bool | None:
        """Whether the machine fits; None if unknown."""
        return None if self.headroom is None else self.needed <= self.headroom
