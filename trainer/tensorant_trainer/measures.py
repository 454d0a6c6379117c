"""What the manifest says of the model: the base's layers, and how far the adapter moves them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from peft import get_peft_model_state_dict
from peft.tuners.lora import LoraLayer
from transformers.pytorch_utils import Conv1D

from tensorant.contract import AdapterNorms, BaseModules

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MODULES = 4_000
"""More would make the manifest too long to be read at once; such a model is not listed."""
ADAPTER = "default"


def modules_of(model: Any) -> BaseModules | None:
    """The linear layers and embeddings of a base model, before an adapter is put on it."""
    linear: dict[str, list[int]] = {}
    embeddings: dict[str, list[int]] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            linear[name] = [module.out_features, module.in_features]
        elif isinstance(module, Conv1D):
            linear[name] = [module.weight.shape[1], module.weight.shape[0]]
        elif isinstance(module, torch.nn.Embedding):
            embeddings[name] = [module.num_embeddings, module.embedding_dim]
    if len(linear) + len(embeddings) > MAX_MODULES:
        return None
    output = model.get_output_embeddings()
    named = next((name for name, module in model.named_modules() if module is output), None)
    return BaseModules(linear=linear, embeddings=embeddings, output=named if named in linear else None)


def measured(model: Any) -> AdapterNorms:
    """The norms of a trained adapter, module by module, so that memory stays that of one."""
    with torch.no_grad():
        norms = {name: _norms(layer) for name, layer in _layers(model)}
    largest = max(norms, key=lambda name: norms[name][2])
    saved = get_peft_model_state_dict(model, save_embedding_layers=False).values()
    return AdapterNorms(
        lora_a=math.hypot(*(a for a, _, _ in norms.values())),
        lora_b=math.hypot(*(b for _, b, _ in norms.values())),
        update=math.hypot(*(update for _, _, update in norms.values())),
        largest_update=norms[largest][2],
        largest_module=largest,
        largest_value=max(float(tensor.detach().abs().max()) for tensor in saved),
    )


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    for name, layer in model.base_model.model.named_modules():
        if isinstance(layer, LoraLayer) and (ADAPTER in layer.lora_A or ADAPTER in layer.lora_embedding_A):
            yield name, layer


def _norms(layer: Any) -> tuple[float, float, float]:
    """Of A, of B, and of scaling times B A, which needs only the small products: |BA|^2 = tr(B'B AA')."""
    if ADAPTER in layer.lora_A:
        a, b = layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight
    else:
        a, b = layer.lora_embedding_A[ADAPTER], layer.lora_embedding_B[ADAPTER]
    a, b = a.float(), b.float()
    squared = float(((b.T @ b) * (a @ a.T)).sum())
    update = abs(layer.scaling[ADAPTER]) * math.sqrt(max(squared, 0.0))
    return float(a.norm()), float(b.norm()), update
