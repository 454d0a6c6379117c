"""The options of connections, named like the API's fields."""

from __future__ import annotations

from typing import Annotated

import typer

CREDENTIALS = "Credentials"

ConnectionId = Annotated[str, typer.Argument(metavar="CONNECTION", help="The connection's id.")]

Name = Annotated[str | None, typer.Option(help="What people call it.", show_default=False)]
Region = Annotated[
    str | None, typer.Option(metavar="REGION", help="For instance us-east-1.", show_default=False)
]
ImageId = Annotated[str | None, typer.Option(metavar="AMI", help="The GPU image, ami-….", show_default=False)]
SubnetIds = Annotated[
    list[str] | None,
    typer.Option(
        "--subnet-id",
        "--subnet-ids",
        metavar="SUBNET",
        help="A private subnet with outbound access; repeat it for more, in the order to try them.",
        show_default=False,
    ),
]
SecurityGroupId = Annotated[
    str | None, typer.Option(metavar="GROUP", help="Of the same VPC, sg-….", show_default=False)
]
KeyName = Annotated[
    str | None, typer.Option(help="An EC2 key pair, for recovery over SSH.", show_default=False)
]
InstanceProfileArn = Annotated[
    str | None,
    typer.Option(
        metavar="ARN",
        help="For recovery over Systems Manager: the profile's ARN, not the role's.",
        show_default=False,
    ),
]

WithoutKeyPair = Annotated[bool, typer.Option("--without-key-pair", help="Take the key pair away.")]
WithoutInstanceProfile = Annotated[
    bool, typer.Option("--without-instance-profile", help="Take the instance profile away.")
]

RoleArn = Annotated[
    str | None,
    typer.Option(
        metavar="ARN",
        help="A role of your account for Tensorant to assume, instead of keys; its name begins with tensorant-.",
        rich_help_panel=CREDENTIALS,
        show_default=False,
    ),
]
SameAccount = Annotated[
    bool,
    typer.Option(
        "--same-account",
        help="Machines in the deployment's own account, without keys. Platform admins only.",
        rich_help_panel=CREDENTIALS,
    ),
]
ManagedByPlatform = Annotated[
    bool,
    typer.Option(
        "--managed-by-platform",
        help="Owners may use it, and platform admins alone change it. Platform admins only.",
        rich_help_panel=CREDENTIALS,
    ),
]
ExpiresAt = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="When temporary keys end, as 2026-03-01T20:00:00Z; by default AWS_CREDENTIAL_EXPIRATION.",
        rich_help_panel=CREDENTIALS,
        show_default=False,
    ),
]

Bucket = Annotated[str | None, typer.Option(help="Its name.", show_default=False)]
Prefix = Annotated[str | None, typer.Option(help="Everything is kept under it.", show_default=False)]
AddressingStyle = Annotated[
    str | None,
    typer.Option(help="virtual or path; by default virtual on AWS, path elsewhere.", show_default=False),
]
EndpointUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Of a store that speaks S3's API (R2, MinIO, B2, Wasabi, Ceph): public HTTPS. Left out: AWS S3.",
        show_default=False,
    ),
]
Datacenter = Annotated[
    str | None, typer.Option(help="The network volume's, for instance EU-RO-1.", show_default=False)
]
VolumeId = Annotated[str | None, typer.Option(help="The network volume's id.", show_default=False)]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
