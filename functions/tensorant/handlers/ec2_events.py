"""What EC2 and AWS Health tell of instances, on the default bus or the customers'. It is looked up, not believed."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal

from aws_lambda_powertools import Logger
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from tensorant import bootstrap
from tensorant.domain.maintenance import ScheduledChange

logger = Logger()

Account = Annotated[str, Field(pattern=r"^\d{12}$")]
"""Of the envelope: EventBridge writes it, also on events from other accounts."""


class InstanceState(BaseModel):
    instance_id: str = Field(alias="instance-id", min_length=1)


class StateChange(BaseModel):
    """Source: EC2 user guide, instance state-change notification."""

    kind: Literal["EC2 Instance State-change Notification"] = Field(alias="detail-type")
    source: Literal["aws.ec2"]
    account: Account
    region: str
    detail: InstanceState

    def act(self) -> None:
        bootstrap.provider_events().instance_changed(self.account, self.region, self.detail.instance_id)


class Entity(BaseModel):
    value: str = Field(alias="entityValue", min_length=1)


class HealthDetail(BaseModel):
    service: Literal["EC2"]
    category: Literal["scheduledChange"] = Field(alias="eventTypeCategory")
    code: str = Field(alias="eventTypeCode", min_length=1, max_length=200)
    region: str | None = Field(alias="eventRegion", default=None)
    """Of the instances. The envelope's may be the Region that Health keeps copies in."""
    status: str = Field(alias="statusCode", default="upcoming")
    start: str | None = Field(alias="startTime", default=None)
    entities: list[Entity] = Field(alias="affectedEntities", default=[])


class HealthNotice(BaseModel):
    """Source: AWS Health user guide, EventBridge schema of its events."""

    kind: Literal["AWS Health Event"] = Field(alias="detail-type")
    source: Literal["aws.health"]
    account: Account
    region: str
    detail: HealthDetail

    def act(self) -> None:
        """A notice that is closed warns of nothing any more."""
        if self.detail.status == "closed":
            return
        change = ScheduledChange(
            code=self.detail.code,
            starts_at=_time(self.detail.start),
            instance_ids=tuple(entity.value.rpartition("/")[2] for entity in self.detail.entities),
        )
        region = self.detail.region or self.region
        bootstrap.provider_events().change_scheduled(self.account, region, change)


_EVENTS: TypeAdapter[StateChange | HealthNotice] = TypeAdapter(
    Annotated[StateChange | HealthNotice, Field(discriminator="kind")]
)


def handler(event: dict[str, Any], _context: object) -> None:
    """One event. What is none of the known kinds is logged and passed over: it would be none the next time."""
    try:
        told = _EVENTS.validate_python(event)
    except ValidationError as error:
        wrong = [".".join(str(part) for part in each["loc"]) for each in error.errors(include_url=False)]
        logger.warning(
            "not an event of EC2 that is known here", extra={"event": event.get("id"), "wrong": wrong}
        )
        return
    told.act()


def _time(text: str | None) -> datetime | None:
    """A moment in UTC, as mail headers write it (`Sat, 01 Aug 2026 15:10:09 GMT`); None if it is none."""
    try:
        moment = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
