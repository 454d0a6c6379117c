"""`rank_pattern` and `alpha_pattern`: the ranks of modules that differ from the rest."""

from __future__ import annotations

import re
from typing import Any

from tensorant.verification.faults import Code, shown, unsound

_KEY = re.compile(r"(?:\.\*\\\.)?((?:[A-Za-z0-9_-]|\\?\.|\\-)+)")
"""A module's name or the end of it, as a pattern that matches just that: `q_proj`, or PEFT's own `.*\\.q_proj`.
Any other expression could run for ever, or fit what nobody can foresee."""


def read_ranks(config: dict[str, Any], *, rank: int, alpha: int) -> dict[str, int]:
    """Ranks by a module's name or the end of it. Where alpha differs too, alpha / rank must be what was asked for."""
    ranks = _pattern(config, "rank_pattern")
    for end, other in _pattern(config, "alpha_pattern").items():
        if other * rank != alpha * ranks.get(end, rank):
            raise unsound(Code.CONFIG_PATTERN, f"alpha_pattern changes how strongly {shown(end)} counts.")
    return ranks


def _pattern(config: dict[str, Any], field: str) -> dict[str, int]:
    found = config.get(field) or {}
    if not isinstance(found, dict):
        raise unsound(Code.CONFIG_PATTERN, f"{field} is not an object.")
    pattern: dict[str, int] = {}
    for key, value in found.items():
        match = _KEY.fullmatch(key)
        if match is None or type(value) is not int or value < 1:
            raise unsound(Code.CONFIG_PATTERN, f"{field} has {shown(key)}: {shown(value)}.")
        pattern.setdefault(match[1].replace("\\", ""), value)
    return pattern
