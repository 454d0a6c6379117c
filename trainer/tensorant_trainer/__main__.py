"""The container's entry point: runs one job and answers with the exit code that says how it ended."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tensorant.contract import EventType
from tensorant_trainer.agent import AgentClient
from tensorant_trainer.errors import TrainerError, as_trainer_error
from tensorant_trainer.job import run_job
from tensorant_trainer.progress import Progress
from tensorant_trainer.redaction import Redactor
from tensorant_trainer.run_log import RunLog
from tensorant_trainer.session import SessionFile, read_session
from tensorant_trainer.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger("tensorant_trainer")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train once. The exit code is 0, or the one of `contract.EXIT_CODES` that the FAILED event names."""
    options = _parser().parse_args(arguments)
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.request("the machine is going down"))
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole URLs
    logging.captureWarnings(capture=True)
    try:
        session = read_session(options.session)
    except TrainerError as error:
        log.error("%s", error.message)  # noqa: TRY400 - the message says it all
        return error.exit_code
    return train(session, options.data, stop)


def train(session: SessionFile, data: Path, stop: Stop) -> int:
    """Run the job and tell how it ended."""
    redactor = Redactor(session.session_token)
    run_log = RunLog(redactor)
    logging.getLogger().addHandler(run_log)
    with (
        AgentClient(session) as agent,
        Progress(
            agent,
            stop=stop,
            run_log=run_log,
            redactor=redactor,
            heartbeat_seconds=session.heartbeat_seconds,
        ) as progress,
    ):
        try:
            run_job(session, data, agent=agent, progress=progress, stop=stop)
        except Exception as error:  # noqa: BLE001 - the one place that must tell of every failure
            return _failed(error, progress)
    return 0


def _failed(error: Exception, progress: Progress) -> int:
    failure = as_trainer_error(error)
    log.error("%s", failure.message, exc_info=failure.__cause__ if failure is error else error)
    progress.event(EventType.FAILED, failure.message, code=failure.code, exit_code=failure.exit_code)
    return failure.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tensorant_trainer", description="Train one LoRA adapter.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("train", help="run the job of this machine's session")
    command.add_argument("--session", type=Path, default=Path("/run/tensorant/session.json"))
    command.add_argument("--data", type=Path, default=Path("/workspace/data"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
