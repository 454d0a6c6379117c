"""Every way to pack a good adapter is accepted."""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BytesIO
from typing import Any

import pytest

from tensorant.verification import CHECKS, verify
from tests.support.archives import (
    MODULES,
    RawTensor,
    adapter_archive,
    adapter_files,
    archive_digest,
    encoded,
    filled,
    job_spec,
    lora_tensors,
)
from tests.support.raw_zip import SATURATED, RawEntry, extra_field, raw_zip, zip64_end
from tests.support.verdicts import BytesArchive, code_of, expected, verdict_on

A0 = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
EXPERTS = "model.layers.0.mlp.experts"
EMBEDDING = "base_model.model.model.embed_tokens"


def embedding_tensors(tokens: int = 16) -> dict[str, RawTensor]:
    """Rank 4 over a vocabulary of `tokens`, eight wide; A is the half that starts at zero."""
    return {
        f"{EMBEDDING}.lora_embedding_A": filled("F32", (4, tokens)),
        f"{EMBEDDING}.lora_embedding_B": filled("F32", (8, 4)),
    }


class Pipe(BytesIO):
    """A target that can't seek, so that zipfile writes sizes after the data."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError

    def seek(self, *_: Any) -> int:
        raise OSError


def piped(*, zip64: bool) -> bytes:
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        for name, data in adapter_files(job_spec()).items():
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(data)
    return pipe.getvalue()


def entries(**changes: Any) -> list[RawEntry]:
    """The members of a sound archive; `changes` are those of its first, README.md."""
    files = adapter_files(job_spec())
    readme = files.pop("README.md")
    rest = [RawEntry(name.encode(), data) for name, data in files.items()]
    return [RawEntry(b"README.md", readme, **changes), *rest]


def with_zip64_end() -> bytes:
    data = raw_zip(entries())
    count, length, offset = struct.unpack("<H2L", data[-12:-2])
    return data[:-22] + zip64_end(count, length, offset)


def with_bare_descriptor() -> bytes:
    readme = adapter_files(job_spec())["README.md"]
    descriptor = struct.pack("<3L", zlib.crc32(readme), len(readme), len(readme))
    return raw_zip(entries(flags=8, local_sizes=(0, 0, 0), after=descriptor))


def with_zip64_extras() -> bytes:
    size = len(adapter_files(job_spec())["README.md"])
    crc = zlib.crc32(adapter_files(job_spec())["README.md"])
    return raw_zip(
        entries(
            packed_size=SATURATED,
            size=SATURATED,
            offset=SATURATED,
            extra=extra_field(1, struct.pack("<3Q", size, size, 0)),
            local_sizes=(crc, SATURATED, SATURATED),
            local_extra=extra_field(1, struct.pack("<2Q", size, size)),
        )
    )


def repeated_sizes() -> bytes:
    size = len(adapter_files(job_spec())["README.md"])
    return extra_field(1, struct.pack("<2Q", size, size))


PACKED = {
    "stored": adapter_archive(),
    "deflated": adapter_archive(compression=zipfile.ZIP_DEFLATED),
    "sizes after the data": piped(zip64=False),
    "wide sizes after the data": piped(zip64=True),
    "sizes after the data without a signature": with_bare_descriptor(),
    "zip64 end record": with_zip64_end(),
    "zip64 extras": with_zip64_extras(),
    "a zip64 extra that repeats the sizes": raw_zip(entries(local_extra=repeated_sizes())),
    "time stamps as extras": raw_zip(entries(extra=extra_field(0x5455, b"\3" + bytes(8)))),
    "no file type": raw_zip(entries(mode=0)),
    "an empty README": adapter_archive(more={"README.md": b""}),
    "tokenizer and template": adapter_archive(
        more={"tokenizer.json": b"{}", "tokenizer_config.json": b"{}", "chat_template.jinja": b"{{ x }}"}
    ),
}


@pytest.mark.parametrize("data", PACKED.values(), ids=PACKED)
def test_packed(data: bytes) -> None:
    assert code_of(data) == "sound"


@pytest.mark.parametrize("limit", [0, 20, 1000, 1 << 31])
def test_large_archives_as_python_writes_them(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`zipfile` turns to zip64 at 2 GiB; a lower limit shows the same records in a small archive."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", limit)

    assert code_of(adapter_archive()) == "sound"
    assert code_of(piped(zip64=True)) == "sound"


MADE = {
    "F32": (job_spec(), {}),
    "F16": (job_spec(), {"tensors": lora_tensors(dtype="F16")}),
    "BF16": (job_spec(), {"tensors": lora_tensors(dtype="BF16")}),
    "rslora": (job_spec(use_rslora=True), {}),
    "DoRA": (job_spec(use_dora=True), {}),
    "named targets": (job_spec(target_modules=("v_proj", "q_proj")), {}),
    "a target pattern": (job_spec(target_modules=".*_proj"), {}),
    "unresolved all-linear": (job_spec(), {"config": {"target_modules": "all-linear"}}),
    "gaussian start": (job_spec(), {"config": {"init_lora_weights": "gaussian"}}),
    "rank pattern": (
        job_spec(),
        {
            "config": {"rank_pattern": {"v_proj": 2}},
            "tensors": lora_tensors(("l.q_proj",)) | lora_tensors(("l.v_proj",), rank=2),
        },
    ),
    "rank and alpha pattern": (
        job_spec(),
        {
            "config": {"rank_pattern": {r".*\.v_proj": 8}, "alpha_pattern": {r".*\.v_proj": 16}},
            "tensors": lora_tensors(("l.q_proj",)) | lora_tensors(("l.v_proj",), rank=8),
        },
    ),
    "experts": (
        job_spec(),
        {
            "config": {"target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]},
            "tensors": lora_tensors()
            | lora_tensors((EXPERTS,), rank=12)
            | lora_tensors((f"{EXPERTS}.base_layer",), rank=24),
        },
    ),
    "experts whose layer is not named": (
        job_spec(),
        {
            "config": {"target_parameters": ["gate_up_proj"]},
            "tensors": lora_tensors() | lora_tensors((EXPERTS,), rank=12),
        },
    ),
    "unknown fields": (job_spec(), {"config": {"from_the_future": 1}, "manifest": {"from_the_future": 1}}),
    "stopped early": (
        job_spec(),
        {"manifest": {"stop_reason": "early_stop", "steps_done": 7, "steps_total": 7}},
    ),
    "as large as it may be": (
        job_spec(),
        {"tensors": lora_tensors() | {A0: filled("F32", (4, 8), -10_000)}},
    ),
    "as large as it may be, in 16 bits": (
        job_spec(),
        {"tensors": lora_tensors(dtype="F16") | {A0: filled("F16", (4, 8), 10_000)}},
    ),
    "large in bfloat16": (
        job_spec(),
        {"tensors": lora_tensors(dtype="BF16") | {A0: filled("BF16", (4, 8), 9_984)}},
    ),
    "biases of LoRA": (
        job_spec(lora_bias=True),
        {
            "config": {"lora_bias": True},
            "tensors": lora_tensors()
            | {f"base_model.model.{module}.lora_B.bias": filled("F32", (8,), 0.0) for module in MODULES},
        },
    ),
    "modules saved whole": (
        job_spec(modules_to_save=("lm_head", "norm")),
        {
            "config": {"modules_to_save": ["norm", "lm_head"]},
            "tensors": lora_tensors()
            | {
                "base_model.model.lm_head.weight": filled("F32", (16, 8)),
                "base_model.model.model.norm.weight": filled("F32", (8,), 1.0),
            },
        },
    ),
    "a block saved whole, whose bias is zero": (
        job_spec(modules_to_save=("mlp",)),
        {
            "config": {"modules_to_save": ["mlp"]},
            "tensors": lora_tensors()
            | {
                "base_model.model.model.layers.0.mlp.up_proj.weight": filled("F32", (8, 8)),
                "base_model.model.model.layers.0.mlp.up_proj.bias": filled("F32", (8,), 0.0),
            },
        },
    ),
    "an embedding": (
        job_spec(target_modules=("q_proj", "embed_tokens")),
        {"tensors": lora_tensors(MODULES[:1]) | embedding_tensors()},
    ),
    "an embedding with DoRA": (
        job_spec(target_modules=("q_proj", "embed_tokens"), use_dora=True),
        {
            "tensors": lora_tensors(MODULES[:1], dora=True)
            | embedding_tensors()
            | {f"{EMBEDDING}.lora_magnitude_vector": filled("F32", (8,), 1.0)}
        },
    ),
    "one number is enough": (
        job_spec(),
        {
            "tensors": {
                name: tensor.__class__("F32", tensor.shape, bytes(124) + encoded("F32", 1e-9))
                for name, tensor in lora_tensors().items()
            }
        },
    ),
}


@pytest.mark.parametrize(("spec", "parts"), MADE.values(), ids=MADE)
def test_made(spec: Any, parts: dict[str, Any]) -> None:
    assert code_of(adapter_archive(spec, **parts), spec) == "sound"


def test_the_report_tells_what_was_seen() -> None:
    spec = job_spec(use_dora=True)
    data = adapter_archive(spec)

    report = verdict_on(data, spec)

    assert report.sound
    assert report.checks == CHECKS
    assert report.archive == archive_digest(data)
    assert (report.tensors, report.parameters) == (6, 2 * (4 * 8 + 8 * 4 + 8))
    assert (report.ranks, report.dtypes) == ((4,), ("F32",))
    assert report.manifest is not None
    assert report.manifest.steps_done == 46
    assert (report.modules, report.variant) == (2, "DoRA")


def test_a_named_target_that_fits_no_module_is_only_a_warning() -> None:
    spec = job_spec(target_modules=("q_proj", "v_proj", "qproj"))

    report = verdict_on(adapter_archive(spec), spec)

    assert report.sound
    assert report.warnings == ("No module was adapted for these names in target_modules: ['qproj'].",)


def test_any_attempt_will_do_where_none_is_expected() -> None:
    data = adapter_archive(manifest={"attempt": 3})

    assert verify(BytesArchive(data), expected(attempt=None)).sound


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_chunks_may_end_anywhere(chunk_bytes: int, compression: int) -> None:
    data = adapter_archive(compression=compression)

    assert verdict_on(data, chunk_bytes=chunk_bytes).sound


def test_the_whole_is_read_once_and_little_before_it() -> None:
    big = lora_tensors(width=32_768)
    archive = BytesArchive(adapter_archive(tensors=big), chunk_bytes=1 << 20)

    assert verify(archive, expected()).sound
    assert archive.streams == 1
    assert archive.reads <= 4
