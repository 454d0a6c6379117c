"""Values as people read them: dollars, durations, UTC times, sizes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

NONE = "-"

MINUTE = 60
HOUR = 3600
KILO = 1000


def usd(amount: Decimal | None) -> str:
    """Dollars to a hundredth of a cent, as quotes have them."""
    return NONE if amount is None else f"${amount:.4f}"


def usd_per_hour(amount: Decimal | None) -> str:
    return NONE if amount is None else f"{usd(amount)}/h"


def duration(seconds: float) -> str:
    """The two largest units that matter: `2 h 5 min`, `1 min 20 s`, `8 s`."""
    whole = max(0, round(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _two(whole, MINUTE, "min", "s")
    return _two(round(whole / MINUTE), MINUTE, "h", "min")


def _two(amount: int, size: int, large: str, small: str) -> str:
    count, rest = divmod(amount, size)
    return f"{count} {large} {rest} {small}" if rest else f"{count} {large}"


def utc(at: datetime | None) -> str:
    return NONE if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M:%S}"


def size(count: int | None) -> str:
    """Decimal units, as storage counts them."""
    if count is None:
        return NONE
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < KILO:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= KILO
    return f"{amount:.1f} GB"


def gib(mib: int) -> str:
    return f"{mib / 1024:.0f} GiB"


def words(name: str) -> str:
    """A stable name as words: `needs_recovery` is `needs recovery`."""
    return name.replace("_", " ")


def with_mend(what: str, mend: str) -> str:
    """What was seen, and on a line of its own what to do, if there is something to be done."""
    return f"{what}\nMend: {mend}" if mend else what


def number(value: float | None) -> str:
    """A loss, short."""
    return NONE if value is None else f"{value:.4g}"


def printable(text: str) -> str:
    """Without control characters: text of a machine or a provider must not steer the terminal."""
    return "".join(letter if letter.isprintable() or letter in "\t\n" else "�" for letter in text)
