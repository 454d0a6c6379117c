"""The tensors of an adapter by PEFT's names: complete pairs of the right rank, what was saved whole, nothing else.

Names and shapes as PEFT 0.21 saves them: `lora_A.weight` [rank, in], `lora_B.weight` [out, rank], or for an
embedding `lora_embedding_A` [rank, tokens], `lora_embedding_B` [width, rank]; with lora_bias `lora_B.bias` [out];
with DoRA `lora_magnitude_vector` [out]. A module of `modules_to_save` keeps the names of its own parameters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorant.verification.adapter_config import ends_of, is_saved_as
from tensorant.verification.faults import Code, Unsound, shown, unsound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorant.verification.adapter_config import AdapterConfig
    from tensorant.verification.safetensors_header import Tensor

PREFIX = "base_model.model."

_NAME = re.compile(
    re.escape(PREFIX)
    + r"(?P<module>[\w-]+(?:\.[\w-]+)*)\.(?P<part>lora_A\.weight|lora_B\.weight|lora_B\.bias|lora_embedding_A"
    r"|lora_embedding_B|lora_magnitude_vector)",
    re.ASCII,
)
_OWN_PARAMETER = re.compile(
    re.escape(PREFIX) + r"(?P<module>[\w-]+(?:\.[\w-]+)*)\.(?P<part>[\w-]+)", re.ASCII
)
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
"""What torch.compile, FSDP and activation checkpointing put into names; PEFT then finds no such module."""
_BASE_WEIGHTS = tuple(
    f".{module}.weight"
    for module in ("embed_tokens", "lm_head", "wte", "embed_in", "embed_out", "base_layer")
)
"""What PEFT saves beside the adapter when it finds, or is told, that the vocabulary changed."""
_MATRIX = 2


@dataclass(frozen=True)
class Pair:
    """What adapts one module: its weight changes by B @ A. Of an embedding, A has a column for each token."""

    module: str
    a: Tensor
    b: Tensor
    magnitude: Tensor | None = None
    bias: Tensor | None = None
    embedding: bool = False

    @property
    def rank(self) -> int:
        return self.a.shape[0]


@dataclass(frozen=True)
class Extra:
    """A parameter of a module that was trained and saved whole."""

    module: str
    parameter: str
    tensor: Tensor


@dataclass(frozen=True)
class Contents:
    pairs: tuple[Pair, ...]
    extras: tuple[Extra, ...]


def read_contents(tensors: Sequence[Tensor], config: AdapterConfig) -> Contents:
    """Every tensor in its place, checked against the config."""
    if not any(".lora_" in tensor.name for tensor in tensors):
        raise unsound(Code.NO_LORA_TENSORS, f"None of the {len(tensors)} tensors is LoRA's.")
    parts: dict[str, dict[str, Tensor]] = {}
    extras: list[Extra] = []
    for tensor in tensors:
        if not _WRAPPERS.isdisjoint(tensor.name.split(".")):
            raise _not_loaded(tensor)
        if match := _NAME.fullmatch(tensor.name):
            parts.setdefault(match["module"], {})[match["part"]] = tensor
        else:
            extras.append(_extra(tensor, config))
    contents = Contents(tuple(_paired(parts)), tuple(extras))
    for pair in contents.pairs:
        _check_pair(pair, config)
    _check_coverage(contents, config)
    return contents


def unmatched_targets(pairs: Sequence[Pair], config: AdapterConfig) -> tuple[str, ...]:
    """Names in `target_modules` that no tensor belongs to, but those of modules saved whole instead.

    None for a pattern: it is not run here.
    """
    if isinstance(config.target_modules, str):
        return ()
    ends = {end for pair in pairs for end in ends_of(pair.module)}
    unmatched = sorted(set(config.target_modules) - ends)
    return tuple(name for name in unmatched if not config.is_saved_whole(name))


def _extra(tensor: Tensor, config: AdapterConfig) -> Extra:
    """A parameter of the base model itself, which only `modules_to_save` allows."""
    match = _OWN_PARAMETER.fullmatch(tensor.name)
    if match is not None and config.is_saved_whole(match["module"]):
        return Extra(match["module"], match["part"], tensor)
    raise _unknown(tensor)


def _unknown(tensor: Tensor) -> Unsound:
    if tensor.name.startswith(PREFIX) and ".lora_" not in tensor.name:
        if tensor.name.endswith(_BASE_WEIGHTS):
            return unsound(
                Code.VOCAB_RESIZED, f"The adapter replaces the base model's own {shown(tensor.name)}."
            )
        if tensor.name.endswith(".bias"):
            return unsound(
                Code.TENSOR_BIAS, f"The adapter replaces the base model's own {shown(tensor.name)}."
            )
    return _not_loaded(tensor)


def _not_loaded(tensor: Tensor) -> Unsound:
    return unsound(Code.TENSOR_NAME, f"PEFT would not load the tensor {shown(tensor.name)}.")


def _paired(parts: dict[str, dict[str, Tensor]]) -> Iterator[Pair]:
    for module, found in parts.items():
        embedding = not found.keys().isdisjoint({"lora_embedding_A", "lora_embedding_B"})
        if embedding and not found.keys().isdisjoint({"lora_A.weight", "lora_B.weight"}):
            raise unsound(Code.TENSOR_PAIR, f"{module} is adapted as an embedding and as a linear layer.")
        first, second = (
            ("lora_embedding_A", "lora_embedding_B") if embedding else ("lora_A.weight", "lora_B.weight")
        )
        a, b = found.get(first), found.get(second)
        if a is None or b is None:
            raise unsound(Code.TENSOR_PAIR, f"{module} has no {first if a is None else second}.")
        yield Pair(module, a, b, found.get("lora_magnitude_vector"), found.get("lora_B.bias"), embedding)


def _check_pair(pair: Pair, config: AdapterConfig) -> None:
    _check_rank(pair, config)
    _check_magnitude(pair, config)
    _check_bias(pair, config)
    _check_target(pair, config)


def _check_rank(pair: Pair, config: AdapterConfig) -> None:
    if len(pair.a.shape) != _MATRIX or len(pair.b.shape) != _MATRIX:
        raise unsound(Code.TENSOR_SHAPE, f"lora_A and lora_B of {pair.module} are not both matrices.")
    wanted, in_b = config.rank_of(pair.module), pair.b.shape[1]
    fits = pair.rank % wanted == 0 if config.is_experts(pair.module) else pair.rank == wanted
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


def _check_bias(pair: Pair, config: AdapterConfig) -> None:
    """An embedding has none, whatever the config says."""
    if (pair.bias is not None) != (config.lora_bias and not pair.embedding):
        has = "no bias" if pair.bias is None else "a bias"
        raise unsound(Code.TENSOR_BIAS, f"{pair.module} has {has}; lora_bias is {config.lora_bias}.")
    if pair.bias is not None and pair.bias.shape != pair.b.shape[:1]:
        raise unsound(Code.TENSOR_BIAS, f"The bias of {pair.module} has shape {pair.bias.shape}.")


def _check_target(pair: Pair, config: AdapterConfig) -> None:
    """PEFT drops tensors of modules that the config does not name, without a word."""
    if isinstance(config.target_modules, str) or config.is_experts(pair.module):
        return
    if not config.names(pair.module):
        raise unsound(Code.TENSOR_TARGET, f"The config does not name {pair.module}, so PEFT would drop it.")


def _check_coverage(contents: Contents, config: AdapterConfig) -> None:
    """Names that PEFT found itself must all have tensors; those a user wrote may fit nothing."""
    absent = [
        end
        for end in config.modules_to_save
        if not any(is_saved_as(extra.module, end) for extra in contents.extras)
    ]
    if absent:
        raise unsound(
            Code.TENSOR_EXTRA, f"modules_to_save names {shown(absent[0])}, but no tensor of it is there."
        )
    unmatched = unmatched_targets(contents.pairs, config)
    if config.targets_resolved and unmatched:
        raise unsound(Code.COVERAGE, f"The config names {shown(unmatched[0])}, but no tensor belongs to it.")
