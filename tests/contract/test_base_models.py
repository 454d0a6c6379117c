"""Base models as transformers finds them in the hub's cache, with no hub to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorant_local.base_models import build_tiny

if TYPE_CHECKING:
    from pathlib import Path

    from tensorant.contract import BaseModelRef


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def tiny(cache: Path) -> BaseModelRef:
    return build_tiny(cache)


def test_the_tiny_model_is_found_by_its_revision(cache: Path, tiny: BaseModelRef) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        tiny.repository, revision=tiny.revision, cache_dir=cache, local_files_only=True
    )

    # 258 tokens x 64; two layers of attention (64x64 twice, 64x32 twice), feed-forward (3 of 64x160), two norms; a norm
    assert model.num_parameters() == 258 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160 + 2 * 64) + 64


def test_its_tokenizer_renders_a_chat_and_ends_a_turn(cache: Path, tiny: BaseModelRef) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        tiny.repository, revision=tiny.revision, cache_dir=cache, local_files_only=True
    )

    chat = tokenizer.apply_chat_template([{"role": "user", "content": "Hé"}], tokenize=False)
    assert chat == "<|im_start|>user\nHé<|im_end|>\n"
    tokens = tokenizer(chat, add_special_tokens=False)["input_ids"]
    assert len(tokens) == 1 + len("user\nHé".encode()) + 1 + 1
    assert tokens[-2] == tokenizer.eos_token_id == tokenizer.pad_token_id


def test_building_again_changes_nothing(cache: Path, tiny: BaseModelRef) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in cache.rglob("*"))

    assert build_tiny(cache) == tiny
    assert sorted((path, path.stat().st_mtime_ns) for path in cache.rglob("*")) == before


def test_the_same_model_has_the_same_revision_anywhere(tiny: BaseModelRef, tmp_path: Path) -> None:
    assert build_tiny(tmp_path) == tiny
