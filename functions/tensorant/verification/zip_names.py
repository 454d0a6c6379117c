"""Which files an adapter archive may hold: flat, plain names out of a short list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tensorant.contract import MANIFEST_MEMBER
from tensorant.verification.faults import Code, shown, unsound

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG_MEMBER = "adapter_config.json"
WEIGHTS_MEMBER = "adapter_model.safetensors"

ALLOWED_NAMES = frozenset(
    {
        CONFIG_MEMBER,
        WEIGHTS_MEMBER,
        MANIFEST_MEMBER,
        "README.md",
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "generation_config.json",
        "merges.txt",
        "sentencepiece.bpe.model",
        "special_tokens_map.json",
        "spiece.model",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
    }
)

_FLAT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")


def check_names(names: Sequence[str]) -> None:
    """Refuse folders, path tricks, pickles, files nobody expects, and two names that a file system may mix up."""
    for name in names:
        if not _FLAT.fullmatch(name):
            raise unsound(Code.ZIP_NAMES, f"The name {shown(name)} is not that of a file at the top.")
        if name.lower().endswith(_PICKLES):
            raise unsound(Code.ZIP_PICKLE, f"{name} is a pickle, which can run code when loaded.")
    folded = [name.casefold() for name in names]
    if twice := next((name for name in folded if folded.count(name) > 1), None):
        raise unsound(Code.ZIP_DUPLICATE, f"{twice} is there more than once.")
    if others := sorted(set(names) - ALLOWED_NAMES):
        raise unsound(Code.ZIP_UNEXPECTED_FILE, f"{others[0]} has no place in an adapter archive.")
