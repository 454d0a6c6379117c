"""The tokens of a machine."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from tensorant.domain.errors import Unauthenticated
from tensorant.domain.tokens import ONE_TIME, SESSION, Claim, TokenMint, claim, require_same
from tests.support.worlds import FIRST_SUBNET, G5, Candidate, machine

MINT = TokenMint(b"deployment-key")
NONCE = "n" * 32
DIGEST = "0123456789abcdef" * 4


def test_a_one_time_token_is_an_hmac_of_the_ask() -> None:
    digest = hmac.new(b"deployment-key", f"tt1/{machine().client_token}".encode(), hashlib.sha256).hexdigest()

    assert MINT.one_time(machine()) == f"tt1.run-1.1.{digest}"


def test_the_same_ask_gives_the_same_token_and_another_ask_another() -> None:
    other = machine(candidate=Candidate(instance_type=G5, subnet_id=FIRST_SUBNET))

    assert MINT.one_time(machine()) == MINT.one_time(machine(nonce="x", version=7))
    assert len({MINT.one_time(each) for each in (machine(), machine(attempt=2), other)}) == 3


def test_a_session_follows_from_ask_and_nonce() -> None:
    assert MINT.session(machine(), NONCE) == MINT.session(machine(), NONCE)
    assert MINT.session(machine(), NONCE) != MINT.session(machine(), "m" * 32)
    assert MINT.session(machine(), NONCE) != MINT.session(machine(attempt=2), NONCE)


def test_another_key_makes_other_tokens() -> None:
    assert TokenMint(b"other").one_time(machine()) != MINT.one_time(machine())


def test_a_mint_does_not_show_its_key() -> None:
    assert "deployment-key" not in repr(MINT)


def test_a_token_claims_whose_it_is() -> None:
    assert claim(MINT.one_time(machine()), kind=ONE_TIME) == Claim("tt1", "run-1", 1)
    assert claim(MINT.session(machine(attempt=3), NONCE), kind=SESSION) == Claim("ts1", "run-1", 3)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "tt1",
        "tt1.run-1.1",
        "tt1.run-1.one.abc",
        "tt1.run-1.-1.abc",
        "tt1.run-1.1.abc.d",
        "ts1.run-1.1.abc",
        f"ts1.run-1.1.{DIGEST}",
        f"tt1.run-1.1.{DIGEST}0",
        f"tt1.run-1.1.{DIGEST[1:]}",
        f"tt1.run-1.1.{DIGEST[1:]}F",
        f"tt1.run-1.1.{DIGEST}\n",
        f" tt1.run-1.1.{DIGEST}",
        f"tt1.run-1.-1.{DIGEST}",
        f"tt1.run-1..{DIGEST}",
        f"tt1.run-1.\u0661.{DIGEST}",
        f"tt1.run-1.1234567.{DIGEST}",
        f"tt1.run#1.1.{DIGEST}",
        f"tt1..1.{DIGEST}",
        f"tt1.{'r' * 65}.1.{DIGEST}",
    ],
)
def test_what_is_not_shaped_like_a_one_time_token_is_refused(token: str) -> None:
    with pytest.raises(Unauthenticated):
        claim(token, kind=ONE_TIME)


def test_the_longest_shape_that_is_one() -> None:
    token = f"tt1.{'r' * 64}.123456.{DIGEST}"

    assert claim(token, kind=ONE_TIME) == Claim("tt1", "r" * 64, 123456)


def test_only_the_same_token_passes() -> None:
    require_same("tt1.a.1.é", "tt1.a.1.é")
    with pytest.raises(Unauthenticated):
        require_same("tt1.a.1.e", "tt1.a.1.é")
