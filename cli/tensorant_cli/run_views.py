"""How runs are shown: their three separate facts, their quote, their timeline."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tensorant_cli.adapter_verify import shape
from tensorant_cli.formats import NONE, duration, number, printable, size, usd, usd_per_hour, utc, words
from tensorant_cli.models import Fact, LogLine, Machine, Progress, Quote, Run, RunStatus
from tensorant_cli.output import facts, table


def runs_table(runs: Sequence[Run]) -> RenderableType:
    rows = [
        (
            run.id,
            run.name,
            words(run.outcome) if run.outcome else ("running" if run.launched_at else "draft"),
            ", ".join(run.instance_types),
            utc(run.created_at),
            utc(run.ended_at),
        )
        for run in runs
    ]
    return table(None, ("Id", "Name", "Outcome", "Types", "Drafted", "Ended"), rows)


def status_view(status: RunStatus) -> RenderableType:
    """Everything that is known of a run."""
    run = status.run
    asked = {
        "Run": run.id,
        "Name": run.name,
        "Phase": status.phase,
        "Base model": f"{run.spec.base.repository} at {run.spec.base.revision}",
        "Dataset version": f"{run.dataset_version_id} ({_rows(run)})",
        "Types": ", ".join(run.instance_types),
        "Price limit": usd_per_hour(run.price_limit_usd_per_hour),
        "Time limit": duration(run.time_limit_minutes * 60),
        "Launched": utc(run.launched_at),
        "Ends at the latest": utc(run.deadline_at),
        "Progress": progress_text(status.progress),
        **_disk(status.machine),
    }
    return Group(facts(asked), Text(), final_table(status), *warnings_of(status))


def warnings_of(status: RunStatus) -> Sequence[RenderableType]:
    """What the provider has announced of the machine; nothing if it has announced nothing."""
    if not status.warnings:
        return ()
    rows = [(utc(each.at), each.message) for each in status.warnings]
    return Text(), table(None, ("Warned", "Of what"), rows)


def final_table(status: RunStatus) -> RenderableType:
    """Outcome, machine and cost, as three separate facts; and the adapter, where there is one."""
    rows = [
        ("Outcome", words(status.outcome) if status.outcome else "open", _why(status.run)),
        ("Machine", *_machine(status.machine)),
        ("Cost", usd(status.cost_usd), _quoted(status.quote)),
    ]
    if status.machine is not None and status.machine.left_over:
        rows.append(("Left over", "disk", status.machine.left_over))
    if status.report is not None:
        rows.append(("Adapter", "verified" if status.report.sound else "unsound", _adapter(status)))
    return table(None, ("", "State", "Details"), rows)


def events_table(events: Sequence[Fact]) -> RenderableType:
    rows = [(utc(each.at), _attempt(each), each.source, words(each.kind), each.message) for each in events]
    return table(None, ("At", "Attempt", "Source", "What", "Details"), rows)


def log_text(line: LogLine) -> Text:
    return Text.assemble((f"{line.at:%H:%M:%S} {printable(line.source):<8}", "dim"), printable(line.text))


def progress_text(progress: Progress | None) -> str:
    """`step 12/46, loss 2.31, 1 min 20 s left`; a dash before the first step."""
    if progress is None or progress.step is None:
        return NONE
    parts = [f"step {progress.step}" + (f"/{progress.steps_total}" if progress.steps_total else "")]
    if progress.loss is not None:
        parts.append(f"loss {number(progress.loss)}")
    if progress.seconds_left is not None:
        parts.append(f"{duration(progress.seconds_left)} left")
    return ", ".join(parts)


def _why(run: Run) -> str:
    """The failure's class and code, for whoever looks them up, and its words."""
    failure = run.failure
    if failure is None:
        return ""
    return f"{words(failure.failure_class)} ({failure.code}): {failure.message} {failure.mend}".strip()


def _machine(machine: Machine | None) -> tuple[str, str]:
    if machine is None:
        return "none", "No machine was asked for."
    what = f"{machine.instance_type} {machine.instance_id or ''}".strip()
    match machine.state:
        case "released":
            when = f"the provider confirmed it at {utc(machine.confirmed_gone_at)}"
        case "retained":
            when = (
                f"stopped, confirmed at {utc(machine.confirmed_stopped_at)}; its disk is kept and costs money"
            )
        case "never_existed":
            when = "nothing was started"
        case _ if machine.trouble is not None:
            when = f"{machine.trouble.message} {machine.trouble.mend}"
        case _:
            when = f"the provider says {words(machine.seen)}"
    return words(machine.state), f"{what}: {when}"


def _disk(machine: Machine | None) -> dict[str, str]:
    if machine is None or machine.volume_id is None:
        return {}
    with_it = "goes with its machine" if machine.deleted_on_termination else "STAYS when its machine goes"
    return {"Disk": f"{machine.volume_id}, {with_it}"}


def _quoted(quote: Quote | None) -> str:
    return f"quoted {usd_per_hour(quote.usd_per_hour)}" if quote else "nothing was rented"


def _adapter(status: RunStatus) -> str:
    report = status.report
    if report is None:
        return ""
    if report.fault is not None:
        return f"{report.fault.message} {report.fault.mend}"
    archive = size(report.archive.size) if report.archive else NONE
    kind = f"{shape(report)}, " if report.variant else ""
    return f"{kind}{archive}, {report.tensors} tensors, {report.parameters:,} parameters"


def _rows(run: Run) -> str:
    dataset = run.spec.dataset
    if dataset.sample_rows is not None:
        return f"a trial on {dataset.sample_rows} of {dataset.rows} rows"
    return f"{dataset.rows} rows"


def _attempt(fact: Fact) -> str:
    return NONE if fact.attempt is None else str(fact.attempt)
