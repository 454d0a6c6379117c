"""How what a check saw becomes an item: failed by its failures, else a warning by its warnings, else ok."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tensorant.domain.connections import CheckItem, CheckVerdict
from tensorant.domain.errors import ProviderError

OK, WARNING, FAILED = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILED


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, or may surprise: what was seen, and what to do."""

    verdict: CheckVerdict
    seen: str
    mend: str


def failed(seen: str, mend: str) -> Fault:
    return Fault(FAILED, seen, mend)


def warning(seen: str, mend: str) -> Fault:
    return Fault(WARNING, seen, mend)


def item(name: str, faults: Iterable[Fault], *, good: str) -> CheckItem:
    """All the faults of the worst kind, in one item; `good` is what is seen without any."""
    found = list(faults)
    for verdict in (FAILED, WARNING):
        worst = [fault for fault in found if fault.verdict is verdict]
        if worst:
            seen = " ".join(fault.seen for fault in worst)
            mends = dict.fromkeys(fault.mend for fault in worst)
            return CheckItem(name=name, verdict=verdict, seen=seen, mend=" ".join(mends))
    return CheckItem(name=name, verdict=OK, seen=good)


def unread(name: str, error: ProviderError) -> CheckItem:
    """It could not be looked at."""
    return CheckItem(name=name, verdict=FAILED, seen=error.message, mend=error.mend)
