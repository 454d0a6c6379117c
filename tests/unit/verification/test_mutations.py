"""Whatever happens to a sound archive's bytes, the verifier answers, and never calls a changed adapter sound."""

from __future__ import annotations

import zipfile
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorant.verification import verify
from tests.support.archives import adapter_archive
from tests.support.verdicts import BytesArchive, expected

GOOD = {
    "stored": adapter_archive(),
    "deflated": adapter_archive(compression=zipfile.ZIP_DEFLATED),
}
positions = st.floats(0, 1, exclude_max=True)
"""As parts of the archive's length."""
junk = st.one_of(
    st.binary(min_size=1, max_size=8), st.sampled_from([b"PK\x05\x06", b"PK\x01\x02", b"\xff" * 4])
)


@st.composite
def mutated(draw: st.DrawFn, good: bytes) -> bytes:
    """One to three changes: bytes overwritten, inserted, removed, moved or cut off; half of them near the end."""
    data = good
    for _ in range(draw(st.integers(1, 3))):
        at = int(draw(positions) * len(data))
        if draw(st.booleans()):
            at = max(0, len(data) - 1 - int(draw(positions) * 320))
        piece, length = draw(junk), draw(st.integers(1, 40))
        match draw(st.sampled_from(["overwrite", "insert", "remove", "repeat", "cut"])):
            case "overwrite":
                data = data[:at] + piece + data[at + len(piece) :]
            case "insert":
                data = data[:at] + piece + data[at:]
            case "remove":
                data = data[:at] + data[at + length :]
            case "repeat":
                data = data[:at] + data[at : at + length] + data[at:]
            case _:
                data = data[:at]
    return data


def contents(data: bytes) -> dict[str, bytes]:
    """The files as an ordinary reader sees them."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("kind", GOOD)
def test_mutations(kind: str) -> None:
    good = GOOD[kind]

    @settings(max_examples=250, deadline=None)
    @given(mutated(good))
    def holds(data: bytes) -> None:
        if verify(BytesArchive(data), expected()).sound:
            assert contents(data) == contents(good)
        assert verify(BytesArchive(data), expected(data=good)).sound is (data == good)

    holds()


@pytest.mark.parametrize("kind", GOOD)
def test_every_single_byte(kind: str) -> None:
    """Most bytes matter; those that do not are dates, versions and permissions of the zip's own headers."""
    good = GOOD[kind]
    for at in range(len(good)):
        data = good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :]
        if verify(BytesArchive(data), expected()).sound:
            assert contents(data) == contents(good)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise(data: bytes) -> None:
    assert not verify(BytesArchive(data), expected()).sound
