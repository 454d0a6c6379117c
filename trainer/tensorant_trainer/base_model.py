"""The base model: fetched by repository and exact revision, with an adapter put on it."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import torch
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from tensorant.contract import TrainerExit
from tensorant_trainer.errors import TrainerError, disk_is_full

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorant.contract import BaseModelRef, LoraSpec

log = logging.getLogger(__name__)


def has_gpu() -> bool:
    return bool(torch.cuda.is_available())


def load_tokenizer(base: BaseModelRef) -> Any:
    """Raises `TrainerError` (base model, or disk)."""
    return _loaded(
        base, lambda: AutoTokenizer.from_pretrained(base.repository, revision=base.revision, use_fast=True)
    )


def load_model(base: BaseModelRef) -> Any:
    """The model in bfloat16 on a GPU, in float32 on a CPU, from safetensors alone: a pickle could run code.

    Raises `TrainerError` (base model, or disk).
    """
    return _loaded(
        base,
        lambda: AutoModelForCausalLM.from_pretrained(
            base.repository,
            revision=base.revision,
            dtype=torch.bfloat16 if has_gpu() else torch.float32,
            device_map={"": 0} if has_gpu() else None,
            attn_implementation="sdpa",
            use_safetensors=True,
            trust_remote_code=False,
        ),
    )


def _loaded(base: BaseModelRef, load: Callable[[], Any]) -> Any:
    """The hub and transformers raise OSError, ValueError and more for the same faults: all mean this model."""
    try:
        return load()
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if disk_is_full(error):
            raise
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise TrainerError(
            TrainerExit.BASE_MODEL,
            f"{base.repository} at {base.revision} cannot be loaded: {reason}"
            " Check the repository, the revision and the token's access.",
        ) from error


def with_adapter(model: Any, lora: LoraSpec) -> Any:
    """Freeze the model and put a fresh adapter on it. Raises `TrainerError` (spec) if it names no module."""
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.target_modules
        if isinstance(lora.target_modules, str)
        else list(lora.target_modules),
        use_rslora=lora.use_rslora,
        use_dora=lora.use_dora,
        lora_bias=lora.lora_bias,
        modules_to_save=list(lora.modules_to_save) or None,
    )
    try:
        return get_peft_model(model, config)
    except ValueError as error:
        message = f"The adapter does not fit the base model: {error} Check `lora.target_modules`."
        raise TrainerError(TrainerExit.SPEC, message) from error


def quieten() -> None:
    """Progress bars and advice for people at a terminal do not belong in a run's log."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning)
