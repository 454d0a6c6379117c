"""What a connection lets a run ask for, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorant.domain.connections import AwsSettings, Catalog, Connection
from tensorant.domain.machines import Candidate


def offered(
    instance_types: Sequence[str], connection: Connection, catalog: Catalog | None
) -> Iterator[Candidate]:
    """The person's types in their order, each in the connection's subnets in theirs.

    Left out is a subnet whose zone is known not to offer the type; of what the last check did not see,
    the provider has the word.
    """
    settings = connection.settings
    if not isinstance(settings, AwsSettings):
        return
    for instance_type in instance_types:
        known = catalog.find(instance_type) if catalog else None
        zones = known.zones if known else ()
        for subnet_id in settings.subnet_ids:
            zone = connection.subnet_zones.get(subnet_id)
            if zone is None or not zones or zone in zones:
                yield Candidate(instance_type=instance_type, subnet_id=subnet_id)
