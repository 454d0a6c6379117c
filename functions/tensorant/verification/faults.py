"""Every fault the verifier can name: its code, who can mend it, and how.

Codes are stable: they are stored in verdicts, shown to users and compared by the release rule.
"""

from __future__ import annotations

from enum import StrEnum

from tensorant.contract import Fault, FaultClass


class Code(StrEnum):
    """In the order of the checks."""

    ARCHIVE_SIZE = "ARCHIVE_SIZE"

    ZIP_NOT_ZIP = "ZIP_NOT_ZIP"
    ZIP_TRUNCATED = "ZIP_TRUNCATED"
    ZIP_TRAILING = "ZIP_TRAILING"
    ZIP_COMMENT = "ZIP_COMMENT"
    ZIP_DISKS = "ZIP_DISKS"
    ZIP_ZIP64 = "ZIP_ZIP64"
    ZIP_ENTRIES = "ZIP_ENTRIES"
    ZIP_DIRECTORY = "ZIP_DIRECTORY"
    ZIP_EXTRA = "ZIP_EXTRA"
    ZIP_NAMES = "ZIP_NAMES"
    ZIP_PICKLE = "ZIP_PICKLE"
    ZIP_UNEXPECTED_FILE = "ZIP_UNEXPECTED_FILE"
    ZIP_DUPLICATE = "ZIP_DUPLICATE"
    ZIP_NOT_REGULAR = "ZIP_NOT_REGULAR"
    ZIP_ENCRYPTED = "ZIP_ENCRYPTED"
    ZIP_METHOD = "ZIP_METHOD"
    ZIP_RATIO = "ZIP_RATIO"
    ZIP_TOO_LARGE = "ZIP_TOO_LARGE"
    ZIP_LOCAL = "ZIP_LOCAL"
    ZIP_GAPS = "ZIP_GAPS"
    ZIP_DEFLATE = "ZIP_DEFLATE"
    ZIP_CRC = "ZIP_CRC"

    MANIFEST_MISSING = "MANIFEST_MISSING"
    MANIFEST_INVALID = "MANIFEST_INVALID"
    MANIFEST_OTHER_RUN = "MANIFEST_OTHER_RUN"
    MANIFEST_OTHER_ATTEMPT = "MANIFEST_OTHER_ATTEMPT"
    MANIFEST_INCOMPLETE = "MANIFEST_INCOMPLETE"
    MANIFEST_SPEC = "MANIFEST_SPEC"
    MANIFEST_DATASET = "MANIFEST_DATASET"
    MANIFEST_FILES = "MANIFEST_FILES"

    CONFIG_MISSING = "CONFIG_MISSING"
    CONFIG_INVALID = "CONFIG_INVALID"
    CONFIG_TYPE = "CONFIG_TYPE"
    CONFIG_BASE = "CONFIG_BASE"
    CONFIG_RANK = "CONFIG_RANK"
    CONFIG_ALPHA = "CONFIG_ALPHA"
    CONFIG_VARIANT = "CONFIG_VARIANT"
    CONFIG_TARGETS = "CONFIG_TARGETS"
    CONFIG_PATTERN = "CONFIG_PATTERN"
    CONFIG_INIT = "CONFIG_INIT"
    CONFIG_BIAS = "CONFIG_BIAS"
    CONFIG_EXTRAS = "CONFIG_EXTRAS"

    ST_MISSING = "ST_MISSING"
    ST_HEADER = "ST_HEADER"
    ST_SIZE = "ST_SIZE"
    ST_OFFSETS = "ST_OFFSETS"
    ST_DTYPE = "ST_DTYPE"
    ST_EMPTY = "ST_EMPTY"
    ST_EMPTY_TENSOR = "ST_EMPTY_TENSOR"

    TENSOR_NAME = "TENSOR_NAME"
    NO_LORA_TENSORS = "NO_LORA_TENSORS"
    TENSOR_PAIR = "TENSOR_PAIR"
    TENSOR_SHAPE = "TENSOR_SHAPE"
    TENSOR_RANK = "TENSOR_RANK"
    TENSOR_DORA = "TENSOR_DORA"
    TENSOR_BIAS = "TENSOR_BIAS"
    TENSOR_EXTRA = "TENSOR_EXTRA"
    TENSOR_TARGET = "TENSOR_TARGET"
    VOCAB_RESIZED = "VOCAB_RESIZED"
    NOT_IN_BASE = "NOT_IN_BASE"
    BASE_SHAPE = "BASE_SHAPE"
    COVERAGE = "COVERAGE"

    HASH_MEMBER = "HASH_MEMBER"
    HASH_ARCHIVE = "HASH_ARCHIVE"

    NOT_FINITE = "NOT_FINITE"
    MAGNITUDE = "MAGNITUDE"
    UNTRAINED = "UNTRAINED"
    PARTLY_UNTRAINED = "PARTLY_UNTRAINED"


class Unsound(Exception):
    """A verdict on its way up, not an error of ours: ends the examination; `verify` alone catches it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.code}: {fault.message}")
        self.fault = fault


def unsound(code: Code, message: str) -> Unsound:
    """The fault ready to raise; class and mend follow from the code."""
    fault_class, mend = _RULES[code]
    return Unsound(Fault(code=code.value, fault_class=fault_class, message=message, mend=mend))


def shown(value: object, limit: int = 120) -> str:
    """A value out of an archive, made fit to be shown: ASCII, quoted if text, cut at `limit` characters."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _rules() -> dict[Code, tuple[FaultClass, str]]:
    rules = dict.fromkeys(_REPACK, (FaultClass.TRANSPORT, _REPACK_MEND))
    rules |= dict.fromkeys(_UPLOAD, (FaultClass.TRANSPORT, _UPLOAD_MEND))
    rules |= dict.fromkeys(_TRAIN, (FaultClass.TRAINING, _TRAIN_MEND))
    return rules | _OWN_MENDS


_UPLOAD_MEND = "Upload the archive again from the machine that made it."
_UPLOAD = (
    Code.ARCHIVE_SIZE,
    Code.ZIP_NOT_ZIP,
    Code.ZIP_TRUNCATED,
    Code.ZIP_TRAILING,
    Code.ZIP_DEFLATE,
    Code.ZIP_CRC,
    Code.HASH_ARCHIVE,
)

_REPACK_MEND = "Upload the trainer's own adapter.zip, byte for byte, instead of one packed by other means."
_REPACK = (
    Code.ZIP_COMMENT,
    Code.ZIP_DISKS,
    Code.ZIP_ZIP64,
    Code.ZIP_ENTRIES,
    Code.ZIP_DIRECTORY,
    Code.ZIP_EXTRA,
    Code.ZIP_NAMES,
    Code.ZIP_DUPLICATE,
    Code.ZIP_NOT_REGULAR,
    Code.ZIP_ENCRYPTED,
    Code.ZIP_METHOD,
    Code.ZIP_RATIO,
    Code.ZIP_LOCAL,
    Code.ZIP_GAPS,
    Code.MANIFEST_MISSING,
    Code.MANIFEST_INVALID,
    Code.MANIFEST_FILES,
    Code.CONFIG_MISSING,
    Code.ST_MISSING,
    Code.HASH_MEMBER,
)

_TRAIN_MEND = "Train again: this adapter does not hold what the run asked for."
_TRAIN = (
    Code.MANIFEST_SPEC,
    Code.MANIFEST_DATASET,
    Code.CONFIG_INVALID,
    Code.CONFIG_TYPE,
    Code.CONFIG_BASE,
    Code.CONFIG_RANK,
    Code.CONFIG_ALPHA,
    Code.CONFIG_VARIANT,
    Code.CONFIG_TARGETS,
    Code.CONFIG_PATTERN,
    Code.ST_HEADER,
    Code.ST_SIZE,
    Code.ST_OFFSETS,
    Code.TENSOR_PAIR,
    Code.TENSOR_SHAPE,
    Code.TENSOR_RANK,
    Code.TENSOR_DORA,
    Code.TENSOR_EXTRA,
    Code.TENSOR_TARGET,
    Code.NOT_IN_BASE,
    Code.BASE_SHAPE,
    Code.COVERAGE,
)

_OWN_MENDS: dict[Code, tuple[FaultClass, str]] = {
    Code.ZIP_PICKLE: (
        FaultClass.POLICY,
        "Save the adapter as adapter_model.safetensors and leave pickled files out: loading one can run any code.",
    ),
    Code.ZIP_UNEXPECTED_FILE: (
        FaultClass.POLICY,
        "Keep the adapter, its manifest, README.md and tokenizer files, and leave everything else out.",
    ),
    Code.ZIP_TOO_LARGE: (FaultClass.POLICY, "Train fewer modules or a lower rank, and save in 16 bits."),
    Code.MANIFEST_OTHER_RUN: (FaultClass.TRANSPORT, "Upload the archive of this run; this one is another's."),
    Code.MANIFEST_OTHER_ATTEMPT: (
        FaultClass.TRANSPORT,
        "Upload the archive of this attempt; this one was made by another machine.",
    ),
    Code.MANIFEST_INCOMPLETE: (
        FaultClass.TRAINING,
        "Resume from this checkpoint or train again; a checkpoint is not a finished adapter.",
    ),
    Code.CONFIG_INIT: (
        FaultClass.POLICY,
        "Choose an initialization that leaves the base model as it is (true, gaussian, orthogonal or eva).",
    ),
    Code.CONFIG_BIAS: (
        FaultClass.POLICY,
        "Train with bias 'none', since all else changes the base model, and with lora_bias only if the run asks for it.",
    ),
    Code.CONFIG_EXTRAS: (
        FaultClass.POLICY,
        "Train without the extra that the message names, or ask for it in the run (modules_to_save).",
    ),
    Code.ST_DTYPE: (FaultClass.TRAINING, "Save the adapter as float32, float16 or bfloat16."),
    Code.ST_EMPTY: (
        FaultClass.TRAINING,
        "Train again and gather the weights before saving; sharded training saves empty adapters.",
    ),
    Code.ST_EMPTY_TENSOR: (
        FaultClass.TRAINING,
        "Train again and gather the weights before saving; sharded training saves empty tensors.",
    ),
    Code.TENSOR_NAME: (
        FaultClass.TRAINING,
        "Save the PEFT model itself with save_pretrained, not a compiled, wrapped or renamed copy.",
    ),
    Code.TENSOR_BIAS: (
        FaultClass.POLICY,
        "Train with bias 'none', and with lora_bias exactly if the run asks for it.",
    ),
    Code.VOCAB_RESIZED: (
        FaultClass.POLICY,
        "Train with the base model's own vocabulary, saved with save_embedding_layers=False, or ask for modules_to_save.",
    ),
    Code.NO_LORA_TENSORS: (
        FaultClass.TRAINING,
        "Save the PEFT model with save_pretrained under the adapter name 'default'.",
    ),
    Code.NOT_FINITE: (
        FaultClass.TRAINING,
        "Train again with a lower learning rate, and check the base model for NaN.",
    ),
    Code.MAGNITUDE: (
        FaultClass.TRAINING,
        "Train again with a lower learning rate: numbers this large only come from a training that ran away.",
    ),
    Code.UNTRAINED: (
        FaultClass.TRAINING,
        "Train again with rows that have answers to learn from and with more steps than warm-up.",
    ),
    Code.PARTLY_UNTRAINED: (
        FaultClass.TRAINING,
        "Train again; with gradient checkpointing, let gradients reach every layer (non-reentrant).",
    ),
}

_RULES = _rules()
