"""Opening a connection to EC2 with its credentials."""

from __future__ import annotations

from dataclasses import dataclass

import boto3

from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.compute import Ec2Compute
from tensorant.domain.connections import AwsSettings, Connection
from tensorant.domain.errors import Configuration
from tensorant.ports import Compute, Secrets


@dataclass(frozen=True)
class Ec2Computes:
    """Opens a connection with its own credentials."""

    secrets: Secrets

    def open(self, connection: Connection) -> Compute:
        if not isinstance(connection.settings, AwsSettings):
            raise Configuration("not_aws", "The connection is not to AWS.", mend="Choose an AWS connection.")
        secret = self.secrets.read(connection.id)
        session = boto3.Session(
            aws_access_key_id=secret["access_key_id"],
            aws_secret_access_key=secret["secret_access_key"],
            aws_session_token=secret.get("session_token"),
            region_name=connection.settings.region,
        )
        return Ec2Compute(Clients(session, connection.settings.region))
