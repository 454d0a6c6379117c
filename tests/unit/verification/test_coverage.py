"""The adapter against the base model's own layers as its manifest lists them."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.contract import JobSpec
from tests.support.archives import (
    MODULES,
    RawTensor,
    adapter_archive,
    filled,
    job_spec,
    lora_tensors,
)
from tests.support.verdicts import code_of, verdict_on

LAYERS = tuple(f"model.layers.{layer}.self_attn.{part}_proj" for layer in (0, 1) for part in "qv")
EMBEDDING = "model.embed_tokens"
BASE = {
    "linear": {**{module: [8, 8] for module in LAYERS}, "lm_head": [16, 8]},
    "embeddings": {EMBEDDING: [16, 8]},
    "output": "lm_head",
}


def archive(spec: JobSpec | None = None, *, base: dict[str, Any] | None = None, **parts: Any) -> bytes:
    spec = spec or job_spec()
    parts.setdefault("tensors", lora_tensors(LAYERS, dora=spec.lora.use_dora))
    return adapter_archive(spec, manifest={"base_modules": base or BASE}, **parts)


def without(module: str) -> dict[str, RawTensor]:
    return {name: tensor for name, tensor in lora_tensors(LAYERS).items() if f".{module}." not in name}


def embedding(tokens: int = 16, width: int = 8) -> dict[str, RawTensor]:
    name = f"base_model.model.{EMBEDDING}"
    return {
        f"{name}.lora_embedding_A": filled("F32", (4, tokens)),
        f"{name}.lora_embedding_B": filled("F32", (width, 4)),
    }


def test_every_layer_but_the_output_is_adapted() -> None:
    report = verdict_on(archive())

    assert report.sound
    assert (report.modules, report.base_modules) == (4, 5)
    assert report.manifest is not None
    assert report.manifest.base_modules is None  # long, and already counted


def test_a_layer_that_is_missing_is_noticed_though_its_kind_is_there() -> None:
    report = verdict_on(archive(tensors=without("model.layers.1.self_attn.q_proj")))

    assert report.fault is not None
    assert report.fault.code == "COVERAGE"
    assert report.fault.message == (
        "1 of the base model's modules are not adapted, the first model.layers.1.self_attn.q_proj."
    )


WIDE = {**BASE, "linear": {**BASE["linear"], LAYERS[0]: [8, 16]}}  # type: ignore[dict-item]
TALL = {**BASE, "linear": {**BASE["linear"], LAYERS[0]: [16, 8]}}  # type: ignore[dict-item]
MORE = {**BASE, "linear": {**BASE["linear"], "model.layers.0.mlp.up_proj": [8, 8]}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("base", "code"),
    [
        (WIDE, "BASE_SHAPE"),
        (TALL, "BASE_SHAPE"),
        (MORE, "COVERAGE"),
        ({"linear": {"other.q_proj": [8, 8]}}, "NOT_IN_BASE"),
        ({"linear": {}}, "NOT_IN_BASE"),
    ],
    ids=["another width", "another height", "a layer nobody adapted", "other names", "no layer at all"],
)
def test_another_base_model_is_noticed_by_its_layers(base: dict[str, Any], code: str) -> None:
    assert code_of(archive(base=base)) == code


def test_named_targets_are_covered_layer_by_layer() -> None:
    spec = job_spec(target_modules=("q_proj",))
    both = tuple(module for module in LAYERS if module.endswith("q_proj"))

    assert code_of(archive(spec, tensors=lora_tensors(both)), spec) == "sound"
    assert code_of(archive(spec, tensors=lora_tensors(both[:1])), spec) == "COVERAGE"


def test_a_pattern_is_not_run_but_what_it_found_must_fit() -> None:
    spec = job_spec(target_modules=r".*layers\.0\..*_proj")

    assert code_of(archive(spec, tensors=lora_tensors(MODULES)), spec) == "sound"
    assert code_of(archive(spec, tensors=lora_tensors(MODULES, width=16)), spec) == "BASE_SHAPE"


def test_a_module_saved_whole_needs_no_pair() -> None:
    spec = job_spec(modules_to_save=("layers.1.self_attn.q_proj",))
    whole = {f"base_model.model.{LAYERS[2]}.weight": filled("F32", (8, 8))}
    config = {"modules_to_save": ["layers.1.self_attn.q_proj"]}
    tensors = without(LAYERS[2]) | whole

    assert code_of(archive(spec, config=config, tensors=tensors), spec) == "sound"


@pytest.mark.parametrize(
    ("shape", "code"), [((16, 8), "sound"), ((17, 8), "VOCAB_RESIZED"), ((16, 4), "BASE_SHAPE")]
)
def test_a_head_saved_whole_fits_the_vocabulary(shape: tuple[int, int], code: str) -> None:
    spec = job_spec(modules_to_save=("lm_head",))
    tensors = lora_tensors(LAYERS) | {"base_model.model.lm_head.weight": filled("F32", shape)}

    assert code_of(archive(spec, config={"modules_to_save": ["lm_head"]}, tensors=tensors), spec) == code


@pytest.mark.parametrize(
    ("tokens", "width", "code"), [(16, 8, "sound"), (18, 8, "VOCAB_RESIZED"), (16, 4, "BASE_SHAPE")]
)
def test_an_adapted_embedding_fits_the_vocabulary(tokens: int, width: int, code: str) -> None:
    spec = job_spec(target_modules=("q_proj", "v_proj", "embed_tokens"))
    tensors = lora_tensors(LAYERS) | embedding(tokens, width)

    assert code_of(archive(spec, tensors=tensors), spec) == code


def test_experts_belong_to_no_linear_layer() -> None:
    experts = "model.layers.0.mlp.experts"
    data = archive(
        config={"target_parameters": ["mlp.experts.down_proj"]},
        tensors=lora_tensors(LAYERS) | lora_tensors((experts,), rank=12),
    )

    assert code_of(data) == "sound"


@pytest.mark.parametrize(
    "base", [{"linear": {"q": ["8", 8]}}, {"linear": [1]}, {"embeddings": {}}, "all of them"]
)
def test_a_list_of_layers_that_is_none_is_an_invalid_manifest(base: Any) -> None:
    assert code_of(archive(base=base)) == "MANIFEST_INVALID"
