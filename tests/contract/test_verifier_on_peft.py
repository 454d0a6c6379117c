"""What PEFT really writes is what the verifier accepts, once it is trained."""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.archives import adapter_archive, job_spec
from tests.support.verdicts import code_of, verdict_on

if TYPE_CHECKING:
    from pathlib import Path

    from tensorant.contract import BaseModelRef, JobSpec

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

    from tensorant_trainer.measures import measured, modules_of

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
        lora_bias=spec.lora.lora_bias,
        modules_to_save=list(spec.lora.modules_to_save) or None,
    )
    found = modules_of(base)
    assert found is not None
    model = get_peft_model(base, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if trained and ("lora_B" in name or "lora_embedding_A" in name):
                parameter.add_(0.01)
    model = model.to(torch.bfloat16) if half else model
    model.save_pretrained(folder, save_embedding_layers=False)  # "auto" would look the base up on the hub
    weights, settings = (folder / name for name in ("adapter_model.safetensors", "adapter_config.json"))
    stated = {"norms": measured(model).model_dump(), "base_modules": found.model_dump()}
    return adapter_archive(spec, weights=weights.read_bytes(), config=settings.read_bytes(), manifest=stated)


@pytest.mark.parametrize(
    ("lora", "half"),
    [
        ({}, False),
        ({"use_rslora": True}, False),
        ({"use_dora": True}, False),
        ({"target_modules": ("q_proj", "v_proj")}, False),
        ({"target_modules": r".*\.self_attn\.[qv]_proj"}, False),
        ({}, True),
        ({"use_rslora": True, "use_dora": True}, False),
    ],
    ids=["LoRA", "rslora", "DoRA", "named targets", "a target pattern", "bfloat16", "rslora and DoRA"],
)
def test_a_trained_adapter_is_sound(lora: dict[str, Any], *, half: bool, tmp_path: Path) -> None:
    spec = job_spec(**lora)

    report = verdict_on(saved(spec, tmp_path, half=half), spec)

    assert report.fault is None
    assert report.ranks == (spec.lora.rank,)
    assert report.dtypes == (("BF16",) if half else ("F32",))
    modules = 2 * (LINEAR_MODULES if spec.lora.target_modules == "all-linear" else 2)
    assert report.tensors == modules * (3 if spec.lora.use_dora else 2)


@pytest.mark.filterwarnings("ignore:`lora_bias=True` was passed")
@pytest.mark.filterwarnings("ignore:Adapter 'default'")
@pytest.mark.parametrize(
    ("lora", "more"),
    [
        ({"lora_bias": True}, 2 * LINEAR_MODULES),
        ({"modules_to_save": ("lm_head",)}, 1),
        ({"modules_to_save": ("lm_head", "embed_tokens")}, 2),
        ({"modules_to_save": ("norm", "lm_head")}, 6),  # two norms in each of two layers, and the last
        ({"modules_to_save": ("o_proj",)}, -2),  # in both layers one tensor instead of two
    ],
    ids=["lora_bias", "the output", "output and embedding", "a norm", "a layer that is also a target"],
)
def test_what_is_trained_beside_it(lora: dict[str, Any], more: int, tmp_path: Path) -> None:
    spec = job_spec(**lora)
    replaced = 2 if "o_proj" in spec.lora.modules_to_save else 0

    report = verdict_on(saved(spec, tmp_path), spec)

    assert report.fault is None
    assert report.modules == 2 * LINEAR_MODULES - replaced
    assert report.tensors == 2 * 2 * LINEAR_MODULES + more


def test_an_adapted_embedding(tmp_path: Path) -> None:
    spec = job_spec(target_modules=("q_proj", "embed_tokens"), use_dora=True)

    report = verdict_on(saved(spec, tmp_path), spec)

    assert report.fault is None
    assert report.modules == 2 + 1


def test_norms_are_those_of_the_weights_change(tmp_path: Path) -> None:
    """Against the change of every weight, added up in full."""
    import torch
    from peft import LoraConfig, get_peft_model

    from tensorant_trainer.measures import measured

    torch.manual_seed(1)
    model = get_peft_model(llama(), LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    layers = {
        name: layer for name, layer in model.base_model.model.named_modules() if hasattr(layer, "lora_A")
    }
    with torch.no_grad():
        for layer in layers.values():
            layer.lora_B["default"].weight.normal_(std=0.1)
        changes = {name: float(layer.get_delta_weight("default").norm()) for name, layer in layers.items()}

    norms = measured(model)

    assert norms.update == pytest.approx(sum(change**2 for change in changes.values()) ** 0.5, rel=1e-5)
    assert norms.largest_module == max(changes, key=lambda name: changes[name])
    assert norms.largest_update == pytest.approx(max(changes.values()), rel=1e-5)


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


@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False:UserWarning")
def test_a_base_model_of_conv1d_is_covered(tmp_path: Path) -> None:
    """GPT-2 keeps its weights the other way round."""
    from transformers import GPT2Config, GPT2LMHeadModel

    base = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=2, n_head=2))
    spec = job_spec()

    report = verdict_on(saved(spec, tmp_path, base=base), spec)

    assert report.fault is None
    # attention in and out, feed-forward in and out, in two layers; the base has its output besides
    assert (report.modules, report.base_modules) == (8, 9)


def test_a_layer_lost_on_the_way_to_the_disk_is_noticed(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    spec = job_spec()
    saved(spec, tmp_path)
    path = tmp_path / "adapter_model.safetensors"
    kept = {name: each for name, each in load_file(path).items() if ".layers.1.mlp.up_proj." not in name}
    save_file(kept, path, metadata={"format": "pt"})
    base = llama()
    from tensorant_trainer.measures import modules_of

    found = modules_of(base)
    assert found is not None
    data = adapter_archive(
        spec,
        weights=path.read_bytes(),
        config=(tmp_path / "adapter_config.json").read_bytes(),
        manifest={"base_modules": found.model_dump()},
    )

    assert code_of(data, spec) == "COVERAGE"


def test_another_variant_than_asked_for_is_refused(tmp_path: Path) -> None:
    data = saved(job_spec(use_rslora=True), tmp_path)

    assert code_of(data, job_spec(use_rslora=True)) == "sound"
    assert code_of(data, job_spec()) == "MANIFEST_SPEC"


# -- a real model ------------------------------------------------------------------------------------------


VARIANTS: dict[str, tuple[dict[str, Any], int, str]] = {
    "LoRA": ({}, 2 * 60, "LoRA"),
    "rslora": ({"use_rslora": True}, 2 * 60, "rsLoRA"),
    "DoRA": ({"use_dora": True}, 3 * 60, "DoRA"),
    "modules_to_save": ({"modules_to_save": ("lm_head",)}, 2 * 60 + 1, "LoRA with lm_head"),
}
"""Of 30 layers q and v are adapted, by two tensors each or by three."""


@pytest.fixture(scope="module")
def smollm2() -> tuple[Path, BaseModelRef]:
    """SmolLM2-135M-Instruct where local mode keeps it, or built there."""
    from tensorant_local.base_models import prepared
    from tensorant_local.cloud import PROJECT

    cache = PROJECT / ".tensorant" / "models"
    return cache, prepared("smollm2", cache)


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`:UserWarning")
@pytest.mark.parametrize(("lora", "tensors", "variant"), VARIANTS.values(), ids=VARIANTS)
def test_smollm2_is_trained_packed_verified_and_loaded_by_peft(
    lora: dict[str, Any], tensors: int, variant: str, smollm2: tuple[Path, BaseModelRef], tmp_path: Path
) -> None:
    """By the trainer's own functions; what PEFT loads from the archive answers as the trained model does."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from tensorant_trainer.adapter import save_adapter
    from tensorant_trainer.base_model import with_adapter
    from tensorant_trainer.measures import measured, modules_of

    cache, reference = smollm2
    owner = f"models--{reference.repository.replace('/', '--')}"
    folder = cache / owner / "snapshots" / reference.revision  # by its path, so that nothing asks the hub
    spec = job_spec(target_modules=("q_proj", "v_proj"), **lora).model_copy(update={"base": reference})
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    found = modules_of(base)
    assert found is not None
    torch.manual_seed(0)
    model = with_adapter(base, spec.lora)
    text = AutoTokenizer.from_pretrained(folder)("An adapter is small.", return_tensors="pt")
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    for _ in range(2):
        model(**text, labels=text["input_ids"]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    names = save_adapter(model, reference, tmp_path)
    stated = {"norms": measured(model).model_dump(), "base_modules": found.model_dump()}
    data = adapter_archive(
        spec,
        weights=(tmp_path / "adapter_model.safetensors").read_bytes(),
        config=(tmp_path / "adapter_config.json").read_bytes(),
        manifest=stated,
    )

    report = verdict_on(data, spec, chunk_bytes=1 << 20)

    assert len(names) == 3
    assert report.fault is None
    assert (report.tensors, report.modules, report.variant) == (tensors, 60, variant)
    assert report.base_modules == 30 * LINEAR_MODULES + 1
    assert report.norms is not None
    assert report.norms.update > 0
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(BytesIO(data)) as archive:
        archive.extractall(unpacked)
    fresh = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    loaded = PeftModel.from_pretrained(fresh, unpacked)
    with torch.no_grad():
        trained, untrained = model.eval()(**text).logits, None
        with loaded.eval().disable_adapter():
            untrained = loaded(**text).logits
        assert torch.allclose(loaded(**text).logits, trained, atol=1e-4)
        assert not torch.allclose(untrained, trained, atol=1e-2)
