"""What may be trained beside the pairs: biases, embeddings and modules saved whole, exactly as they were asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.contract import FaultClass, JobSpec
from tests.support.archives import MODULES, RawTensor, adapter_archive, filled, job_spec, lora_tensors
from tests.support.verdicts import code_of, verdict_on

Q, V = (f"base_model.model.{module}" for module in MODULES)
EMBEDDING = "base_model.model.model.embed_tokens"
HEAD = {"base_model.model.lm_head.weight": filled("F32", (16, 8))}
BIASES = {f"{Q}.lora_B.bias": filled("F32", (8,)), f"{V}.lora_B.bias": filled("F32", (8,))}
EMBEDDED = {
    f"{EMBEDDING}.lora_embedding_A": filled("F32", (4, 16)),
    f"{EMBEDDING}.lora_embedding_B": filled("F32", (8, 4)),
}

WITH_HEAD = job_spec(modules_to_save=("lm_head",))
WITH_BIASES = job_spec(lora_bias=True)
WITH_EMBEDDING = job_spec(target_modules=("q_proj", "embed_tokens"))


def made(
    spec: JobSpec, more: dict[str, RawTensor], config: dict[str, Any], modules: tuple[str, ...] = MODULES
) -> bytes:
    return adapter_archive(spec, tensors=lora_tensors(modules) | more, config=config)


SAVED = {"modules_to_save": ["lm_head"]}

CASES = [
    ("a module nobody asked for", job_spec(), HEAD, SAVED, "CONFIG_EXTRAS"),
    ("a module that was asked for and is not declared", WITH_HEAD, HEAD, {}, "CONFIG_EXTRAS"),
    ("another module", WITH_HEAD, HEAD, {"modules_to_save": ["embed_tokens"]}, "CONFIG_EXTRAS"),
    ("one module more", WITH_HEAD, HEAD, {"modules_to_save": ["lm_head", "norm"]}, "CONFIG_EXTRAS"),
    ("modules that are numbers", WITH_HEAD, HEAD, {"modules_to_save": [1]}, "CONFIG_EXTRAS"),
    ("a module that is declared and not there", WITH_HEAD, {}, SAVED, "TENSOR_EXTRA"),
    (
        "a module that only begins alike",
        WITH_HEAD,
        {"base_model.model.lm_head_2.weight": filled("F32", (16, 8))},
        SAVED,
        "TENSOR_NAME",
    ),
    (
        "a compiled module",
        WITH_HEAD,
        {"base_model.model._orig_mod.lm_head.weight": filled("F32", (16, 8))},
        SAVED,
        "TENSOR_NAME",
    ),
    (
        "a module of shape [0]",
        WITH_HEAD,
        {"base_model.model.lm_head.weight": RawTensor("F32", (0,), b"")},
        SAVED,
        "ST_EMPTY_TENSOR",
    ),
    (
        "a module of zeros",
        WITH_HEAD,
        {"base_model.model.lm_head.weight": filled("F32", (16, 8), 0.0)},
        SAVED,
        "PARTLY_UNTRAINED",
    ),
    (
        "a module with NaN",
        WITH_HEAD,
        {"base_model.model.lm_head.weight": filled("F32", (16, 8), float("nan"))},
        SAVED,
        "NOT_FINITE",
    ),
    ("biases that were asked for and are not declared", WITH_BIASES, BIASES, {}, "CONFIG_BIAS"),
    ("no bias where it is declared", WITH_BIASES, {}, {"lora_bias": True}, "TENSOR_BIAS"),
    (
        "one bias missing",
        WITH_BIASES,
        {f"{Q}.lora_B.bias": filled("F32", (8,))},
        {"lora_bias": True},
        "TENSOR_BIAS",
    ),
    (
        "a bias of another length",
        WITH_BIASES,
        BIASES | {f"{V}.lora_B.bias": filled("F32", (4,))},
        {"lora_bias": True},
        "TENSOR_BIAS",
    ),
    ("only the base's biases", job_spec(), {}, {"bias": "lora_only"}, "CONFIG_BIAS"),
]


@pytest.mark.parametrize(
    ("spec", "more", "config", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_refused(spec: JobSpec, more: dict[str, RawTensor], config: dict[str, Any], code: str) -> None:
    assert code_of(made(spec, more, config), spec) == code


EMBEDDINGS = [
    ("half an embedding", {f"{EMBEDDING}.lora_embedding_A": filled("F32", (4, 16))}, "TENSOR_PAIR"),
    ("another half", {f"{EMBEDDING}.lora_embedding_B": filled("F32", (8, 4))}, "TENSOR_PAIR"),
    (
        "an embedding of another rank",
        EMBEDDED | {f"{EMBEDDING}.lora_embedding_A": filled("F32", (2, 16))},
        "TENSOR_RANK",
    ),
    (
        "an embedding that was not trained",
        EMBEDDED | {f"{EMBEDDING}.lora_embedding_A": filled("F32", (4, 16), 0.0)},
        "PARTLY_UNTRAINED",
    ),
    (
        "the base's embedding beside it",
        EMBEDDED | {f"{EMBEDDING}.base_layer.weight": filled("F32", (16, 8))},
        "VOCAB_RESIZED",
    ),
    ("a bias of an embedding", EMBEDDED | {f"{EMBEDDING}.lora_B.bias": filled("F32", (8,))}, "TENSOR_BIAS"),
]


@pytest.mark.parametrize(
    ("more", "code"), [case[1:] for case in EMBEDDINGS], ids=[case[0] for case in EMBEDDINGS]
)
def test_embeddings(more: dict[str, RawTensor], code: str) -> None:
    assert code_of(made(WITH_EMBEDDING, more, {}, MODULES[:1]), WITH_EMBEDDING) == code


def test_a_magnitude_of_zeros_is_a_dead_module() -> None:
    spec = job_spec(use_dora=True)
    tensors = lora_tensors(dora=True) | {f"{V}.lora_magnitude_vector": filled("F32", (8,), 0.0)}

    assert code_of(adapter_archive(spec, tensors=tensors), spec) == "PARTLY_UNTRAINED"


def test_a_resized_vocabulary_is_a_matter_of_policy() -> None:
    fault = verdict_on(made(job_spec(), HEAD, {})).fault

    assert fault is not None
    assert fault.fault_class is FaultClass.POLICY
    assert "save_embedding_layers=False" in fault.mend


@pytest.mark.parametrize(
    ("lora", "variant"),
    [
        ({}, "LoRA"),
        ({"use_rslora": True}, "rsLoRA"),
        ({"use_dora": True, "use_rslora": True}, "rsDoRA"),
    ],
)
def test_the_report_names_the_variant(lora: dict[str, Any], variant: str) -> None:
    spec = job_spec(**lora)

    assert verdict_on(adapter_archive(spec), spec).variant == variant


def test_the_report_names_what_was_trained_beside() -> None:
    report = verdict_on(made(WITH_HEAD, HEAD, SAVED), WITH_HEAD)

    assert report.variant == "LoRA with lm_head"
    assert (report.tensors, report.modules) == (5, 2)
    assert report.warnings == (
        "vLLM does not serve adapters with modules_to_save: merge it into the base model first.",
    )


def test_a_job_stored_before_these_could_be_asked_for_keeps_its_hash() -> None:
    # hashed by the code as it was before LoraSpec knew lora_bias and modules_to_save
    assert job_spec().sha256() == "113e1b9e10e28bfb6153a7da245b633ba9d4efb95c9072c519579a8cd1c91d68"
    assert job_spec(modules_to_save=("lm_head",)).sha256() != job_spec().sha256()
    assert job_spec(lora_bias=True).sha256() != job_spec().sha256()
