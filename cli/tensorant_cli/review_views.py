"""How a review is shown: what a run would cost, what it takes from the quota, what stands against it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tensorant_cli.formats import NONE, duration, usd, usd_per_hour, utc, with_mend
from tensorant_cli.models import Obstacle, Quota, Quote, Review, ReviewedQuote
from tensorant_cli.output import facts, table


def review_view(review: Review) -> RenderableType:
    """The quote with its parts, the other acceptable types, the quota, and what is in the way."""
    return Group(facts(_facts(review)), *_alternatives(review.quotes), *_obstacles(review.problems))


def _facts(review: Review) -> dict[str, str]:
    quote, run = review.quote, review.run
    limit = usd_per_hour(run.price_limit_usd_per_hour)
    return {
        "Run": f"{run.id} ({run.name})",
        "Type": f"{quote.instance_type}, asked for first",
        "Price": f"{usd_per_hour(quote.usd_per_hour)}, "
        + (f"within the limit of {limit}" if review.within_limit else f"ABOVE the limit of {limit}"),
        **_parts(quote),
        "Not included": ", ".join(quote.excluded) or NONE,
        "Priced": f"{utc(quote.priced_at)}, {duration(quote.priced_seconds_ago)} ago",
        "Time limit": duration(run.time_limit_minutes * 60),
        "At most": f"{usd(review.most_usd)} if it runs to its time limit"
        + (", whichever of its types it gets" if len(review.quotes) > 1 else ""),
        "Quota": quota_text(review.quota),
    }


def _parts(quote: Quote) -> dict[str, str]:
    return {f"  {part.name}": f"{usd_per_hour(part.usd_per_hour)}  {part.basis}" for part in quote.parts}


def quota_text(quota: Quota) -> str:
    """`G and VT: 4 vCPUs needed; 60 of 64 free, 4 in use (L-DB2E81BA)`, or why it is not known."""
    if quota.headroom is None:
        return f"unknown: {quota.unknown_because}"
    fits = "" if quota.suffices else "NOT ENOUGH: "
    return (
        f"{fits}{quota.needed} vCPUs needed, {quota.headroom} free: {quota.in_use} of {quota.limit} in use "
        f"({quota.family}, {quota.code})"
    )


def _alternatives(quotes: Sequence[ReviewedQuote]) -> Sequence[RenderableType]:
    """The types in the order in which they are asked for; nothing if there is only one."""
    if len(quotes) < 2:  # noqa: PLR2004 - one has been shown already
        return ()
    rows = [
        (
            each.instance_type,
            usd_per_hour(each.usd_per_hour),
            "within the limit" if each.within_limit else "above the limit: passed over",
        )
        for each in quotes
    ]
    return Text(), table(None, ("Types in turn", "Price", ""), rows)


def _obstacles(problems: Sequence[Obstacle]) -> Sequence[RenderableType]:
    """What ends the launch first, then what is only to be known."""
    if not problems:
        return ()
    ordered = sorted(problems, key=lambda each: not each.blocking)
    rows = [
        ("blocks" if each.blocking else "warning", with_mend(each.message, each.mend)) for each in ordered
    ]
    return Text(), table(None, ("Problem", "What"), rows)
