"""What a sound adapter may meet where it is served: worth knowing, and no fault of the adapter.

Source: vLLM 0.22, `vllm/config/lora.py` (MaxLoRARanks, default 16) and `vllm/lora/peft_helper.py`
(DoRA and modules_to_save are refused); https://docs.vllm.ai/en/v0.22.1/api/vllm/config/lora/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant.verification.faults import shown
from tensorant.verification.tensors import unmatched_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorant.contract import TrainingMetrics
    from tensorant.verification.adapter_config import AdapterConfig
    from tensorant.verification.tensors import Contents

VLLM_DEFAULT_RANK = 16
VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


def warnings(contents: Contents, config: AdapterConfig, metrics: TrainingMetrics) -> Iterator[str]:
    if unmatched := unmatched_targets(contents.pairs, config):
        yield f"No module was adapted for these names in target_modules: {shown(list(unmatched))}."
    first, last = metrics.first_loss, metrics.last_loss
    if first is not None and last is not None and last >= first:
        yield f"The loss did not fall: {first:.3g} at the first step, {last:.3g} at the end."
    yield from _rank(max(pair.rank for pair in contents.pairs))
    if config.use_dora:
        yield "vLLM does not serve DoRA adapters: merge it into the base model first."
    if config.modules_to_save:
        yield "vLLM does not serve adapters with modules_to_save: merge it into the base model first."
    if config.lora_bias:
        yield "Servers that do not know lora_bias leave the biases out, vLLM among them."


def _rank(rank: int) -> Iterator[str]:
    if rank <= VLLM_DEFAULT_RANK:
        return
    enough = next((each for each in VLLM_RANKS if each >= rank), None)
    if enough is None:
        yield f"Rank {rank} is above what vLLM can serve ({VLLM_RANKS[-1]})."
    else:
        yield f"Rank {rank} is above vLLM's default of {VLLM_DEFAULT_RANK}: serve it with --max-lora-rank {enough}."
