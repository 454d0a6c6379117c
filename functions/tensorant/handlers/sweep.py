"""The sweep, on a schedule: what was left undone is done; what only a person can mend is told."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools import Logger

from tensorant import bootstrap

logger = Logger()


def handler(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    report = asdict(bootstrap.sweep().sweep())
    report["datasets"] = asdict(bootstrap.stuck_datasets().sweep())
    if report["troubled"] or report["unknown"] or report["datasets"]["troubled"]:
        logger.warning("sweep needs attention", extra={"report": report})
    return report
