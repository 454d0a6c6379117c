"""Sessions that sign requests with somebody's credentials. What they read about AWS's services is read once."""

from __future__ import annotations

from functools import cache

import boto3
import botocore.session
from botocore.credentials import CredentialProvider, CredentialResolver, DeferredRefreshableCredentials
from botocore.loaders import Loader, create_loader


@cache
def _loader() -> Loader:
    """It keeps what it has parsed: reading the model of EC2 takes longer than any request."""
    return create_loader()


def new_session() -> botocore.session.Session:
    """With the process's own credentials, unless it is given others."""
    session = botocore.session.Session()
    session.register_component("data_loader", _loader())
    return session


def signed_by_us(region: str) -> boto3.Session:
    return boto3.Session(botocore_session=new_session(), region_name=region)


def signed_with_keys(
    access_key_id: str, secret_access_key: str, session_token: str | None, region: str
) -> boto3.Session:
    session = new_session()
    session.set_credentials(access_key_id, secret_access_key, session_token)
    return boto3.Session(botocore_session=session, region_name=region)


def signed_with(credentials: DeferredRefreshableCredentials, region: str) -> boto3.Session:
    """With credentials that renew themselves when a request needs them."""
    session = new_session()
    session.register_component("credential_provider", CredentialResolver(providers=[_Given(credentials)]))
    return boto3.Session(botocore_session=session, region_name=region)


class _Given(CredentialProvider):
    """Hands a session credentials that exist already."""

    METHOD = "tensorant-role"

    def __init__(self, credentials: DeferredRefreshableCredentials) -> None:
        super().__init__()
        self._credentials = credentials

    def load(self) -> DeferredRefreshableCredentials:
        return self._credentials
