"""What a provider has scheduled for machines: what it means for their disks, and what to do before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tensorant.domain.machines import Machine
from tensorant.domain.timeline import Fact

MACHINE_WARNING = "machine_warning"
"""Kind of the facts that tell of a scheduled change."""


class Consequence(StrEnum):
    """What a scheduled change does to a machine. Source: EC2 user guide, scheduled events for instances."""

    STOPS = "stops"
    ENDS = "ends"
    """Its disk goes with it."""
    DISTURBS = "disturbs"
    """A restart, or trouble with power or network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange:
    """One notice. `code` is AWS Health's event type code; `starts_at` is None where it names no time."""

    code: str
    starts_at: datetime | None
    instance_ids: tuple[str, ...]

    @property
    def consequence(self) -> Consequence:
        """Machines whose root is on EBS have retirements of their own, which stop them."""
        if "_PERSISTENT_INSTANCE_RETIREMENT_" in self.code or "_INSTANCE_STOP_" in self.code:
            return Consequence.STOPS
        if "_INSTANCE_RETIREMENT_" in self.code or "_INSTANCE_TERMINATION_" in self.code:
            return Consequence.ENDS
        return Consequence.DISTURBS

    def warning(self, machine: Machine, *, at: datetime) -> Fact:
        """The warning for one machine. The same code and start give the same fact, however often it is told."""
        start = f"{self.starts_at:%Y%m%d%H%M}" if self.starts_at else "open"
        return Fact(
            run_id=machine.run_id,
            id=f"machine-{machine.attempt}-warning-{self.code}-{start}",
            at=at,
            kind=MACHINE_WARNING,
            source="provider",
            message=self._told(machine.instance_id or ""),
            attempt=machine.attempt,
        )

    def _told(self, instance_id: str) -> str:
        when = f"from {self.starts_at:%Y-%m-%d %H:%M} UTC on" if self.starts_at else "at a time not yet known"
        match self.consequence:
            case Consequence.STOPS:
                what = f"EC2 will stop the machine {instance_id} {when}; its disk is kept."
                mend = "Let the run finish before, or recover its adapter from the disk afterwards."
            case Consequence.ENDS:
                what = f"EC2 will terminate the machine {instance_id} {when}, and its disk goes with it."
                mend = "Let the run finish before, or cancel it with its output kept and recover the adapter in time."
            case Consequence.DISTURBS:
                what = f"EC2 will work on the host of the machine {instance_id} {when}: it may restart."
                mend = "Let the run finish before: a training that was cut off does not go on."
        return f"{what} {mend} (AWS Health: {self.code})"


def standing_warnings(facts: Sequence[Fact], machines: Sequence[Machine]) -> tuple[Fact, ...]:
    """The warnings of a run's timeline that still concern somebody.

    A machine that is gone has none left, and neither has one that came to a stop since it was warned: it
    starts again on other hardware (EC2 user guide, instance retirement).
    """
    machine_of = {machine.attempt: machine for machine in machines if not machine.closed}

    def stands(fact: Fact) -> bool:
        machine = machine_of.get(fact.attempt or 0)
        if fact.kind != MACHINE_WARNING or machine is None:
            return False
        return machine.confirmed_stopped_at is None or machine.confirmed_stopped_at < fact.at

    return tuple(fact for fact in facts if stands(fact))
