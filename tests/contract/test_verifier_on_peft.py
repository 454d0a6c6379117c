"""What PEFT really writes is what the verifier accepts, once it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.archives import adapter_archive, job_spec
from tests.support.verdicts import code_of, verdict_on

if TYPE_CHECKING:
    from pathlib import Path

    from tensorant.contract import JobSpec

pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*"),
]

SIZES = {
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
}
LINEAR_MODULES = 7
"""Of one layer: q, k, v, o, gate, up, down."""


def llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**SIZES))


def mixtral() -> Any:
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=3))


def saved(
    spec: JobSpec, folder: Path, *, base: Any = None, trained: bool = True, half: bool = False
) -> bytes:
    """The archive of an adapter that PEFT made and saved; `trained` moves every lora_B off zero."""
    import torch
    from peft import LoraConfig, get_peft_model

    base = base or llama()
    base.name_or_path = spec.base.repository
    targets = spec.lora.target_modules
    config = LoraConfig(
        task_type="CAUSAL_LM",
        revision=spec.base.revision,
        r=spec.lora.rank,
        lora_alpha=spec.lora.alpha,
        target_modules=targets if isinstance(targets, str) else list(targets),
        use_rslora=spec.lora.use_rslora,
        use_dora=spec.lora.use_dora,
    )
    model = get_peft_model(base, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if trained and "lora_B" in name:
                parameter.add_(0.01)
    model = model.to(torch.bfloat16) if half else model
    model.save_pretrained(folder, save_embedding_layers=False)  # "auto" would look the base up on the hub
    weights, settings = (folder / name for name in ("adapter_model.safetensors", "adapter_config.json"))
    return adapter_archive(spec, weights=weights.read_bytes(), config=settings.read_bytes())


@pytest.mark.parametrize(
    ("lora", "half"),
    [
        ({}, False),
        ({"use_rslora": True}, False),
        ({"use_dora": True}, False),
        ({"target_modules": ("q_proj", "v_proj")}, False),
        ({"target_modules": r".*\.self_attn\.[qv]_proj"}, False),
        ({}, True),
    ],
    ids=["LoRA", "rslora", "DoRA", "named targets", "a target pattern", "bfloat16"],
)
def test_a_trained_adapter_is_sound(lora: dict[str, Any], *, half: bool, tmp_path: Path) -> None:
    spec = job_spec(**lora)

    report = verdict_on(saved(spec, tmp_path, half=half), spec)

    assert report.fault is None
    assert report.ranks == (spec.lora.rank,)
    assert report.dtypes == (("BF16",) if half else ("F32",))
    modules = 2 * (LINEAR_MODULES if spec.lora.target_modules == "all-linear" else 2)
    assert report.tensors == modules * (3 if spec.lora.use_dora else 2)


@pytest.mark.parametrize("lora", [{}, {"use_dora": True}], ids=["LoRA", "DoRA"])
def test_a_fresh_adapter_is_untrained(lora: dict[str, Any], tmp_path: Path) -> None:
    spec = job_spec(**lora)

    assert code_of(saved(spec, tmp_path, trained=False), spec) == "UNTRAINED"


@pytest.mark.filterwarnings("ignore:The following .*_pattern keys did not match:RuntimeWarning")
def test_experts_stack_their_ranks(tmp_path: Path) -> None:
    spec = job_spec()

    report = verdict_on(saved(spec, tmp_path, base=mixtral()), spec)

    assert report.fault is None
    assert report.ranks == (4, 12, 24)


def test_another_variant_than_asked_for_is_refused(tmp_path: Path) -> None:
    data = saved(job_spec(use_rslora=True), tmp_path)

    assert code_of(data, job_spec(use_rslora=True)) == "sound"
    assert code_of(data, job_spec()) == "MANIFEST_SPEC"
