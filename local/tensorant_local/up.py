"""`tensorant local up`: a deployment on this machine, until it is interrupted."""

from __future__ import annotations

import signal
import threading

from rich.console import Console

from tensorant_local.deployment import LocalDeployment

COMMANDS = """\
tensorant organizations create Acme
tensorant connections create aws
tensorant connections create s3
tensorant projects create explain-errors
tensorant datasets upload demo/dataset.jsonl
tensorant runs draft --base-model HuggingFaceTB/SmolLM2-135M-Instruct --instance-type g6.xlarge \\
  --price-limit-usd-per-hour 1.50 --time-limit-minutes 30 --trial --batch-size 4 --epochs 2 --learning-rate 5e-3
tensorant runs review
tensorant runs launch
tensorant runs watch
tensorant runs adapter"""


def main(*, model: str = "smollm2", console: Console | None = None) -> None:
    """Start everything, say how to use it, and stop everything on Ctrl-C or SIGTERM."""
    console = console or Console()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    console.print("Starting a deployment on this machine. Prices, GPUs and the AWS account are simulated.")
    with LocalDeployment() as deployment:
        base = deployment.model(model)
        deployment.write_profile(base)
        seconds = deployment.cloud.startup_seconds["total"]
        console.print(
            f"[bold]{deployment.api_url}[/bold] is up after {seconds:.1f} s. Base model: {base.repository}"
        )
        console.print("\nIn another terminal, in this folder:\n")
        console.print(COMMANDS, highlight=False)
        console.print("\nCtrl-C stops it; nothing is kept but the logs in .tensorant.")
        stop.wait()
    console.print("Stopped.")
