"""The trained adapter as PEFT's files, the same bytes for the same adapter."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any

from peft import get_peft_model_state_dict
from safetensors.torch import save_file

if TYPE_CHECKING:
    from pathlib import Path

    from tensorant.contract import BaseModelRef

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
README = "README.md"


def save_adapter(model: Any, base: BaseModelRef, directory: Path) -> tuple[str, ...]:
    """Write config, weights and a README; answer their names.

    The config names the base model as the run does, not by the path it was loaded from, and its sets are
    sorted: PEFT's own order follows the process's hash seed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    weights = {
        name: tensor.contiguous().cpu()
        for name, tensor in get_peft_model_state_dict(model, save_embedding_layers=False).items()
    }
    save_file(weights, directory / WEIGHTS, metadata={"format": "pt"})
    config = model.peft_config["default"].to_dict() | {
        "base_model_name_or_path": base.repository,
        "revision": base.revision,
        "inference_mode": True,
    }
    text = json.dumps(plain(config), indent=2, sort_keys=True)
    (directory / CONFIG).write_text(text + "\n", encoding="utf-8")
    (directory / README).write_text(_readme(base), encoding="utf-8")
    return (CONFIG, WEIGHTS, README)


def plain(value: Any) -> Any:
    """The value as JSON has it, in an order that does not depend on the process."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _readme(base: BaseModelRef) -> str:
    return f"""---
base_model: {base.repository}
library_name: peft
---

# LoRA adapter for {base.repository}

Trained on revision `{base.revision}`. `manifest.json` says by which run, on what, and how far.

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained("{base.repository}", revision="{base.revision}")
model = PeftModel.from_pretrained(base, "path/to/this/folder")
```
"""
