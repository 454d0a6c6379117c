"""What a check says of key pair and instance profile, as far as the policy lets it look.

The guide's policy holds neither ec2:DescribeKeyPairs nor iam:GetInstanceProfile: a launch needs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorant.adapters.ec2.check_items import Fault, failed, item
from tensorant.domain.connections import AwsSettings, CheckItem

PROFILE_MEND = "Enter the ARN of an instance profile of this account (not the role's)."


def key_pair(settings: AwsSettings, *, exists: bool) -> CheckItem:
    faults = [
        failed(
            f"There is no key pair {settings.key_name} in {settings.region}.",
            "Check its exact name; key pairs belong to one region.",
        )
    ]
    return item("key_pair", () if exists else faults, good=f"{settings.key_name}")


def profile_of_other_account(settings: AwsSettings, account_id: str) -> CheckItem | None:
    """Told by the ARN alone; None if it is of the account."""
    owner = (settings.instance_profile_arn or "").split(":")[4:5]
    if owner == [account_id]:
        return None
    fault = failed(
        f"{settings.instance_profile_arn} is not of account {account_id}, whose credentials these are.",
        PROFILE_MEND,
    )
    return item("instance_profile", [fault], good="")


def instance_profile(settings: AwsSettings, found: Mapping[str, Any] | None) -> CheckItem:
    """The profile as IAM shows it; None if there is none of that name."""
    arn = settings.instance_profile_arn
    faults: list[Fault] = []
    if found is None or found.get("Arn") != arn:
        faults.append(failed(f"There is no instance profile {arn}.", PROFILE_MEND))
    elif not found.get("Roles"):
        faults.append(failed(f"{arn} holds no role.", "Add the role that the machine is to use."))
    return item("instance_profile", faults, good=f"{arn}")


def not_checked(name: str, action: str) -> CheckItem:
    """Not a fault: who follows the guide to the letter meets it."""
    return item(
        name,
        (),
        good=f"Not checked: the policy does not allow {action}. It is checked when a run is launched.",
    )
