"""What depends on a connection, and what may therefore not be done to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tensorant.domain.connections import Connection
from tensorant.domain.errors import Conflict
from tensorant.domain.machines import Machine
from tensorant.domain.projects import Project
from tensorant.domain.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The machines of a connection that are not closed, the runs under way on it, the projects that it keeps."""

    machines: tuple[Machine, ...] = ()
    runs: tuple[Run, ...] = ()
    projects: tuple[Project, ...] = ()

    def require_none(self, connection: Connection, *, wanted: str, field: str | None = None) -> None:
        """Raises `Conflict` if anything depends on the connection; `wanted` is what can't be done to it."""
        if not (self.machines or self.runs or self.projects):
            return
        raise Conflict(
            "connection_in_use",
            f"The connection {connection.name} can't be {wanted}: {self._named()}.",
            mend=self._mend(),
            field=field,
        )

    def require_account(self, connection: Connection, account_id: str, *, field: str) -> None:
        """Raises `Conflict` if an identity of this account could not release what the connection has made.

        What counts is the account that a machine's record names: the way back to it is always open. Without
        a machine, a run under way needs the account that the connection was checked with.
        """
        accounts = self._accounts(connection)
        if not accounts or account_id in accounts:
            return
        needed = " or ".join(sorted(accounts))
        raise Conflict(
            "other_account",
            f"These credentials are of account {account_id}, and the connection {connection.name} is in use with "
            f"account {needed}: {self._named()}.",
            mend=f"Use an identity of account {needed}. To change the account: {self._mend()}",
            field=field,
        )

    def _accounts(self, connection: Connection) -> set[str]:
        if self.machines:
            return {machine.account_id for machine in self.machines}
        if self.runs and connection.account_id is not None:
            return {connection.account_id}
        return set()

    def _named(self) -> str:
        runs = [f"{run.id} is under way" for run in self.runs]
        machines = [_told(each) for each in self.machines]
        projects = [f"the project {project.name} keeps its files there" for project in self.projects]
        return ", ".join([*runs, *machines, *projects])

    def _mend(self) -> str:
        """Everything that stands in the way, each with what ends it."""
        mends = []
        if self.runs:
            mends.append(f"Wait until {_listed(run.id for run in self.runs)} ends, or cancel it.")
        kept = [each.run_id for each in self.machines if each.run_id not in {run.id for run in self.runs}]
        if kept:
            mends.append(
                f"Recover or discard the output of {_listed(kept)}, and wait until the machine is released."
            )
        if self.projects:
            mends.append("Keep it: a project is bound to its storage for good.")
        return " ".join(mends)


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(ids))


def _told(machine: Machine) -> str:
    if machine.instance_id is None:
        return f"a machine has been asked for, for {machine.run_id}"
    return f"the machine {machine.instance_id} of {machine.run_id} is {machine.state}"
