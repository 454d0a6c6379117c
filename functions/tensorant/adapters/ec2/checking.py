"""A connection's check: looks at everything that a launch will need, and starts nothing.

What can't be read fails its own item, and hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from tensorant.adapters.ec2 import catalog, checks, network_checks, recovery_checks
from tensorant.adapters.ec2.check_items import FAILED, failed, item, unread
from tensorant.adapters.ec2.clients import Clients
from tensorant.adapters.ec2.errors import code_of, translated
from tensorant.adapters.ec2.pricing import PRICING_REGION
from tensorant.domain.connections import AwsSettings, CheckItem, CredentialKind, GpuType, ImageFacts
from tensorant.domain.errors import DOUBTFUL, Permission, ProviderError
from tensorant.ports import ComputeCheck

Found = TypeVar("Found")
Described = Mapping[str, Any]

PRICES_MEND = (
    f"Allow pricing:GetProducts in {PRICING_REGION}: the Pricing API is called there even when the GPUs run "
    "elsewhere, and an account policy that blocks that region keeps prices unknown."
)
SAME_ACCOUNT_MEND = (
    "Tensorant's functions have no rights to EC2 in their own account unless it is deployed with the context "
    "sameAccountCompute=true."
)


def check(clients: Clients, settings: AwsSettings) -> ComputeCheck:
    """What was seen, item by item. Raises only what leaves the answer open.

    With a role that may be anybody's nothing is looked at: who named it may have no business in its account.
    """
    who = _read(clients.identity, "read the account's id")
    if isinstance(who, ProviderError):
        return ComputeCheck(items=(unread("credentials", who),), account_id=None, image=None)
    role = tuple(_role(clients))
    seen = (checks.credentials(who), *role)
    if any(each.verdict is FAILED for each in role):
        return ComputeCheck(items=seen, account_id=who.account_id, image=None)
    return _Check(clients, settings, who.account_id).result(seen)


def _role(clients: Clients) -> Iterator[CheckItem]:
    assumed = clients.role
    if assumed is None:
        return
    open_to_anybody = _read(assumed.open_without_external_id, "try the role without its external id")
    if isinstance(open_to_anybody, ProviderError):
        yield unread("role", open_to_anybody)
    else:
        yield checks.role(assumed.role.arn, assumed.role.external_id, open_to_anybody=open_to_anybody)


def _read(look: Callable[[], Found], doing: str) -> Found | ProviderError:
    """What was found, or why it could not be looked at. Raises `DOUBTFUL` errors."""
    refused: ProviderError
    try:
        return look()
    except (ClientError, BotoCoreError) as error:
        refused = translated(error, doing=doing)
    except ProviderError as error:
        refused = error
    if isinstance(refused, DOUBTFUL):
        raise refused
    return refused


def _by_id(look: Callable[[], Iterable[Any]], doing: str) -> list[Any] | ProviderError:
    """What was asked for by its id; nothing if AWS does not know it."""

    def known() -> list[Any]:
        try:
            return list(look())
        except ClientError as error:
            code = code_of(error) or ""
            if ".NotFound" in code or ".Malformed" in code or code == "NoSuchEntity":
                return []
            raise

    return _read(known, doing)


@dataclass(frozen=True)
class _Check:
    clients: Clients
    settings: AwsSettings
    account_id: str

    def result(self, who: Sequence[CheckItem]) -> ComputeCheck:
        image_item, image = self._image()
        subnets = self._subnets()
        types, excluded, types_item = self._types(subnets)
        priced, disk, prices_item = self._prices(types)
        items = [
            *who,
            image_item,
            *self._network(subnets),
            *self._key_pair(),
            *self._instance_profile(),
            types_item,
            prices_item,
        ]
        return ComputeCheck(
            items=tuple(items),
            account_id=self.account_id,
            image=image,
            subnet_zones=(
                None
                if isinstance(subnets, ProviderError)
                else {each["SubnetId"]: each["AvailabilityZone"] for each in subnets}
            ),
            types=priced,
            excluded=excluded,
            disk_usd_per_gib_month=disk,
        )

    def _unread(self, name: str, error: ProviderError) -> CheckItem:
        if self.settings.credentials is CredentialKind.SAME_ACCOUNT and isinstance(error, Permission):
            return item(name, [failed(error.message, SAME_ACCOUNT_MEND)], good="")
        return unread(name, error)

    # -- with what, and where ------------------------------------------------------------------------------

    def _image(self) -> tuple[CheckItem, ImageFacts | None]:
        ids = [self.settings.image_id]
        images = _by_id(lambda: self.clients.ec2.describe_images(ImageIds=ids)["Images"], "read the image")
        if isinstance(images, ProviderError):
            return self._unread("image", images), None
        return checks.image(images, self.settings, now=datetime.now(tz=UTC))

    def _subnets(self) -> list[Described] | ProviderError:
        """In the settings' order. By filter: asked for by id, one that is missing would hide the others."""
        wanted = list(self.settings.subnet_ids)

        def look() -> list[Described]:
            filters: Any = [{"Name": "subnet-id", "Values": wanted}]
            found: list[Any] = self.clients.ec2.describe_subnets(Filters=filters)["Subnets"]
            return sorted(found, key=lambda each: wanted.index(each["SubnetId"]))

        return _read(look, "read the subnets")

    def _network(self, subnets: Sequence[Described] | ProviderError) -> Iterator[CheckItem]:
        if isinstance(subnets, ProviderError):
            yield self._unread("subnets", subnets)
        else:
            yield network_checks.subnets(subnets, self.settings)
        ids = [self.settings.security_group_id]
        groups = _by_id(
            lambda: self.clients.ec2.describe_security_groups(GroupIds=ids)["SecurityGroups"],
            "read the security group",
        )
        if isinstance(groups, ProviderError):
            yield self._unread("security_group", groups)
        else:
            known = [] if isinstance(subnets, ProviderError) else subnets
            yield network_checks.security_group(groups, known, self.settings)

    # -- for recovery --------------------------------------------------------------------------------------

    def _key_pair(self) -> Iterator[CheckItem]:
        name = self.settings.key_name
        if name is None:
            return
        pairs = _by_id(
            lambda: self.clients.ec2.describe_key_pairs(KeyNames=[name])["KeyPairs"], "read the key pair"
        )
        if isinstance(pairs, Permission):
            yield recovery_checks.not_checked("key_pair", "ec2:DescribeKeyPairs")
        elif isinstance(pairs, ProviderError):
            yield self._unread("key_pair", pairs)
        else:
            yield recovery_checks.key_pair(self.settings, exists=bool(pairs))

    def _instance_profile(self) -> Iterator[CheckItem]:
        arn = self.settings.instance_profile_arn
        if arn is None:
            return
        if foreign := recovery_checks.profile_of_other_account(self.settings, self.account_id):
            yield foreign
            return
        asked = {"InstanceProfileName": arn.rsplit("/", 1)[-1]}
        profiles = _by_id(
            lambda: [self.clients.iam.get_instance_profile(**asked)["InstanceProfile"]],
            "read the instance profile",
        )
        if isinstance(profiles, Permission):
            yield recovery_checks.not_checked("instance_profile", "iam:GetInstanceProfile")
        elif isinstance(profiles, ProviderError):
            yield self._unread("instance_profile", profiles)
        else:
            yield recovery_checks.instance_profile(self.settings, next(iter(profiles), None))

    # -- which GPUs, and at what price ---------------------------------------------------------------------

    def _types(
        self, subnets: Sequence[Described] | ProviderError
    ) -> tuple[tuple[GpuType, ...] | None, dict[str, str], CheckItem]:
        """The types that the subnets' zones offer, without prices; None if that could not be read."""
        described = _read(lambda: catalog.describe(self.clients.ec2), "read the instance types")
        if isinstance(described, ProviderError):
            return None, {}, self._unread("gpu_types", described)
        usable, excluded = described
        if isinstance(subnets, ProviderError) or not subnets:
            unknown = failed("Not checked: no subnet could be read.", "Mend the subnets first.")
            return None, excluded, item("gpu_types", [unknown], good="")
        names, zones = [each.instance_type for each in usable], [each["AvailabilityZone"] for each in subnets]
        offered = _read(
            lambda: catalog.zones_of(self.clients.ec2, names, zones), "read which zones offer which types"
        )
        if isinstance(offered, ProviderError):
            return None, excluded, self._unread("gpu_types", offered)
        types = tuple(
            replace(each, zones=offered[each.instance_type])
            for each in usable
            if each.instance_type in offered
        )
        elsewhere = {name: "the subnets' zones do not offer it" for name in names if name not in offered}
        return types, {**excluded, **elsewhere}, checks.gpu_types(types, subnets)

    def _prices(
        self, types: tuple[GpuType, ...] | None
    ) -> tuple[tuple[GpuType, ...] | None, Decimal | None, CheckItem]:
        """The types with their prices, and a disk's; what can't be read stays unknown."""
        asked = [each.instance_type for each in types or ()]
        found = _read(lambda: self.clients.prices.all_compute_per_hour(asked), "read prices")
        disk = _read(self.clients.prices.gp3_per_gib_month, "read the price of disks")
        if isinstance(found, ProviderError):
            return types, None, _unpriced(found)
        if isinstance(disk, ProviderError):
            return types, None, _unpriced(disk)
        priced = tuple(replace(each, usd_per_hour=found[each.instance_type]) for each in types or ())
        told = checks.prices(priced, disk_is_priced=disk is not None)
        return None if types is None else priced, disk, told


def _unpriced(refused: ProviderError) -> CheckItem:
    mend = PRICES_MEND if isinstance(refused, Permission) else refused.mend
    return item("prices", [failed(refused.message, mend)], good="")
