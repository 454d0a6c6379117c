"""`tensorant runs …`: drafted, reviewed, launched, watched, fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensorant_cli import drafts
from tensorant_cli.adapter_verify import norms, shape
from tensorant_cli.adapters import fetch_adapter
from tensorant_cli.errors import Blocked, CliError, Problem
from tensorant_cli.formats import size, usd, usd_per_hour, utc
from tensorant_cli.logs import follow, pages
from tensorant_cli.models import Review
from tensorant_cli.options import AsJson, OrganizationId, RunId, examples
from tensorant_cli.output import console, note, say, say_json
from tensorant_cli.review_views import review_view
from tensorant_cli.run_views import events_table, runs_table, status_view
from tensorant_cli.session import LAST, Session
from tensorant_cli.watching import watch

INTERRUPTED = 130

app = typer.Typer(no_args_is_help=True, help="Runs: drafted, launched once, watched to their end.")

app.command(
    "draft",
    epilog=examples(
        "tensorant runs draft --base-model HuggingFaceTB/SmolLM2-135M-Instruct --instance-type g6.xlarge "
        "--price-limit 1.50 --time-limit 60",
        "tensorant runs draft … --trial --rank 8 --epochs 2 --learning-rate 1e-3",
    ),
)(drafts.draft)


@app.command(epilog=examples("tensorant runs review", "tensorant runs review run-0123456789abcdef"))
def review(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run would cost at this moment. Reserves nothing."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        found = session.client.review(organization, session.run_id(organization, run))
        if as_json:
            say_json(found)
            return
        _show_review(found)


@app.command(
    epilog=examples("tensorant runs launch --watch", "tensorant runs launch run-0123456789abcdef --yes")
)
def launch(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    watch_it: Annotated[bool, typer.Option("--watch", help="Then watch it to its end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Launch a draft: from here on it costs money. Shows the price and asks first."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        run_id = session.run_id(organization, run)
        before = session.client.run(organization, run_id).run
        if before.launched_at is not None:
            note(f"The run {run_id} was launched at {utc(before.launched_at)} already.")
        else:
            _confirm(session.client.review(organization, run_id), yes=yes)
        launched = session.client.launch(organization, run_id)
        if as_json:
            say_json(launched)
        else:
            say(f"Launched {run_id}.")
        if watch_it:
            _watch(session, organization, run_id)


@app.command("list")
def list_(context: typer.Context, *, organization_id: OrganizationId = None, as_json: AsJson = False) -> None:
    """List the organization's runs, newest first."""
    with Session.of(context) as session:
        found = session.client.runs(session.organization_id(organization_id))
        if as_json:
            say_json(found)
            return
        console().print(runs_table(found))


@app.command()
def show(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: outcome, machine and cost, and where it stands."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        status = session.client.run(organization, session.run_id(organization, run))
        if as_json:
            say_json(status)
            return
        console().print(status_view(status))


@app.command("watch", epilog=examples("tensorant runs watch", "tensorant runs watch run-0123456789abcdef"))
def watch_command(
    context: typer.Context, run: RunId = LAST, *, organization_id: OrganizationId = None
) -> None:
    """Watch a run to its end. Exit code 0 if it succeeded, 1 otherwise.

    Shows phase, step, loss, time left and cost so far; ends with outcome, machine and cost. Stopping to watch
    (Ctrl-C) changes nothing of the run.
    """
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        _watch(session, organization, session.run_id(organization, run))


@app.command(epilog=examples("tensorant runs cancel --discard", "tensorant runs cancel --keep-output"))
def cancel(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    keep_output: Annotated[
        bool | None,
        typer.Option(
            "--keep-output/--discard",
            help="Keep the machine's disk for recovery, or nothing. To be said once training has begun.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a run at any moment, a launch in flight included."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        run_id = session.run_id(organization, run)
        cancelled = session.client.cancel(organization, run_id, keep_output=keep_output)
        if as_json:
            say_json(cancelled)
            return
        kept = cancelled.outcome == "needs_recovery"
        say(
            f"Cancelled {run_id}; {'its disk is kept' if kept else 'nothing is kept'}. Watch its machine: runs watch."
        )


@app.command()
def discard(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Give up what a run has left on its machine's disk, and release the machine."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        run_id = session.run_id(organization, run)
        if not yes:
            typer.confirm(f"Discard the output of {run_id} for good?", abort=True)
        session.client.discard(organization, run_id)
        say(f"Discarded; the machine of {run_id} is being released.")


@app.command()
def release(context: typer.Context, run: RunId = LAST, *, organization_id: OrganizationId = None) -> None:
    """Retry GPU release: ask again for a release that is pending."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        run_id = session.run_id(organization, run)
        session.client.release(organization, run_id)
        say(f"The release of {run_id} is asked for again.")


@app.command()
def events(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    as_json: AsJson = False,
) -> None:
    """Show a run's timeline, oldest first."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        found = session.client.events(organization, session.run_id(organization, run))
        if as_json:
            say_json(found)
            return
        console().print(events_table(found))


@app.command()
def logs(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    follow_it: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the log of a run's latest attempt. With --json, one object a line."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        run_id = session.run_id(organization, run)
        try:
            if follow_it:
                follow(
                    session.client, organization, run_id, as_json=as_json, sleep=session.surroundings.sleep
                )
            else:
                pages(session.client, organization, run_id, as_json=as_json)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


@app.command(epilog=examples("tensorant runs adapter", "tensorant runs adapter --output my-adapter"))
def adapter(
    context: typer.Context,
    run: RunId = LAST,
    *,
    organization_id: OrganizationId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, metavar="DIR", help="By default adapter-RUN, here.", show_default=False
        ),
    ] = None,
) -> None:
    """Download a run's adapter, verify it on this computer and unpack it. An unsound one is not kept."""
    with Session.of(context) as session:
        organization = session.organization_id(organization_id)
        run_id = session.run_id(organization, run)
        directory = output or session.surroundings.directory / f"adapter-{run_id}"
        fetched = fetch_adapter(
            session.client, organization, run_id, directory, transport=session.surroundings.transport
        )
        report = fetched.report
        say(f"Verified: {', '.join(report.checks)}.")
        say(
            f"{report.tensors} tensors, {report.parameters:,} parameters, {size(fetched.archive.stat().st_size)}."
        )
        say(f"{shape(report)}.")
        if report.norms is not None:
            say(f"Norms: {norms(report.norms)}.")
        for warning in report.warnings:
            note(f"Warning: {warning}")
        say(f"Unpacked into {fetched.directory}; PEFT loads it onto the base model.")


def _show_review(found: Review) -> None:
    console().print(review_view(found))
    if found.note:
        note(found.note)


def _confirm(found: Review, *, yes: bool) -> None:
    """Refuses what the API would refuse anyway, and asks before money is spent."""
    console(stderr=True).print(review_view(found))
    blocking = [each for each in found.problems if each.blocking]
    if blocking:
        raise Blocked([Problem.model_validate(each, from_attributes=True) for each in blocking])
    if yes:
        return
    question = f"Launch it for {usd_per_hour(found.quote.usd_per_hour)}, at most {usd(found.most_usd)}?"
    not_launched = CliError("Not launched.", mend="Answer y, or give --yes where nobody can be asked.")
    try:
        answer = typer.confirm(question, err=True)
    except typer.Abort as abort:
        raise not_launched from abort
    if not answer:
        raise not_launched


def _watch(session: Session, organization_id: str, run_id: str) -> None:
    try:
        status = watch(
            session.client,
            organization_id,
            run_id,
            console(),
            sleep=session.surroundings.sleep,
            now=session.surroundings.now,
        )
    except KeyboardInterrupt:
        note(f"The run goes on. Watch it again: tensorant runs watch {run_id}")
        raise typer.Exit(INTERRUPTED) from None
    if status.outcome != "succeeded":
        raise typer.Exit(1)
