"""`adapter_config.json` against what was asked for: PEFT must rebuild exactly that adapter.

Field names and defaults: PEFT 0.21, `LoraConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorant.verification.faults import Code, shown, unsound
from tensorant.verification.members import member_named, read_member
from tensorant.verification.patterns import read_ranks
from tensorant.verification.strict_json import parse_object
from tensorant.verification.zip_names import CONFIG_MEMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorant.contract import BaseModelRef, JobSpec
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
    "monteclora_config",
    "trainable_token_indices",
    "use_bdlora",
    "use_qalora",
    "velora_config",
)
"""Features that a job can't ask for; each changes which tensors load, or how."""


@dataclass(frozen=True)
class Asked:
    """What the config must say."""

    base: BaseModelRef
    rank: int
    alpha: int
    use_rslora: bool
    use_dora: bool
    lora_bias: bool
    target_modules: str | tuple[str, ...]
    modules_to_save: tuple[str, ...]
    by_job: bool = True
    """False if nobody told the job, so that this is what the config says itself."""

    @classmethod
    def in_job(cls, spec: JobSpec) -> Asked:
        lora = spec.lora
        return cls(
            base=spec.base,
            rank=lora.rank,
            alpha=lora.alpha,
            use_rslora=lora.use_rslora,
            use_dora=lora.use_dora,
            lora_bias=lora.lora_bias,
            target_modules=lora.target_modules,
            modules_to_save=lora.modules_to_save,
        )

    @classmethod
    def by_itself(cls, config: dict[str, Any], base: BaseModelRef) -> Asked:
        """As the config has it, provided that it is a config PEFT could read; `base` is the manifest's."""
        targets = config.get("target_modules")
        return cls(
            base=base,
            rank=_positive(config, "r", Code.CONFIG_RANK),
            alpha=_positive(config, "lora_alpha", Code.CONFIG_ALPHA),
            use_rslora=_flag(config, "use_rslora"),
            use_dora=_flag(config, "use_dora"),
            lora_bias=_flag(config, "lora_bias"),
            target_modules=targets if isinstance(targets, str) and targets else _names(targets),
            modules_to_save=_names(config.get("modules_to_save"), Code.CONFIG_EXTRAS),
            by_job=False,
        )


@dataclass(frozen=True)
class AdapterConfig:
    """What the tensors must agree with."""

    rank: int
    use_rslora: bool
    use_dora: bool
    lora_bias: bool
    target_modules: str | tuple[str, ...]
    targets_resolved: bool
    """Whether PEFT found the names in `target_modules` itself, so that each fits a module."""
    all_linear: bool
    """Whether every linear layer but the output was to be adapted."""
    target_parameters: tuple[str, ...]
    modules_to_save: tuple[str, ...]
    rank_pattern: dict[str, int]
    """By the module's name or the end of it."""

    def rank_of(self, module: str) -> int:
        """The first pattern that fits decides, as in PEFT."""
        return next((rank for end, rank in self.rank_pattern.items() if is_end_of(module, end)), self.rank)

    def names(self, module: str) -> bool:
        """Whether the list of targets has the module; a pattern is not run here."""
        return not ends_of(module).isdisjoint(self.target_modules)

    def is_saved_whole(self, module: str) -> bool:
        """Whether the module, or one that contains it, is among `modules_to_save`."""
        return any(is_saved_as(module, end) for end in self.modules_to_save)

    def is_experts(self, module: str) -> bool:
        """A mixture-of-experts layer stacks the ranks of its experts, and PEFT may wrap it twice (`base_layer`).

        The config names the layer's weights, with the layer (`mlp.experts.down_proj`) or without (`down_proj`).
        """
        layer = module.removesuffix(".base_layer")
        owners = [parameter.rpartition(".")[0] for parameter in self.target_parameters]
        return any(not owner or is_end_of(layer, owner) for owner in owners) and not self.names(module)


def is_end_of(module: str, end: str) -> bool:
    """Whether the dotted name `module` is `end` or ends with it at a dot."""
    return module == end or module.endswith(f".{end}")


def is_saved_as(module: str, end: str) -> bool:
    """Whether the module, or one that contains it, ends with `end`: here PEFT asks for no dot (`norm` is any norm)."""
    parts = module.split(".")
    return any(".".join(parts[:count]).endswith(end) for count in range(1, len(parts) + 1))


def ends_of(module: str) -> set[str]:
    """The dotted name and all ends of it."""
    parts = module.split(".")
    return {".".join(parts[start:]) for start in range(len(parts))}


def read_config(archive: Archive, members: Sequence[Member]) -> dict[str, Any]:
    member = member_named(members, CONFIG_MEMBER, Code.CONFIG_MISSING)
    if member.size > MAX_CONFIG_BYTES:
        raise unsound(Code.CONFIG_INVALID, f"{CONFIG_MEMBER} has {member.size} bytes.")
    try:
        return parse_object(read_member(archive, member))
    except ValueError as error:
        raise unsound(Code.CONFIG_INVALID, f"{CONFIG_MEMBER} can't be read: {error}.") from error


def check_config(config: dict[str, Any], asked: Asked) -> AdapterConfig:
    """Compare with what was asked for; what only a tensor can prove is returned."""
    _expect(config, "peft_type", "LORA", Code.CONFIG_TYPE)
    _expect(config, "task_type", "CAUSAL_LM", Code.CONFIG_TYPE)
    _expect(config, "base_model_name_or_path", asked.base.repository, Code.CONFIG_BASE)
    _expect(config, "revision", asked.base.revision, Code.CONFIG_BASE)
    _expect(config, "r", asked.rank, Code.CONFIG_RANK)
    _expect(config, "lora_alpha", asked.alpha, Code.CONFIG_ALPHA)
    _expect(config, "use_rslora", asked.use_rslora, Code.CONFIG_VARIANT, default=False)
    _expect(config, "use_dora", asked.use_dora, Code.CONFIG_VARIANT, default=False)
    _expect(config, "lora_bias", asked.lora_bias, Code.CONFIG_BIAS, default=False)
    _check_unasked(config, asked)
    targets = _targets(config, asked)
    return AdapterConfig(
        rank=asked.rank,
        use_rslora=asked.use_rslora,
        use_dora=asked.use_dora,
        lora_bias=asked.lora_bias,
        target_modules=targets,
        targets_resolved=asked.target_modules == ALL_LINEAR != targets,
        all_linear=asked.target_modules == ALL_LINEAR,
        target_parameters=_target_parameters(config, asked),
        modules_to_save=asked.modules_to_save,
        rank_pattern=read_ranks(config, rank=asked.rank, alpha=asked.alpha),
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


def _positive(config: dict[str, Any], field: str, code: Code) -> int:
    found = config.get(field)
    if type(found) is not int or found < 1:
        raise unsound(code, f"{field} is {shown(found)} in {CONFIG_MEMBER}, which is no positive number.")
    return found


def _flag(config: dict[str, Any], field: str) -> bool:
    found = config.get(field, False)
    if not isinstance(found, bool):
        raise unsound(Code.CONFIG_VARIANT, f"{field} is {shown(found)} in {CONFIG_MEMBER}.")
    return found


def _check_unasked(config: dict[str, Any], asked: Asked) -> None:
    init = config.get("init_lora_weights", True)
    if not any(type(init) is type(harmless) and init == harmless for harmless in HARMLESS_INITS):
        raise unsound(Code.CONFIG_INIT, f"The initialization {shown(init)} changes the base model.")
    if config.get("bias", "none") != "none":
        raise unsound(Code.CONFIG_BIAS, "The adapter trains the base model's biases.")
    if extra := next((field for field in _UNASKED if config.get(field)), None):
        raise unsound(Code.CONFIG_EXTRAS, f"The adapter uses {extra}, which no run can ask for.")
    saved = _names(config.get("modules_to_save"), Code.CONFIG_EXTRAS)
    if differing := sorted(set(saved) ^ set(asked.modules_to_save)):
        raise unsound(
            Code.CONFIG_EXTRAS,
            f"modules_to_save is {shown(list(saved))}, but the run asked for {shown(list(asked.modules_to_save))}: "
            f"see {shown(differing[0])}.",
        )


def _targets(config: dict[str, Any], asked: Asked) -> str | tuple[str, ...]:
    """PEFT replaces `all-linear` by the names it found; a list may have changed its order; a pattern stays."""
    found, wanted = config.get("target_modules"), asked.target_modules
    if isinstance(wanted, str) and found == wanted:
        return wanted
    names = _names(found)
    if wanted == ALL_LINEAR:
        agreed = bool(names) or bool(config.get("target_parameters"))
    else:
        agreed = not isinstance(wanted, str) and set(names) == set(wanted)
    if not agreed or (not names and not config.get("target_parameters")):
        raise unsound(
            Code.CONFIG_TARGETS, f"target_modules is {shown(found)}, but the run asked for {shown(wanted)}."
        )
    return names


def _target_parameters(config: dict[str, Any], asked: Asked) -> tuple[str, ...]:
    """Weights of mixture-of-experts layers, which PEFT names apart when it resolves `all-linear`."""
    found = config.get("target_parameters")
    if found and asked.by_job and asked.target_modules != ALL_LINEAR:
        raise unsound(
            Code.CONFIG_TARGETS, "The adapter has target_parameters, which the run did not ask for."
        )
    return _names(found)


def _names(found: object, code: Code = Code.CONFIG_TARGETS) -> tuple[str, ...]:
    if not found:
        return ()
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise unsound(code, f"{shown(found)} is not a list of names.")
    return tuple(found)
