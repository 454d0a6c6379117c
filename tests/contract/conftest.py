"""AWS in memory, for the adapters that need no running cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import boto3
import pytest
from moto import mock_aws


@pytest.fixture(scope="module")
def moto_client() -> Iterator[Callable[[str], Any]]:
    """Makes boto3 clients of an account that is empty at the start of the module."""
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield cache(boto3.client)
