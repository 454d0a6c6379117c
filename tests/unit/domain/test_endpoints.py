"""Which endpoints may be named, and which addresses may be connected to."""

from __future__ import annotations

import pytest

from tensorant.domain.endpoints import endpoint, forbidden
from tensorant.domain.errors import Invalid


@pytest.mark.parametrize(
    ("entered", "kept"),
    [
        ("https://abc123.r2.cloudflarestorage.com", "https://abc123.r2.cloudflarestorage.com"),
        (" https://S3.EU-central-003.BackblazeB2.com/ ", "https://s3.eu-central-003.backblazeb2.com"),
        ("https://minio.example.com:9000", "https://minio.example.com:9000"),
        ("https://ref.supabase.co/storage/v1/s3/", "https://ref.supabase.co/storage/v1/s3"),
        ("https://storage.example.com.", "https://storage.example.com"),
        ("https://8.8.8.8", "https://8.8.8.8"),
        ("https://[2606:4700::1111]:9000", "https://[2606:4700::1111]:9000"),
    ],
)
def test_a_public_https_address_is_kept(entered: str, kept: str) -> None:
    assert endpoint(entered) == kept


@pytest.mark.parametrize(
    "entered",
    [
        "",
        "s3.example.com",
        "http://s3.example.com",
        "ftp://s3.example.com",
        "https://",
        "https:///bucket",
        "https://s3.example.com:0",
        "https://s3.example.com:99999",
        "https://s3.example.com:port",
        "https://[::1",
        "https://user@s3.example.com",
        "https://user:password@s3.example.com",
        "https://s3.example.com?x=1",
        "https://s3.example.com#part",
        "https://s3.example.com\\@169.254.169.254",
        "https://s3.exam\nple.com",
        "https://s3 .example.com",
        "https://speicher.beispiél.de",
        "https://-.example.com",
        "https://minio",
        "https://localhost",
        "https://minio.localhost",
        "https://nas.local",
        "https://s3.corp.internal",
        "https://127.0.0.1",
        "https://10.0.0.7:9000",
        "https://192.168.1.1",
        "https://169.254.169.254",
        "https://[::1]",
        "https://[::ffff:10.0.0.1]",
        "https://[fd00:ec2::254]",
        "https://127.1",
        "https://2130706433",
        "https://0x7f000001",
        "https://0x7f.1",
    ],
)
def test_any_other_is_refused_and_never_repeated(entered: str) -> None:
    with pytest.raises(Invalid) as caught:
        endpoint(entered)

    assert caught.value.field == "endpoint_url"
    assert caught.value.mend
    assert "password" not in caught.value.message or "a password" in caught.value.message
    assert "example.com" not in caught.value.message


@pytest.mark.parametrize("entered", ["http://minio:9000", "https://10.0.0.7:9000", "http://127.0.0.1:9000"])
def test_a_deployment_may_allow_inner_addresses(entered: str) -> None:
    assert endpoint(entered, private_allowed=True) == entered


@pytest.mark.parametrize(
    "entered",
    ["http://169.254.169.254", "http://[fd00:ec2::254]", "http://user:pass@minio:9000", "ftp://minio"],
)
def test_metadata_and_credentials_stay_out_even_then(entered: str) -> None:
    with pytest.raises(Invalid):
        endpoint(entered, private_allowed=True)


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert forbidden(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "127.0.0.1",
        "127.9.9.9",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",  # carrier-grade NAT
        "169.254.169.254",
        "192.0.2.1",  # documentation
        "198.18.0.1",  # benchmarks
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::10.0.0.1",
        "64:ff9b::a00:1",  # NAT64 of 10.0.0.1
        "64:ff9b::a9fe:a9fe",  # NAT64 of 169.254.169.254
        "2002:a00:1::1",  # 6to4 of 10.0.0.1
    ],
)
def test_no_other_address_is(address: str) -> None:
    assert forbidden(address)


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe"])
def test_metadata_is_never_allowed(address: str) -> None:
    assert forbidden(address, private_allowed=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "fc00::1", "::1"])
def test_inner_addresses_are_where_the_deployment_allows_them(address: str) -> None:
    assert forbidden(address, private_allowed=True) is None
