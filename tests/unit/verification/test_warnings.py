"""What a sound adapter's report warns of."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant.contract import AdapterNorms
from tests.support.archives import adapter_archive, file_digest, job_spec, lora_tensors
from tests.support.archives import adapter_files as files_of
from tests.support.verdicts import verdict_on

NORMS = {
    "lora_a": 4.0,
    "lora_b": 2.0,
    "update": 1.5,
    "largest_update": 1.0,
    "largest_module": "model.layers.0.self_attn.q_proj",
    "largest_value": 0.5,
}


def warned(manifest: dict[str, Any] | None = None, **lora: Any) -> tuple[str, ...]:
    spec = job_spec(**lora)
    report = verdict_on(adapter_archive(spec, manifest=manifest), spec)
    assert report.fault is None
    return report.warnings


@pytest.mark.parametrize("rank", [1, 8, 16])
def test_a_rank_that_servers_take_by_default_is_not_mentioned(rank: int) -> None:
    assert warned(rank=rank) == ()


@pytest.mark.parametrize(("rank", "flag"), [(17, 32), (32, 32), (64, 64), (65, 128), (256, 256)])
def test_a_higher_rank_needs_an_option_of_the_server(rank: int, flag: int) -> None:
    assert warned(rank=rank) == (
        f"Rank {rank} is above vLLM's default of 16: serve it with --max-lora-rank {flag}.",
    )


def test_a_rank_above_all_servers() -> None:
    spec = job_spec()
    data = adapter_archive(
        spec,
        config={"rank_pattern": {"v_proj": 520}},
        tensors=lora_tensors(("l.q_proj",)) | lora_tensors(("l.v_proj",), rank=520),
    )

    assert verdict_on(data, spec).warnings == ("Rank 520 is above what vLLM can serve (512).",)


def test_dora_is_not_served_everywhere() -> None:
    assert warned(use_dora=True) == (
        "vLLM does not serve DoRA adapters: merge it into the base model first.",
    )


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (5.0, 0.5, ()),
        (5.0, 6.125, ("The loss did not fall: 5 at the first step, 6.12 at the end.",)),
        (None, 6.0, ()),
    ],
)
def test_a_loss_that_did_not_fall(first: float | None, last: float, told: tuple[str, ...]) -> None:
    assert warned({"metrics": {"first_loss": first, "last_loss": last}}) == told


def test_the_report_has_sizes_hashes_and_the_trainers_norms() -> None:
    spec = job_spec()
    report = verdict_on(adapter_archive(spec, manifest={"norms": NORMS}), spec)

    assert report.norms == AdapterNorms.model_validate(NORMS)
    files = files_of(spec, manifest={"norms": NORMS})
    assert report.files == {name: file_digest(data) for name, data in files.items()}
