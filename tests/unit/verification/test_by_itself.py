"""An archive whose run nobody tells is held against its own manifest and config."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.verification import CHECKS, Expected, verify
from tests.support.archives import adapter_archive, filled, job_spec, lora_tensors
from tests.support.verdicts import BytesArchive


def code_of(data: bytes) -> str:
    report = verify(BytesArchive(data), Expected())
    return report.fault.code if report.fault else "sound"


@pytest.mark.parametrize(
    "lora",
    [
        {},
        {"rank": 4, "use_rslora": True},
        {"use_dora": True},
        {"target_modules": ("q_proj", "v_proj")},
        {"target_modules": ".*_proj"},
    ],
    ids=["LoRA", "rslora", "DoRA", "named targets", "a target pattern"],
)
def test_a_sound_archive_of_any_run_proves_itself(lora: dict[str, Any]) -> None:
    report = verify(BytesArchive(adapter_archive(job_spec(**lora))), Expected())

    assert report.fault is None
    assert report.checks == CHECKS


def test_declared_extras_are_taken_as_asked_for() -> None:
    spec = job_spec(modules_to_save=("lm_head",))
    tensors = lora_tensors() | {"base_model.model.lm_head.weight": filled("F32", (16, 8))}

    assert code_of(adapter_archive(spec, tensors=tensors, config={"modules_to_save": ["lm_head"]})) == "sound"


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"config": {"base_model_name_or_path": "example/other"}}, "CONFIG_BASE"),
        ({"config": {"revision": "main"}}, "CONFIG_BASE"),
        ({"config": {"r": 8}}, "TENSOR_RANK"),
        ({"config": {"r": 0}}, "CONFIG_RANK"),
        ({"config": {"r": "4"}}, "CONFIG_RANK"),
        ({"config": {"lora_alpha": True}}, "CONFIG_ALPHA"),
        ({"config": {"use_dora": True}}, "TENSOR_DORA"),
        ({"config": {"use_dora": 1}}, "CONFIG_VARIANT"),
        ({"config": {"use_rslora": "no"}}, "CONFIG_VARIANT"),
        ({"config": {"lora_bias": True}}, "TENSOR_BIAS"),
        ({"config": {"modules_to_save": ["lm_head"]}}, "TENSOR_EXTRA"),
        ({"config": {"modules_to_save": "lm_head"}}, "CONFIG_EXTRAS"),
        ({"config": {"target_modules": []}}, "CONFIG_TARGETS"),
        ({"config": {"target_modules": ["k_proj"]}}, "TENSOR_TARGET"),
        ({"config": {"init_lora_weights": "pissa"}}, "CONFIG_INIT"),
        ({"config": {"bias": "all"}}, "CONFIG_BIAS"),
        ({"manifest": {"status": "checkpoint"}}, "MANIFEST_INCOMPLETE"),
        ({"manifest": {"steps_done": 45}}, "MANIFEST_INCOMPLETE"),
        ({"manifest": {"files": {}}}, "MANIFEST_FILES"),
        ({"tensors": lora_tensors(b=0.0)}, "UNTRAINED"),
        ({"tensors": lora_tensors(b=float("inf"))}, "NOT_FINITE"),
    ],
    ids=str,
)
def test_what_it_says_of_itself_must_agree(parts: dict[str, Any], code: str) -> None:
    assert code_of(adapter_archive(**parts)) == code
