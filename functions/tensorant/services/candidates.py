"""What to ask for next: the candidate, its price, and everything that a repeated ask must send identically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tensorant.boot.render import BootParameters, user_data
from tensorant.domain.connections import AwsSettings, Catalog, Connection
from tensorant.domain.errors import Capacity, Configuration, Deadline, Price
from tensorant.domain.machines import RECOVERY_WINDOW, Candidate, LaunchParameters, Machine
from tensorant.domain.offers import offered
from tensorant.domain.quotes import Quote
from tensorant.domain.runs import Run
from tensorant.domain.tokens import PLACEHOLDER
from tensorant.ports import Clock, Compute
from tensorant.services.quotes import current_quote, disk_gib

RELEASE_WAIT_SECONDS = 1800
"""How long a host that is done waits for its release before it stops itself."""

MIN_FREE_DISK_GIB = 20


@dataclass(frozen=True)
class Choice:
    """A machine to ask for, and the run with the candidates that were passed over."""

    run: Run
    machine: Machine


@dataclass(frozen=True)
class Choices:
    clock: Clock
    agent_url: str
    deployment_id: str

    def next(self, run: Run, connection: Connection, catalog: Catalog | None, *, compute: Compute) -> Choice:
        """The first candidate that its zone offers, that nobody refused and that the price limit allows.

        Raises `Price` if that leaves none, `Capacity` if all have been refused.
        """
        if not isinstance(connection.settings, AwsSettings):
            raise Configuration("not_aws", "The connection is not to AWS.", mend="Choose an AWS connection.")
        offers = tuple(offered(run.draft.instance_types, connection, catalog))
        too_dear: Price | None = None
        while (candidate := run.next_candidate(offers)) is not None:
            try:
                quote = self._quoted(run, candidate, connection, compute)
            except Price as error:
                too_dear, run = error, _without_type(run, candidate.instance_type, offers)
                continue
            return Choice(run, self._machine(run, candidate, connection, quote))
        raise too_dear or Capacity(
            "no_candidate_left",
            "No acceptable GPU type could be had in the connection's subnets.",
            mend="Allow other GPU types, add a subnet in another zone, or launch again later.",
        )

    def _quoted(self, run: Run, candidate: Candidate, connection: Connection, compute: Compute) -> Quote:
        """A fresh quote of the claim's holds for its type and disk; all else is priced before it is asked for."""
        claimed = run.quote
        if (
            claimed is not None
            and claimed.instance_type == candidate.instance_type
            and claimed.disk_gib == disk_gib(run.draft, connection)
            and claimed.holds(self.clock.now())
        ):
            return claimed
        quote = current_quote(
            run.draft, candidate.instance_type, connection, compute=compute, clock=self.clock
        )
        quote.require_within(run.draft.price_limit_usd_per_hour)
        return quote

    def _machine(self, run: Run, candidate: Candidate, connection: Connection, quote: Quote) -> Machine:
        attempt, now = run.attempt + 1, self.clock.now()
        return Machine(
            run_id=run.id,
            attempt=attempt,
            organization_id=run.organization_id,
            connection_id=connection.id,
            account_id=connection.account_id or "",
            candidate=candidate,
            parameters=self._parameters(run, attempt, connection, now),
            quote=quote,
            asked_at=now,
        )

    def _parameters(self, run: Run, attempt: int, connection: Connection, now: datetime) -> LaunchParameters:
        settings, image = connection.settings, connection.image
        if not isinstance(settings, AwsSettings) or image is None or run.deadline_at is None:
            raise Configuration(
                "connection_not_checked",
                f"The connection {connection.name} has not passed its check.",
                mend="Check the connection and mend what it reports.",
            )
        return LaunchParameters(
            region=settings.region,
            image_id=settings.image_id,
            root_device=image.root_device,
            other_devices=image.other_devices,
            disk_gib=disk_gib(run.draft, connection),
            security_group_id=settings.security_group_id,
            key_name=settings.key_name,
            instance_profile_arn=settings.instance_profile_arn,
            user_data=self._boot(run, attempt, seconds=int((run.deadline_at - now).total_seconds())),
            tags={
                "Name": f"tensorant {run.id}",
                "tensorant:managed": "true",
                "tensorant:deployment": self.deployment_id,
                "tensorant:run": run.id,
                "tensorant:attempt": str(attempt),
            },
        )

    def _boot(self, run: Run, attempt: int, *, seconds: int) -> str:
        if seconds <= 0:
            raise Deadline(
                "time_limit",
                "The run's time limit passed before a machine could be asked for.",
                mend="Allow more time, or other GPU types.",
            )
        return user_data(
            BootParameters(
                agent_url=f"{self.agent_url.rstrip('/')}/agent/v1",
                token=PLACEHOLDER,
                run_id=run.id,
                attempt=attempt,
                deadline_seconds=seconds,
                recovery_window_seconds=int(RECOVERY_WINDOW.total_seconds()),
                release_wait_seconds=RELEASE_WAIT_SECONDS,
                min_free_disk_gib=MIN_FREE_DISK_GIB,
            )
        )


def _without_type(run: Run, instance_type: str, offers: Sequence[Candidate]) -> Run:
    """Its price is the same in every subnet: it is read once, and all its candidates are passed over."""
    for each in offers:
        if each.instance_type == instance_type and each not in run.refused:
            run = run.refusing(each)
    return run
