"""EC2: launches that are safe to repeat, instances with a life, images with their disks, and no public address."""

from __future__ import annotations

import base64
import fnmatch
import json
from typing import Any
from uuid import uuid4

from moto.core.responses import ActionResult
from moto.ec2 import utils
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceTypeError
from moto.ec2.models import elastic_network_interfaces
from moto.ec2.models.amis import Ami
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.responses import EC2Response
from moto.ec2.responses.amis import AmisResponse
from moto.ec2.responses.instances import InstanceResponse

from tensorant_local.aws import ec2_lifecycle, running
from tensorant_local.aws.ec2_lifecycle import State, lock, state_of
from tensorant_local.aws.mending import Mends

USER_DATA_BYTES = 16384
NO_TOKEN = "ABCDE"
"""What moto takes for the token of a request without one."""

mends = Mends()


def apply() -> None:
    """Mend EC2; safe to repeat."""
    mends.apply()
    utils.filter_dict_attribute_mapping["client-token"] = "client_token"


@mends(EC2Response, "call_action")
def answers_are_written_while_things_change(original: Any, response: Any) -> Any:
    """One request at a time, and no state changes before its answer is written.

    Credentials are revoked and tags removed on whoever runs the cloud's word, since moto judges neither.
    """
    code = running.cloud().refused_actions.get(response._get_action())
    if code is not None:
        refusal = EC2ClientError(code, "Refused, as this cloud was told.")
        return response.serialized(ActionResult(refusal))
    with lock:
        return original(response)


@mends(utils, "instance_value_in_filter_values")
def filters_of_instances_know_no_wildcards(original: Any, value: Any, wanted: list[str]) -> bool:
    """Any string may have them: `*` for some characters, `?` for one.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
    """
    if isinstance(value, str):
        return any(fnmatch.fnmatchcase(value, each) for each in wanted)
    return bool(original(value, wanted))


# -- launches ----------------------------------------------------------------------------------------------


@mends(InstanceBackend, "run_instances")
def client_tokens_are_ignored(
    original: Any,
    backend: Any,
    image_id: str,
    count: int,
    user_data: Any,
    security_group_names: list[str],
    **kwargs: Any,
) -> Any:
    """The same token and parameters mean the same instance, per zone.

    Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
    """
    token = kwargs.get("client_token") or NO_TOKEN
    kwargs["client_token"] = str(uuid4()) if token == NO_TOKEN else token
    asked = {name: value for name, value in kwargs.items() if name != "client_token"}
    parameters = json.dumps(
        [image_id, count, str(user_data), security_group_names, asked], sort_keys=True, default=str
    )
    launches = backend.__dict__.setdefault("launches_by_token", {})
    key = (kwargs["client_token"], _zone(backend, kwargs))
    if key in launches:
        known, reservation_id = launches[key]
        return _same_launch(backend, reservation_id, same=known == parameters)
    _refuse_as_told(kwargs["instance_type"])
    _refuse_impossible(backend, user_data, kwargs)
    _add_mappings_of_the_image(backend, image_id, kwargs)
    reservation = _launched(original, backend, image_id, count, user_data, security_group_names, **kwargs)
    launches[key] = (parameters, reservation.id)
    return reservation


def _launched(original: Any, backend: Any, *args: Any, **kwargs: Any) -> Any:
    """An empty reservation of a launch that failed."""
    before = set(backend.reservations)
    try:
        reservation = original(backend, *args, **kwargs)
    except InvalidInstanceTypeError as error:
        message = f"Invalid value '{kwargs['instance_type']}' for InstanceType."
        raise EC2ClientError("InvalidParameterValue", message) from error
    except Exception:
        for identifier in set(backend.reservations) - before:
            del backend.reservations[identifier]
        raise
    for instance in reservation.instances:
        instance.security_groups = instance.security_groups or instance.nics[0].group_set
        ec2_lifecycle.begin(instance)
    return reservation


def _same_launch(backend: Any, reservation_id: str, *, same: bool) -> Any:
    reservation = backend.reservations[reservation_id]
    instance = reservation.instances[0]
    if not same:
        message = "Arguments on this idempotent request are inconsistent with arguments used in previous request(s)."
        raise EC2ClientError("IdempotentParameterMismatch", message)
    if state_of(instance) in {State.SHUTTING_DOWN, State.TERMINATED}:
        message = f"The instance '{instance.id}' of this client token has been terminated."
        raise EC2ClientError("IdempotentInstanceTerminated", message)
    backend.iam_instance_profile_associations.pop(
        instance.id, None
    )  # the response handler associates it again
    return reservation


def _subnet_id(kwargs: dict[str, Any]) -> str | None:
    inner = next((nic["SubnetId"] for nic in kwargs.get("nics", []) if "SubnetId" in nic), None)
    return kwargs.get("subnet_id") or inner


def _zone(backend: Any, kwargs: dict[str, Any]) -> str | None:
    subnet_id = _subnet_id(kwargs)
    return backend.get_subnet(subnet_id).availability_zone if subnet_id else kwargs.get("placement")


def _refuse_as_told(instance_type: str) -> None:
    """Capacity and quota are a matter of the day: whoever runs the cloud says how it is (moto always has all)."""
    code = running.cloud().refusals.get(instance_type)
    if code is not None:
        raise EC2ClientError(code, f"{instance_type} can't be launched now.")


def _refuse_impossible(backend: Any, user_data: Any, kwargs: dict[str, Any]) -> None:
    """What AWS checks and moto doesn't: the user data's length, and that groups and subnet share a network."""
    if user_data and len(base64.b64decode(str(user_data))) > USER_DATA_BYTES:
        raise EC2ClientError("InvalidParameterValue", "User data is limited to 16384 bytes")
    subnet_id = _subnet_id(kwargs)
    if not subnet_id:
        return
    vpc_id = backend.get_subnet(subnet_id).vpc_id
    for group_id in [
        *kwargs.get("security_group_ids", []),
        *(g for nic in kwargs.get("nics", []) for g in nic.get("Groups", [])),
    ]:
        group = backend.get_security_group_from_id(group_id)
        if group is None:
            raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        if group.vpc_id != vpc_id:
            message = f"Security group {group_id} and subnet {subnet_id} belong to different networks."
            raise EC2ClientError("InvalidParameter", message)


def _add_mappings_of_the_image(backend: Any, image_id: str, kwargs: dict[str, Any]) -> None:
    """An instance gets every disk of its image that the request doesn't override or suppress."""
    image = backend.amis.get(image_id)
    if not hasattr(image, "registered_mappings"):
        return
    asked = {mapping["DeviceName"]: mapping for mapping in kwargs.get("block_device_mappings", [])}
    merged = [_merged(mapping, asked.pop(mapping["DeviceName"], {})) for mapping in image.registered_mappings]
    kwargs["block_device_mappings"] = [*merged, *asked.values()]


def _merged(registered: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    if asked.get("NoDevice") == "":
        return asked
    wanted = {name: value for name, value in asked.get("Ebs", {}).items() if value is not None}
    size, least = wanted.get("VolumeSize"), registered["Ebs"]["VolumeSize"]
    if size is not None and int(size) < least:
        message = f"Volume of size {size}GB is smaller than snapshot, expect size >= {least}GB"
        raise EC2ClientError("InvalidBlockDeviceMapping", message)
    return {"DeviceName": registered["DeviceName"], "NoDevice": None, "Ebs": registered["Ebs"] | wanted}


# -- life --------------------------------------------------------------------------------------------------


@mends(Instance, "start")
def starting_takes_no_time(_original: Any, instance: Any) -> Any:
    return ec2_lifecycle.start(instance)


@mends(Instance, "stop")
def stopping_takes_no_time(_original: Any, instance: Any) -> Any:
    return ec2_lifecycle.stop(instance)


@mends(Instance, "terminate")
def a_second_termination_fails(_original: Any, instance: Any) -> Any:
    """With InvalidNetworkInterfaceID, since the first had deleted the interface."""
    return ec2_lifecycle.terminate(instance)


@mends(Instance, "reboot")
def a_reboot_reaches_no_machine(_original: Any, instance: Any) -> None:
    ec2_lifecycle.reboot(instance)


def _mend_answer(action: str, backend_method: str, field: str) -> None:
    @mends(InstanceResponse, action)
    def answers_invent_the_new_state(_original: Any, response: Any) -> Any:
        """An instance that was there already doesn't pass through the state again."""
        response.error_on_dryrun()
        identifiers = response._get_param("InstanceIds", [])
        changed = getattr(response.ec2_backend, backend_method)(identifiers)
        changes = [
            {
                "InstanceId": instance.id,
                "CurrentState": {"Code": int(state_of(instance)), "Name": state_of(instance).label},
                "PreviousState": before,
            }
            for instance, before in changed
        ]
        return ActionResult({field: changes})


_mend_answer("start_instances", "start_instances", "StartingInstances")
_mend_answer("stop_instances", "stop_instances", "StoppingInstances")
_mend_answer("terminate_instances", "terminate_instances", "TerminatingInstances")


# -- images ------------------------------------------------------------------------------------------------


@mends(AmisResponse, "register_image")
def registered_images_lose_their_properties(original: Any, response: Any) -> Any:
    """Architecture, root device, virtualization, ENA support and disks are kept."""
    result = original(response)
    image = response.ec2_backend.amis[result.result["ImageId"]]
    image.architecture = response._get_param("Architecture", "i386")
    image.root_device_name = response._get_param("RootDeviceName", "/dev/sda1")
    image.root_device_type = "ebs"
    image.virtualization_type = response._get_param("VirtualizationType", "paravirtual")
    image.ena_support = response._get_param("EnaSupport") or False
    image.boot_mode = response._get_param("BootMode")
    image.imds_support = response._get_param("ImdsSupport")
    image.hypervisor = "xen"
    image.platform_details = "Linux/UNIX"
    image.usage_operation = "RunInstances"
    mappings = response._get_param("BlockDeviceMappings", [])
    image.registered_mappings = [_registered(mapping, image.ebs_snapshot.id) for mapping in mappings]
    return result


def _registered(mapping: dict[str, Any], snapshot_id: str) -> dict[str, Any]:
    given = mapping.get("Ebs", {})
    ebs = {
        "SnapshotId": given.get("SnapshotId", snapshot_id),
        "VolumeSize": int(given.get("VolumeSize", 8)),
        "VolumeType": given.get("VolumeType", "standard"),
        "DeleteOnTermination": given.get("DeleteOnTermination", True),
        "Encrypted": given.get("Encrypted", False),
    }
    return {"DeviceName": mapping["DeviceName"], "Ebs": ebs}


@mends(Ami, "block_device_mappings")
def every_image_has_one_disk_of_15_gigabytes(original: Any, image: Any) -> list[dict[str, Any]]:
    mappings: list[dict[str, Any]] = image.__dict__.get("registered_mappings") or original(image)
    return mappings


# -- addresses ---------------------------------------------------------------------------------------------


@mends(elastic_network_interfaces, "random_public_ip")
def instances_get_public_addresses_of_others(_original: Any) -> str:
    """Nothing here may dial a stranger."""
    return "127.0.0.1"


@mends(NetworkInterface, "association")
def private_interfaces_have_an_association(original: Any, interface: Any) -> Any:
    return original(interface) if interface.public_ip else None


@mends(Instance, "public_dns_name")
def instances_get_public_names_of_others(_original: Any, instance: Any) -> str:
    return "localhost" if instance.public_ip else ""


@mends(elastic_network_interfaces, "generate_dns_from_ip")
def interfaces_get_names_of_others(original: Any, address: str, *args: Any, **kwargs: Any) -> str:
    return "localhost" if address == "127.0.0.1" else str(original(address, *args, **kwargs))
