"""What EC2 does not say of a GPU, or says wrong."""

from __future__ import annotations

import pytest

from tensorant.adapters.ec2.gpus import is_older_than_ampere, memory_mib


@pytest.mark.parametrize(
    "name", ["K80", "K520", "M60", "P100", "V100", "T4", "T4g", "Tesla T4", "Quadro RTX 8000"]
)
def test_kepler_to_turing_are_older_than_ampere(name: str) -> None:
    assert is_older_than_ampere(name)


@pytest.mark.parametrize(
    "name",
    ["A10G", "A100", "L4", "L40S", "H100", "H200", "B200", "RTX PRO 4500", "RTX PRO Server 6000", "R300"],
)
def test_ampere_and_what_came_after_it_are_not_nor_is_a_name_to_come(name: str) -> None:
    assert not is_older_than_ampere(name)


@pytest.mark.parametrize(
    ("name", "reported", "real"),
    [
        ("L4", 22888, 24576),
        ("L4", 24576, 24576),
        ("L4", 24000, 24576),
        ("L4", 11444, 11444),
        ("A10G", 22888, 24576),
        ("L40S", 45776, 49152),
        ("H100", 81920, 81920),
        ("RTX PRO 4500", 32768, 32768),
        ("R300", 300000, 300000),
    ],
)
def test_a_memory_is_the_same_in_each_vintage_of_the_api(name: str, reported: int, real: int) -> None:
    assert memory_mib(name, reported) == real
