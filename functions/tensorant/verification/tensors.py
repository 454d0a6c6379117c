"""The tensors of an adapter by PEFT's names: complete pairs of the right rank, and nothing else.

Names and shapes as PEFT 0.21 saves them: `lora_A.weight` [rank, in], `lora_B.weight` [out, rank] and, for DoRA,
`lora_magnitude_vector` [out].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorant.verification.adapter_config import is_end_of
from tensorant.verification.faults import Code, shown, unsound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorant.verification.adapter_config import AdapterConfig
    from tensorant.verification.safetensors_header import Tensor

PREFIX = "base_model.model."

_NAME = re.compile(
    re.escape(PREFIX)
    + r"(?P<module>[\w-]+(?:\.[\w-]+)*)\.(?P<part>lora_A\.weight|lora_B\.weight|lora_magnitude_vector)",
    re.ASCII,
)
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
"""What torch.compile, FSDP and activation checkpointing put into names; PEFT then finds no such module."""
_MATRIX = 2


@dataclass(frozen=True)
class Pair:
    """What adapts one module: its weight changes by B @ A."""

    module: str
    a: Tensor
    b: Tensor
    magnitude: Tensor | None

    @property
    def rank(self) -> int:
        return self.a.shape[0]


def read_pairs(tensors: Sequence[Tensor], config: AdapterConfig) -> tuple[Pair, ...]:
    """Every tensor in its place, checked against the config."""
    pairs = tuple(_paired(tensors))
    for pair in pairs:
        _check_shapes(pair, config)
        _check_magnitude(pair, config)
        _check_target(pair, config)
    _check_coverage(pairs, config)
    return pairs


def unmatched_targets(pairs: Sequence[Pair], config: AdapterConfig) -> tuple[str, ...]:
    """Names in `target_modules` that no tensor belongs to. None for a pattern: it is not run here."""
    if isinstance(config.target_modules, str):
        return ()
    ends = {end for pair in pairs for end in _ends(pair.module)}
    return tuple(sorted(set(config.target_modules) - ends))


def _paired(tensors: Sequence[Tensor]) -> Iterable[Pair]:
    if not any(".lora_" in tensor.name for tensor in tensors):
        raise unsound(Code.NO_LORA_TENSORS, f"None of the {len(tensors)} tensors is LoRA's.")
    parts: dict[str, dict[str, Tensor]] = {}
    for tensor in tensors:
        match = _NAME.fullmatch(tensor.name)
        if match is None or not _WRAPPERS.isdisjoint(tensor.name.split(".")):
            raise unsound(Code.TENSOR_NAME, f"PEFT would not load the tensor {shown(tensor.name)}.")
        parts.setdefault(match["module"], {})[match["part"]] = tensor
    for module, found in parts.items():
        a, b = found.get("lora_A.weight"), found.get("lora_B.weight")
        if a is None or b is None:
            missing = "lora_A" if a is None else "lora_B"
            raise unsound(Code.TENSOR_PAIR, f"{module} has no {missing}.")
        yield Pair(module, a, b, found.get("lora_magnitude_vector"))


def _check_shapes(pair: Pair, config: AdapterConfig) -> None:
    if len(pair.a.shape) != _MATRIX or len(pair.b.shape) != _MATRIX:
        raise unsound(Code.TENSOR_SHAPE, f"lora_A and lora_B of {pair.module} are not both matrices.")
    wanted, in_b = config.rank_of(pair.module), pair.b.shape[1]
    fits = pair.rank % wanted == 0 if _is_experts(pair.module, config) else pair.rank == wanted
    if not fits or pair.rank != in_b:
        raise unsound(
            Code.TENSOR_RANK,
            f"{pair.module} has rank {pair.rank} in lora_A and {in_b} in lora_B; its config says {wanted}.",
        )


def _check_magnitude(pair: Pair, config: AdapterConfig) -> None:
    if (pair.magnitude is not None) != config.use_dora:
        has = "no" if config.use_dora else "a"
        raise unsound(
            Code.TENSOR_DORA, f"{pair.module} has {has} magnitude vector; use_dora is {config.use_dora}."
        )
    if pair.magnitude is not None and pair.magnitude.shape != pair.b.shape[:1]:
        raise unsound(
            Code.TENSOR_DORA, f"The magnitude vector of {pair.module} has shape {pair.magnitude.shape}."
        )


def _check_target(pair: Pair, config: AdapterConfig) -> None:
    """PEFT drops tensors of modules that the config does not name, without a word."""
    if isinstance(config.target_modules, str) or _is_experts(pair.module, config):
        return
    if not _is_named(pair.module, config):
        raise unsound(Code.TENSOR_TARGET, f"The config does not name {pair.module}, so PEFT would drop it.")


def _check_coverage(pairs: Sequence[Pair], config: AdapterConfig) -> None:
    """Names that PEFT found itself must all have tensors; those a user wrote may fit nothing."""
    if config.targets_resolved and (missing := unmatched_targets(pairs, config)):
        raise unsound(Code.COVERAGE, f"The config names {shown(missing[0])}, but no tensor belongs to it.")


def _is_experts(module: str, config: AdapterConfig) -> bool:
    """A mixture-of-experts layer stacks the ranks of its experts, and PEFT may wrap it twice (`base_layer`).

    The config names the layer's weights, with the layer (`mlp.experts.down_proj`) or without (`down_proj`).
    """
    layer = module.removesuffix(".base_layer")
    owners = [parameter.rpartition(".")[0] for parameter in config.target_parameters]
    return any(not owner or is_end_of(layer, owner) for owner in owners) and not _is_named(module, config)


def _is_named(module: str, config: AdapterConfig) -> bool:
    return not _ends(module).isdisjoint(config.target_modules)


def _ends(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[start:]) for start in range(len(parts))}
