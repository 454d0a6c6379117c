"""What users receive of a run that they are about to launch."""

from __future__ import annotations

from decimal import Decimal
from typing import Self

from pydantic import BaseModel

from tensorant.domain.quotas import VcpuQuota
from tensorant.handlers.views import QuoteView, RunView
from tensorant.services.reviews import Problem, Review


class ReviewedQuoteView(QuoteView):
    within_limit: bool


class QuotaView(BaseModel):
    """vCPUs of the family's quota; None where unknown, and `unknown_because` says why."""

    family: str
    code: str
    needed: int
    limit: int | None
    in_use: int | None
    headroom: int | None
    suffices: bool | None
    unknown_because: str

    @classmethod
    def of(cls, quota: VcpuQuota) -> Self:
        return cls(
            family=quota.family,
            code=quota.code,
            needed=quota.needed,
            limit=quota.limit,
            in_use=quota.in_use,
            headroom=quota.headroom,
            suffices=quota.suffices,
            unknown_because=quota.unknown_because,
        )


class ReviewView(BaseModel):
    run: RunView
    quote: QuoteView
    """Of the type that would be asked for first."""
    within_limit: bool
    quotes: list[ReviewedQuoteView]
    """Of every acceptable type with a price, in the run's order."""
    most_usd: Decimal
    """What the machine costs at most until the time limit."""
    quota: QuotaView
    problems: tuple[Problem, ...]
    """What stands against launching; only a blocking one ends the launch."""
    note: str = "Nothing is reserved: price and availability are checked again at launch."

    @classmethod
    def of(cls, review: Review) -> Self:
        quotes = [
            ReviewedQuoteView(
                **QuoteView.of(each, at=review.at).model_dump(), within_limit=review.within(each)
            )
            for each in review.quotes
        ]
        return cls(
            run=RunView.of(review.run),
            quote=QuoteView.of(review.quote, at=review.at),
            within_limit=review.within_limit,
            quotes=quotes,
            most_usd=review.most_usd,
            quota=QuotaView.of(review.quota),
            problems=review.problems,
        )
