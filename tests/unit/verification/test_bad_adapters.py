"""Well-packed archives of the wrong, half-done or dead adapter."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tensorant.contract import FaultClass, JobSpec
from tensorant.verification import Code, Expected, verify
from tensorant.verification.faults import unsound
from tests.support.archives import (
    RawTensor,
    adapter_archive,
    adapter_config,
    adapter_files,
    archive_digest,
    encoded,
    filled,
    job_spec,
    lora_tensors,
    safetensors,
    safetensors_of,
    zip_of,
)
from tests.support.verdicts import BytesArchive, code_of, expected, verdict_on

if TYPE_CHECKING:
    from collections.abc import Mapping

Q = "base_model.model.model.layers.0.self_attn.q_proj"
V = "base_model.model.model.layers.0.self_attn.v_proj"
CONFIG = json.dumps(adapter_config(job_spec())).encode()
GOOD_FILES = adapter_files(job_spec())
CHECKPOINT = {"status": "checkpoint", "stop_reason": "interrupted", "steps_done": 23}


def without(name: str) -> bytes:
    """The manifest does not list the member either."""
    spec = job_spec()
    listed = json.loads(GOOD_FILES["manifest.json"])
    listed["files"].pop(name)
    files = {key: data for key, data in GOOD_FILES.items() if key != name}
    assert spec.sha256() == listed["spec_sha256"]
    return zip_of({**files, "manifest.json": json.dumps(listed).encode()})


def with_manifest(text: bytes) -> bytes:
    return zip_of({**GOOD_FILES, "manifest.json": text})


def listed_otherwise(name: str, **changes: Any) -> dict[str, Any]:
    """A change of the manifest: one file is described by another size or hash."""
    files = json.loads(GOOD_FILES["manifest.json"])["files"]
    files[name] |= changes
    return {"files": files}


MANIFESTS = [
    ("none", zip_of({k: v for k, v in GOOD_FILES.items() if k != "manifest.json"}), "MANIFEST_MISSING"),
    ("not JSON", with_manifest(b"{"), "MANIFEST_INVALID"),
    ("a list", with_manifest(b"[]"), "MANIFEST_INVALID"),
    ("a byte order mark", with_manifest(b"\xef\xbb\xbf" + GOOD_FILES["manifest.json"]), "MANIFEST_INVALID"),
    ("latin-1", with_manifest(b'{"run_id": "\xe9"}'), "MANIFEST_INVALID"),
    ("half a character", with_manifest(rb'{"schema_version": 1, "run_id": "\ud800"}'), "MANIFEST_INVALID"),
    ("nested without end", with_manifest(b'{"a":' * 100_000), "MANIFEST_INVALID"),
    ("over 1 MiB", with_manifest(b" " * (1 << 20) + b"{}"), "MANIFEST_INVALID"),
    ("a number with 5000 digits", with_manifest(b'{"attempt": ' + b"1" * 5000 + b"}"), "MANIFEST_INVALID"),
    ("a text for a number", adapter_archive(manifest={"attempt": "1"}), "MANIFEST_INVALID"),
    ("NaN", adapter_archive(manifest={"metrics": {"first_loss": float("nan")}}), "MANIFEST_INVALID"),
    ("still running", adapter_archive(manifest={"status": "running"}), "MANIFEST_INVALID"),
    ("another run", adapter_archive(manifest={"run_id": "run-2"}), "MANIFEST_OTHER_RUN"),
    ("an earlier attempt", adapter_archive(manifest={"attempt": 2}), "MANIFEST_OTHER_ATTEMPT"),
    ("a checkpoint", adapter_archive(manifest=CHECKPOINT), "MANIFEST_INCOMPLETE"),
    ("a checkpoint called complete", adapter_archive(manifest={"steps_done": 23}), "MANIFEST_INCOMPLETE"),
    ("no step at all", adapter_archive(manifest={"steps_done": 0, "steps_total": 0}), "MANIFEST_INCOMPLETE"),
    ("out of time", adapter_archive(manifest={"stop_reason": "deadline"}), "MANIFEST_INCOMPLETE"),
    ("another dataset", adapter_archive(manifest={"dataset_sha256": "e" * 64}), "MANIFEST_DATASET"),
    ("another job", adapter_archive(manifest={"spec_sha256": "e" * 64}), "MANIFEST_SPEC"),
    (
        "another base",
        adapter_archive(manifest={"base": {"repository": "example/base", "revision": "main"}}),
        "MANIFEST_SPEC",
    ),
    ("a file it does not list", adapter_archive(manifest={"files": {}}), "MANIFEST_FILES"),
    ("another size", adapter_archive(manifest=listed_otherwise("README.md", size=1)), "MANIFEST_FILES"),
    (
        "another hash",
        adapter_archive(manifest=listed_otherwise("README.md", sha256="e" * 64)),
        "HASH_MEMBER",
    ),
    (
        "other weights of the same size",
        zip_of({**GOOD_FILES, "adapter_model.safetensors": safetensors(lora_tensors(b=0.75))}),
        "HASH_MEMBER",
    ),
]


def config(**changes: Any) -> bytes:
    return adapter_archive(config=changes)


CONFIGS = [
    ("none", without("adapter_config.json"), "CONFIG_MISSING"),
    ("not JSON", adapter_archive(config=b"r: 4"), "CONFIG_INVALID"),
    ("a key twice", adapter_archive(config=CONFIG[:-1] + b', "r": 4}'), "CONFIG_INVALID"),
    ("NaN", config(lora_alpha=float("nan")), "CONFIG_INVALID"),
    ("a number beyond floats", adapter_archive(config=CONFIG[:-1] + b', "x": 1e999}'), "CONFIG_INVALID"),
    ("another method", config(peft_type="IA3"), "CONFIG_TYPE"),
    ("another task", config(task_type="SEQ_CLS"), "CONFIG_TYPE"),
    ("another base", config(base_model_name_or_path="example/other"), "CONFIG_BASE"),
    ("a path as base", config(base_model_name_or_path="/workspace/models/base"), "CONFIG_BASE"),
    ("no base", config(base_model_name_or_path=None), "CONFIG_BASE"),
    ("another revision", config(revision="main"), "CONFIG_BASE"),
    ("no revision", config(revision=None), "CONFIG_BASE"),
    ("another rank", config(r=8), "CONFIG_RANK"),
    ("a rank of true", config(r=True), "CONFIG_RANK"),
    ("another alpha", config(lora_alpha=16), "CONFIG_ALPHA"),
    ("rslora", config(use_rslora=True), "CONFIG_VARIANT"),
    ("DoRA", config(use_dora=True), "CONFIG_VARIANT"),
    ("DoRA as a number", config(use_dora=0), "CONFIG_VARIANT"),
    ("no targets", config(target_modules=[]), "CONFIG_TARGETS"),
    ("a pattern of its own", config(target_modules=".*"), "CONFIG_TARGETS"),
    ("numbers as targets", config(target_modules=[1]), "CONFIG_TARGETS"),
    ("a pattern that runs", config(rank_pattern={"(a+)+b": 4}), "CONFIG_PATTERN"),
    ("a rank of none", config(rank_pattern={"q_proj": 0}), "CONFIG_PATTERN"),
    ("patterns in a list", config(rank_pattern=["q_proj"]), "CONFIG_PATTERN"),
    ("a stronger alpha", config(alpha_pattern={"q_proj": 800}), "CONFIG_PATTERN"),
    ("PiSSA", config(init_lora_weights="pissa_niter_4"), "CONFIG_INIT"),
    ("LoftQ", config(init_lora_weights="loftq"), "CONFIG_INIT"),
    ("an initialization of 1", config(init_lora_weights=1), "CONFIG_INIT"),
    ("biases", config(bias="all"), "CONFIG_BIAS"),
    ("biases of LoRA", config(lora_bias=True), "CONFIG_BIAS"),
    ("whole modules", config(modules_to_save=["lm_head"]), "CONFIG_EXTRAS"),
    ("some layers only", config(layers_to_transform=[0]), "CONFIG_EXTRAS"),
    ("new tokens", config(trainable_token_indices=[1, 2]), "CONFIG_EXTRAS"),
]


def header(text: str | bytes, data: bytes = bytes(64)) -> bytes:
    text = text if isinstance(text, bytes) else text.encode()
    return adapter_archive(weights=safetensors_of(text, data))


def described(dtype: Any = "F32", shape: Any = (4, 4), offsets: Any = (0, 64)) -> bytes:
    return header(json.dumps({"t": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}))


WEIGHTS = [
    ("none", without("adapter_model.safetensors"), "ST_MISSING"),
    ("empty", adapter_archive(weights=b""), "ST_HEADER"),
    ("an error page", adapter_archive(weights=b"<html>404 Not Found</html>"), "ST_HEADER"),
    ("a header over 16 MiB", adapter_archive(weights=struct.pack("<Q", 1 << 24) + b"{}"), "ST_HEADER"),
    ("a header longer than the file", adapter_archive(weights=struct.pack("<Q", 99) + b"{}"), "ST_SIZE"),
    ("not JSON", header("tensors"), "ST_HEADER"),
    ("a space before the brace", header(" {}"), "ST_HEADER"),
    ("a list", header("[]"), "ST_HEADER"),
    ("a tensor twice", header('{"t": 1, "t": 2}'), "ST_HEADER"),
    ("metadata that is none", header('{"__metadata__": {"a": 1}}'), "ST_HEADER"),
    ("a tensor without offsets", header('{"t": {"dtype": "F32", "shape": [4, 4]}}'), "ST_HEADER"),
    ("a tensor that is a number", header('{"t": 1}'), "ST_HEADER"),
    ("no tensor, 40 bytes", header('{"__metadata__":{"format":"pt"}}', b""), "ST_EMPTY"),
    ("a tensor of shape [0]", described(shape=[0], offsets=[0, 0]), "ST_EMPTY_TENSOR"),
    ("8 bits", described("F8_E4M3", offsets=[0, 16]), "ST_DTYPE"),
    ("integers", described("I32"), "ST_DTYPE"),
    ("doubles", described("F64", offsets=[0, 128]), "ST_DTYPE"),
    ("a type that is a list", described([]), "ST_DTYPE"),
    ("a negative size", described(shape=[-4, -4]), "ST_HEADER"),
    ("a size of true", described(shape=[True, 16]), "ST_HEADER"),
    ("three offsets", described(offsets=[0, 64, 64]), "ST_HEADER"),
    ("offsets for another shape", described(offsets=[0, 60]), "ST_OFFSETS"),
    ("offsets that go backwards", described(offsets=[64, 0]), "ST_OFFSETS"),
    ("a gap before the first tensor", described(offsets=[4, 68]), "ST_OFFSETS"),
    ("more bytes than tensors", described(shape=[2, 4], offsets=[0, 32]), "ST_SIZE"),
    ("cut by four bytes", adapter_archive(weights=safetensors(lora_tensors())[:-4]), "ST_SIZE"),
]


def tensors(changes: Mapping[str, RawTensor | None], spec: JobSpec | None = None, **kept: Any) -> bytes:
    """Sound tensors with some added, replaced or (None) left out."""
    merged: dict[str, RawTensor | None] = {**lora_tensors(**kept), **changes}
    return adapter_archive(
        spec, tensors={name: tensor for name, tensor in merged.items() if tensor is not None}
    )


def renamed(old: str, new: str) -> bytes:
    return adapter_archive(
        tensors={name.replace(old, new): tensor for name, tensor in lora_tensors().items()}
    )


MAGNITUDE = filled("F32", (8,), 1.0)
DORA = job_spec(use_dora=True)

TENSORS = [
    ("no prefix", renamed("base_model.model.", ""), "TENSOR_NAME"),
    ("another prefix", renamed("base_model.model.", "model."), "TENSOR_NAME"),
    ("compiled", renamed("base_model.model.", "base_model.model._orig_mod."), "TENSOR_NAME"),
    ("the adapter's name in it", renamed(".weight", ".default.weight"), "TENSOR_NAME"),
    ("an embedding and a layer", tensors({f"{Q}.lora_embedding_A": filled("F32", (4, 8))}), "TENSOR_PAIR"),
    ("a bias of lora_B", tensors({f"{Q}.lora_B.bias": MAGNITUDE}), "TENSOR_BIAS"),
    ("a bias of the base", tensors({f"{Q}.base_layer.bias": MAGNITUDE}), "TENSOR_BIAS"),
    ("a whole lm_head", tensors({"base_model.model.lm_head.weight": MAGNITUDE}), "VOCAB_RESIZED"),
    ("embeddings", tensors({"base_model.model.model.embed_tokens.weight": MAGNITUDE}), "VOCAB_RESIZED"),
    ("a copy of the base's weight", tensors({f"{Q}.base_layer.weight": MAGNITUDE}), "VOCAB_RESIZED"),
    ("a whole layer", tensors({"base_model.model.model.norm.weight": MAGNITUDE}), "TENSOR_NAME"),
    (
        "a second wrapper",
        renamed("base_model.model.", "base_model.model._fsdp_wrapped_module."),
        "TENSOR_NAME",
    ),
    ("sharded away", tensors({f"{Q}.lora_B.weight": RawTensor("F32", (0,), b"")}), "ST_EMPTY_TENSOR"),
    ("a name that is no text", tensors({"\ud800": MAGNITUDE}), "TENSOR_NAME"),
    ("another adapter's names", renamed("lora_", "vera_"), "NO_LORA_TENSORS"),
    ("no lora_A", tensors({f"{Q}.lora_A.weight": None}), "TENSOR_PAIR"),
    ("no lora_B", tensors({f"{Q}.lora_B.weight": None}), "TENSOR_PAIR"),
    ("three dimensions", tensors({f"{Q}.lora_A.weight": filled("F32", (4, 8, 1))}), "TENSOR_SHAPE"),
    ("another rank", tensors({}, rank=8), "TENSOR_RANK"),
    ("another rank in B", tensors({f"{Q}.lora_B.weight": filled("F32", (8, 2))}), "TENSOR_RANK"),
    ("turned around", tensors({f"{Q}.lora_A.weight": filled("F32", (8, 4))}), "TENSOR_RANK"),
    (
        "a rank pattern the tensors do not follow",
        adapter_archive(config={"rank_pattern": {"v_proj": 2}}),
        "TENSOR_RANK",
    ),
    ("a magnitude without DoRA", tensors({f"{Q}.lora_magnitude_vector": MAGNITUDE}), "TENSOR_DORA"),
    (
        "a module the config does not name",
        tensors(lora_tensors(("model.layers.0.self_attn.k_proj",))),
        "TENSOR_TARGET",
    ),
    ("an end that is not a whole name", renamed("q_proj", "xq_proj"), "TENSOR_TARGET"),
    (
        "experts of another rank",
        adapter_archive(
            config={"target_parameters": ["experts.down_proj"]},
            tensors=lora_tensors() | lora_tensors(("model.layers.0.experts",), rank=6),
        ),
        "TENSOR_RANK",
    ),
    (
        "every v_proj gone",
        tensors({f"{V}.lora_A.weight": None, f"{V}.lora_B.weight": None}),
        "COVERAGE",
    ),
]


def with_number(number: float, dtype: str = "F32") -> bytes:
    """One number in the last lora_B."""
    rest = encoded(dtype, 0.25) * 31
    return tensors(
        {f"{V}.lora_B.weight": RawTensor(dtype, (8, 4), rest + encoded(dtype, number))}, dtype=dtype
    )


VALUES = [
    *((f"NaN in {t}", with_number(float("nan"), t), "NOT_FINITE") for t in ("F32", "F16", "BF16")),
    *((f"infinity in {t}", with_number(float("inf"), t), "NOT_FINITE") for t in ("F32", "F16", "BF16")),
    *(
        (f"minus infinity in {t}", with_number(float("-inf"), t), "NOT_FINITE")
        for t in ("F32", "F16", "BF16")
    ),
    *((f"above 10000 in {t}", with_number(10_240, t), "MAGNITUDE") for t in ("F32", "F16", "BF16")),
    ("far below -10000", with_number(-3.4e38), "MAGNITUDE"),
    ("10000 and a bit", with_number(10_000.001), "MAGNITUDE"),
    (
        "NaN beside large numbers",
        tensors(
            {
                f"{V}.lora_B.weight": RawTensor(
                    "F32", (8, 4), encoded("F32", 1e9) * 31 + encoded("F32", float("nan"))
                )
            }
        ),
        "NOT_FINITE",
    ),
    ("every lora_B zero", tensors({}, b=0.0), "UNTRAINED"),
    ("every lora_B minus zero", tensors({}, b=-0.0), "UNTRAINED"),
    ("one lora_B zero", tensors({f"{V}.lora_B.weight": filled("F32", (8, 4), 0.0)}), "PARTLY_UNTRAINED"),
    ("one lora_A zero", tensors({f"{V}.lora_A.weight": filled("F32", (4, 8), 0.0)}), "PARTLY_UNTRAINED"),
    (
        "all zero",
        adapter_archive(tensors={name: filled("F32", t.shape, 0.0) for name, t in lora_tensors().items()}),
        "UNTRAINED",
    ),
]

BAD = [
    (f"{group}: {what}", data, code)
    for group, cases in {
        "manifest": MANIFESTS,
        "config": CONFIGS,
        "weights": WEIGHTS,
        "tensors": TENSORS,
        "values": VALUES,
    }.items()
    for what, data, code in cases
]


@pytest.mark.parametrize(("data", "code"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_refused(data: bytes, code: str) -> None:
    assert code_of(data) == code


@pytest.mark.parametrize(
    "changes",
    [
        {f"{Q}.lora_magnitude_vector": None},
        {f"{Q}.lora_magnitude_vector": filled("F32", (4,), 1.0)},
        {f"{Q}.lora_magnitude_vector": filled("F32", (8, 1), 1.0)},
    ],
    ids=["missing", "too short", "a matrix"],
)
def test_dora_needs_every_magnitude(changes: dict[str, RawTensor | None]) -> None:
    assert code_of(tensors(changes, DORA, dora=True), DORA) == "TENSOR_DORA"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("q_proj",), ["q_proj", "v_proj"]),
        (("q_proj", "v_proj", "k_proj"), ["q_proj", "v_proj"]),
        (".*_proj", ["q_proj", "v_proj"]),
        (("q_proj", "v_proj"), "all-linear"),
    ],
)
def test_targets_are_those_asked_for(asked: Any, found: Any) -> None:
    spec = job_spec(target_modules=asked)

    assert code_of(adapter_archive(spec, config={"target_modules": found}), spec) == "CONFIG_TARGETS"


def test_another_size_than_uploaded_is_seen_before_anything_else() -> None:
    data = adapter_archive()

    report = verify(BytesArchive(data[:-1]), expected(data=data))

    assert report.fault is not None
    assert report.fault.code == "ARCHIVE_SIZE"
    assert report.checks == ()


def test_another_archive_of_the_same_size_than_uploaded() -> None:
    data, other = (adapter_archive(manifest={"versions": {"peft": v}}) for v in ("0.21.1", "0.21.2"))

    report = verify(BytesArchive(other), expected(data=data))

    assert report.fault is not None
    assert report.fault.code == "HASH_ARCHIVE"
    assert report.archive == archive_digest(other)


def test_weights_that_the_archives_own_hash_proves_are_hashed_again_only_where_they_are_made() -> None:
    """The manifest inside lies about the weights' hash: nobody but their maker can have done that."""
    data = adapter_archive(manifest=listed_otherwise("adapter_model.safetensors", sha256="e" * 64))

    def code(**more: Any) -> str | None:
        report = verify(BytesArchive(data), Expected(spec=job_spec(), **more))
        return report.fault.code if report.fault else None

    assert code(archive=archive_digest(data)) is None
    assert code(archive=archive_digest(data), every_hash=True) == "HASH_MEMBER"
    assert code() == "HASH_MEMBER"


def test_a_source_that_ends_early_is_told_apart_from_a_crash() -> None:
    class Short(BytesArchive):
        def stream(self, offset: int, length: int) -> Any:
            yield from super().stream(offset, length - 30)

    report = verify(Short(adapter_archive()), expected())

    assert report.fault is not None
    assert report.fault.code == "ARCHIVE_SIZE"


def test_what_the_source_raises_comes_through() -> None:
    class Broken(BytesArchive):
        def stream(self, offset: int, length: int) -> Any:
            raise OSError(f"no bytes at {offset}, {length}")

    with pytest.raises(OSError, match="no bytes"):
        verify(Broken(adapter_archive()), expected())


def test_a_report_of_an_unsound_archive_tells_how_far_it_came() -> None:
    data = tensors({}, b=0.0)

    report = verdict_on(data)

    assert not report.sound
    assert report.checks == ("zip", "manifest", "config", "header", "tensors", "hashes")
    assert report.archive == archive_digest(data)
    assert report.fault is not None
    assert report.fault.message == "None of the 2 adapted modules was trained: all are zero."
    assert report.fault.fault_class is FaultClass.TRAINING


def test_the_run_is_compared_with_what_is_expected_not_with_the_job() -> None:
    wanted = Expected(run_id="run-2", attempt=1, spec=job_spec(), archive=None)

    report = verify(BytesArchive(adapter_archive()), wanted)

    assert report.fault is not None
    assert report.fault.code == "MANIFEST_OTHER_RUN"


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_class_and_a_mend(code: Code) -> None:
    fault = unsound(code, "what was seen").fault

    assert fault.code == code
    assert fault.mend.endswith(".")
