"""The sweep's part for datasets: what is being validated without a worker, and what nobody uploaded."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorant.domain.datasets.report import DatasetFault
from tensorant.domain.errors import Conflict, TensorantError
from tensorant.domain.projects import MAX_RESTARTS, Care, DatasetVersion
from tensorant.ports import Clock, Store, Workers

ABANDONED = DatasetFault(
    line=0,
    field="",
    message="No upload was completed within a day.",
    mend="Create another version, upload its file and complete it.",
)


@dataclass
class StuckReport:
    """What was done, by the versions' ids; `troubled` says what could not be."""

    restarted: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    troubled: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StuckDatasets:
    store: Store
    workers: Workers
    clock: Clock

    def sweep(self) -> StuckReport:
        """One pass over the versions that are open. Trouble with one of them does not stop the pass."""
        report = StuckReport()
        for dataset in self.store.open_dataset_versions():
            try:
                self._tend(dataset, report)
            except Conflict:
                continue  # somebody has just taken care of it
            except TensorantError as error:
                report.troubled[dataset.id] = f"{error.message} {error.mend}".strip()
        return report

    def _tend(self, listed: DatasetVersion, report: StuckReport) -> None:
        """The listing may lag: what decides is read again, and the write is conditional on it."""
        now = self.clock.now()
        dataset = self.store.dataset_version(listed.organization_id, listed.id)
        match dataset.care(at=now):
            case Care.RESTART:
                self.store.commit(dataset.restarted(at=now))
                self.workers.validate_dataset(dataset.organization_id, dataset.id)
                report.restarted.append(dataset.id)
            case Care.GIVE_UP:
                self.store.commit(dataset.invalid((_given_up(dataset),)))
                report.given_up.append(dataset.id)
            case Care.ABANDON:
                self.store.commit(dataset.invalid((ABANDONED,)))
                report.abandoned.append(dataset.id)
            case None:
                return


def _given_up(dataset: DatasetVersion) -> DatasetFault:
    """In the words of what stood in the way last, if that is known."""
    times = f"The validation was started {MAX_RESTARTS + 1} times and came to no end"
    if dataset.trouble is not None:
        message, mend = f"{times}: {dataset.trouble.message}", dataset.trouble.mend
        return DatasetFault(
            line=0, field="", message=message, mend=mend or "Mend it, then create another version."
        )
    return DatasetFault(
        line=0,
        field="",
        message=f"{times} in time.",
        mend="Split the file; if it is small, check the project's storage connection.",
    )
