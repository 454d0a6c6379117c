"""Adapter archives built from plain bytes: sound unless a test asks for a flaw."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zipfile
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from tensorant.contract import (
    ArchiveDigest,
    BaseModelRef,
    DatasetRef,
    FileDigest,
    JobSpec,
    LoraSpec,
    Manifest,
    TrainingSpec,
)

RUN_ID = "run-1"
ATTEMPT = 1
MODULES = ("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj")
FIXED_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class RawTensor:
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def encoded(dtype: str, *numbers: float) -> bytes:
    """Little-endian. BF16 is the upper half of an F32."""
    if dtype == "BF16":
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return struct.pack(f"<{len(numbers)}{'e' if dtype == 'F16' else 'f'}", *numbers)


def filled(dtype: str, shape: tuple[int, ...], number: float = 0.5) -> RawTensor:
    return RawTensor(dtype, shape, encoded(dtype, number) * math.prod(shape))


def lora_tensors(
    modules: tuple[str, ...] = MODULES,
    *,
    rank: int = 4,
    width: int = 8,
    dtype: str = "F32",
    b: float = 0.25,
    dora: bool = False,
) -> dict[str, RawTensor]:
    """Pairs for square modules of `width`, by their names in PEFT; `b` fills every lora_B."""
    tensors: dict[str, RawTensor] = {}
    for module in modules:
        name = f"base_model.model.{module}"
        tensors[f"{name}.lora_A.weight"] = filled(dtype, (rank, width))
        tensors[f"{name}.lora_B.weight"] = filled(dtype, (width, rank), b)
        if dora:
            tensors[f"{name}.lora_magnitude_vector"] = filled(dtype, (width,), 1.0)
    return tensors


def safetensors(tensors: dict[str, RawTensor]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, tensor in tensors.items():
        offsets = [len(data), len(data) + len(tensor.data)]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        data += tensor.data
    return safetensors_of(json.dumps(header).encode(), data)


def safetensors_of(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def job_spec(**lora: Any) -> JobSpec:
    """A job of rank 4 and alpha 8; keywords replace fields of its LoraSpec."""
    return JobSpec(
        run_id=RUN_ID,
        base=BaseModelRef(repository="example/base", revision="0123456789abcdef"),
        lora=LoraSpec.model_validate({"rank": 4, "alpha": 8, **lora}),
        training=TrainingSpec(),
        dataset=DatasetRef(sha256="d" * 64, rows=200, bytes=10_000),
    )


def adapter_config(spec: JobSpec, /, **changes: Any) -> dict[str, Any]:
    """As PEFT writes it for `spec`, as far as anybody reads it."""
    targets = spec.lora.target_modules
    return {
        "alpha_pattern": {},
        "base_model_name_or_path": spec.base.repository,
        "bias": "none",
        "init_lora_weights": True,
        "lora_alpha": spec.lora.alpha,
        "lora_dropout": spec.lora.dropout,
        "modules_to_save": None,
        "peft_type": "LORA",
        "peft_version": "0.21.2",
        "r": spec.lora.rank,
        "rank_pattern": {},
        "revision": spec.base.revision,
        "target_modules": ["q_proj", "v_proj"] if targets == "all-linear" else targets,
        "task_type": "CAUSAL_LM",
        "use_dora": spec.lora.use_dora,
        "use_rslora": spec.lora.use_rslora,
        **changes,
    }


def file_digest(data: bytes) -> FileDigest:
    return FileDigest(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def archive_digest(data: bytes) -> ArchiveDigest:
    return ArchiveDigest(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def manifest_of(spec: JobSpec, files: dict[str, bytes], /, **changes: Any) -> dict[str, Any]:
    """The manifest of a finished run of 46 steps, as JSON values."""
    manifest = Manifest(
        run_id=spec.run_id,
        attempt=ATTEMPT,
        status="complete",
        stop_reason="finished",
        steps_done=46,
        steps_total=46,
        base=spec.base,
        spec_sha256=spec.sha256(),
        dataset_sha256=spec.dataset.sha256,
        files={name: file_digest(data) for name, data in files.items()},
    )
    return {**manifest.model_dump(mode="json", exclude={"archive"}), **changes}


def zip_of(files: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Sorted names and a fixed date, so that equal files give equal bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, FIXED_DATE)
            member.compress_type = compression
            archive.writestr(member, files[name])
    return buffer.getvalue()


def adapter_files(
    spec: JobSpec,
    *,
    tensors: dict[str, RawTensor] | None = None,
    weights: bytes | None = None,
    config: dict[str, Any] | bytes | None = None,
    more: dict[str, bytes] | None = None,
    manifest: dict[str, Any] | None = None,
) -> dict[str, bytes]:
    """The members by name. `config` and `manifest` change single fields; bytes replace the whole config."""
    if tensors is None:
        tensors = lora_tensors(rank=spec.lora.rank, dora=spec.lora.use_dora)
    if not isinstance(config, bytes):
        config = json.dumps(adapter_config(spec, **(config or {})), sort_keys=True).encode()
    files = {
        "README.md": b"# An adapter\n",
        "adapter_config.json": config,
        "adapter_model.safetensors": safetensors(tensors) if weights is None else weights,
        **(more or {}),
    }
    return {**files, "manifest.json": json.dumps(manifest_of(spec, files, **(manifest or {}))).encode()}


def adapter_archive(
    spec: JobSpec | None = None, *, compression: int = zipfile.ZIP_STORED, **parts: Any
) -> bytes:
    """A whole `adapter.zip`, sound for `spec` unless `parts` (see `adapter_files`) say otherwise."""
    return zip_of(adapter_files(spec or job_spec(), **parts), compression=compression)
