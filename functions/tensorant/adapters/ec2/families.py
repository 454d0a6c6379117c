"""Which vCPU quota an instance type takes from.

Source: EC2 user guide, "On-Demand Instance quotas"; the quotas' codes from the Service Quotas console.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFamily:
    """Instance families that share one quota of running on-demand vCPUs in a region."""

    name: str
    code: str
    letters: frozenset[str]
    """What the names of its instance types begin with, up to the generation's number."""

    @property
    def title(self) -> str:
        """As Service Quotas lists it."""
        return f"Running On-Demand {self.name} instances"


G_AND_VT = QuotaFamily(name="G and VT", code="L-DB2E81BA", letters=frozenset({"g", "gr", "vt"}))
P = QuotaFamily(name="P", code="L-417A185B", letters=frozenset({"p"}))


def family_of(instance_type: str) -> QuotaFamily | None:
    """The quota of a GPU type; None for a family whose quota is not known here."""
    found = re.match(r"[a-z]+(?=\d)", instance_type)
    letters = found.group() if found else ""
    return next((family for family in (G_AND_VT, P) if letters in family.letters), None)
