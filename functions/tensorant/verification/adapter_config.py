"""`adapter_config.json` against the run's job: PEFT must rebuild exactly the adapter that was asked for.

Field names and defaults: PEFT 0.21, `LoraConfig`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorant.verification.faults import Code, shown, unsound
from tensorant.verification.members import member_named, read_member
from tensorant.verification.strict_json import parse_object
from tensorant.verification.zip_names import CONFIG_MEMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.contract import JobSpec, LoraSpec
    from tensorant.verification.archive import Archive
    from tensorant.verification.zip_layout import Member

MAX_CONFIG_BYTES = 1 << 20
ALL_LINEAR = "all-linear"

HARMLESS_INITS = (True, False, "gaussian", "orthogonal", "eva")
"""All others (pissa, olora, corda, loftq, lora_ga, mica) change the base model or freeze half of the adapter."""

_UNASKED = (
    "alora_invocation_tokens",
    "arrow_config",
    "corda_config",
    "exclude_modules",
    "kasa_config",
    "layer_replication",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_ga_config",
    "megatron_config",
    "modules_to_save",
    "monteclora_config",
    "trainable_token_indices",
    "use_bdlora",
    "use_qalora",
    "velora_config",
)
"""Features that a job can't ask for; each changes which tensors load, or how."""

_PATTERN_KEY = re.compile(r"(?:\.\*\\\.)?((?:[A-Za-z0-9_-]|\\?\.|\\-)+)")
"""A module's name or the end of it, as a pattern that matches just that: `q_proj`, or PEFT's own `.*\\.q_proj`."""


@dataclass(frozen=True)
class AdapterConfig:
    """What the tensors must agree with."""

    rank: int
    use_dora: bool
    target_modules: str | tuple[str, ...]
    targets_resolved: bool
    """Whether PEFT found the names in `target_modules` itself, so that each fits a module."""
    target_parameters: tuple[str, ...]
    rank_pattern: dict[str, int]
    """By the module's name or the end of it."""

    def rank_of(self, module: str) -> int:
        """The first pattern that fits decides, as in PEFT."""
        return next((rank for end, rank in self.rank_pattern.items() if is_end_of(module, end)), self.rank)


def is_end_of(module: str, end: str) -> bool:
    """Whether the dotted name `module` is `end` or ends with it at a dot."""
    return module == end or module.endswith(f".{end}")


def read_config(archive: Archive, members: Sequence[Member]) -> dict[str, Any]:
    member = member_named(members, CONFIG_MEMBER, Code.CONFIG_MISSING)
    if member.size > MAX_CONFIG_BYTES:
        raise unsound(Code.CONFIG_INVALID, f"{CONFIG_MEMBER} has {member.size} bytes.")
    try:
        return parse_object(read_member(archive, member))
    except ValueError as error:
        raise unsound(Code.CONFIG_INVALID, f"{CONFIG_MEMBER} can't be read: {error}.") from error


def check_config(config: dict[str, Any], spec: JobSpec) -> AdapterConfig:
    """Compare with the job; what only a tensor can prove is returned."""
    _expect(config, "peft_type", "LORA", Code.CONFIG_TYPE)
    _expect(config, "task_type", "CAUSAL_LM", Code.CONFIG_TYPE)
    _expect(config, "base_model_name_or_path", spec.base.repository, Code.CONFIG_BASE)
    _expect(config, "revision", spec.base.revision, Code.CONFIG_BASE)
    _expect(config, "r", spec.lora.rank, Code.CONFIG_RANK)
    _expect(config, "lora_alpha", spec.lora.alpha, Code.CONFIG_ALPHA)
    _expect(config, "use_rslora", spec.lora.use_rslora, Code.CONFIG_VARIANT, default=False)
    _expect(config, "use_dora", spec.lora.use_dora, Code.CONFIG_VARIANT, default=False)
    _check_unasked(config)
    targets = _targets(config, spec.lora)
    return AdapterConfig(
        rank=spec.lora.rank,
        use_dora=spec.lora.use_dora,
        target_modules=targets,
        targets_resolved=spec.lora.target_modules == ALL_LINEAR != targets,
        target_parameters=_target_parameters(config, spec.lora),
        rank_pattern=_rank_pattern(config, spec.lora),
    )


def _expect(
    config: dict[str, Any], field: str, wanted: str | int, code: Code, *, default: bool | None = None
) -> None:
    """Same value and same type: JSON's `true` is not 1."""
    found = config.get(field, default)
    if type(found) is not type(wanted) or found != wanted:
        raise unsound(
            code, f"{field} is {shown(found)} in {CONFIG_MEMBER}, but the run asked for {shown(wanted)}."
        )


def _check_unasked(config: dict[str, Any]) -> None:
    init = config.get("init_lora_weights", True)
    if not any(type(init) is type(harmless) and init == harmless for harmless in HARMLESS_INITS):
        raise unsound(Code.CONFIG_INIT, f"The initialization {shown(init)} changes the base model.")
    if config.get("bias", "none") != "none" or config.get("lora_bias"):
        raise unsound(Code.CONFIG_BIAS, "The adapter trains biases, which the run did not ask for.")
    if extra := next((field for field in _UNASKED if config.get(field)), None):
        raise unsound(Code.CONFIG_EXTRAS, f"The adapter uses {extra}, which the run did not ask for.")


def _targets(config: dict[str, Any], lora: LoraSpec) -> str | tuple[str, ...]:
    """PEFT replaces `all-linear` by the names it found; a list may have changed its order; a pattern stays."""
    found = config.get("target_modules")
    if isinstance(lora.target_modules, str) and found == lora.target_modules:
        return lora.target_modules
    names = _names(found)
    if lora.target_modules == ALL_LINEAR:
        agreed = bool(names) or bool(config.get("target_parameters"))
    else:
        agreed = not isinstance(lora.target_modules, str) and set(names) == set(lora.target_modules)
    if not agreed:
        raise unsound(
            Code.CONFIG_TARGETS,
            f"target_modules is {shown(found)}, but the run asked for {shown(lora.target_modules)}.",
        )
    return names


def _target_parameters(config: dict[str, Any], lora: LoraSpec) -> tuple[str, ...]:
    """Weights of mixture-of-experts layers, which PEFT names apart when it resolves `all-linear`."""
    found = config.get("target_parameters")
    if found and lora.target_modules != ALL_LINEAR:
        raise unsound(
            Code.CONFIG_TARGETS, "The adapter has target_parameters, which the run did not ask for."
        )
    return _names(found)


def _names(found: object) -> tuple[str, ...]:
    if not found:
        return ()
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise unsound(Code.CONFIG_TARGETS, f"{shown(found)} is not a list of names.")
    return tuple(found)


def _rank_pattern(config: dict[str, Any], lora: LoraSpec) -> dict[str, int]:
    """Ranks of modules that differ. Where alpha differs too, alpha / rank must be what the run asked for."""
    ranks = _pattern(config, "rank_pattern")
    for end, alpha in _pattern(config, "alpha_pattern").items():
        if alpha * lora.rank != lora.alpha * ranks.get(end, lora.rank):
            raise unsound(Code.CONFIG_PATTERN, f"alpha_pattern changes how strongly {shown(end)} counts.")
    return ranks


def _pattern(config: dict[str, Any], field: str) -> dict[str, int]:
    found = config.get(field) or {}
    if not isinstance(found, dict):
        raise unsound(Code.CONFIG_PATTERN, f"{field} is not an object.")
    pattern: dict[str, int] = {}
    for key, value in found.items():
        match = _PATTERN_KEY.fullmatch(key)
        if match is None or type(value) is not int or value < 1:
            raise unsound(Code.CONFIG_PATTERN, f"{field} has {shown(key)}: {shown(value)}.")
        pattern.setdefault(match[1].replace("\\", ""), value)
    return pattern
