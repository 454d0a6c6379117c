"""What depends on a connection stands in the way of what would cut it off, and is named with what ends it."""

from __future__ import annotations

import pytest

from tensorant.domain.connection_use import Use
from tensorant.domain.errors import Conflict
from tensorant.domain.machines import Goal, Machine, Seen
from tensorant.domain.projects import Project
from tests.support.worlds import ACCOUNT, NOON, ORG, S3, aws_connection, machine, run, s3_connection

OTHER = "444455556666"
RETAINED = {"goal": Goal.STOPPED, "seen": Seen.STOPPED, "instance_id": "i-1"}
UNDER_WAY = run().launched("mia", at=NOON)
PROJECT = Project(
    id="proj-1",
    organization_id=ORG,
    name="support",
    storage_connection_id=S3,
    created_at=NOON,
    created_by="olga",
)


def in_the_way(use: Use) -> Conflict:
    with pytest.raises(Conflict) as caught:
        use.require_none(aws_connection(), wanted="removed")
    assert caught.value.code == "connection_in_use"
    return caught.value


def other_account(use: Use, account_id: str) -> Conflict:
    with pytest.raises(Conflict) as caught:
        use.require_account(aws_connection(), account_id, field="access_key_id")
    assert (caught.value.code, caught.value.field) == ("other_account", "access_key_id")
    return caught.value


def test_what_nothing_depends_on_may_go() -> None:
    Use().require_none(aws_connection(), wanted="removed")
    Use().require_account(aws_connection(), OTHER, field="access_key_id")


def test_a_run_under_way_is_named_with_what_ends_it() -> None:
    error = in_the_way(Use(runs=(UNDER_WAY,)))

    assert error.message == "The connection our GPUs can't be removed: run-1 is under way."
    assert error.mend == "Wait until run-1 ends, or cancel it."


def test_a_kept_machine_is_named_with_what_releases_it() -> None:
    error = in_the_way(Use(machines=(machine(**RETAINED),)))

    assert error.message == "The connection our GPUs can't be removed: the machine i-1 of run-1 is retained."
    assert error.mend == "Recover or discard the output of run-1, and wait until the machine is released."


def test_a_run_with_its_machine_is_mended_once() -> None:
    error = in_the_way(Use(runs=(UNDER_WAY,), machines=(machine(),)))

    assert "run-1 is under way, a machine has been asked for, for run-1." in error.message
    assert error.mend == "Wait until run-1 ends, or cancel it."


def test_a_project_keeps_its_storage() -> None:
    with pytest.raises(Conflict, match="the project support keeps its files there") as caught:
        Use(projects=(PROJECT,)).require_none(s3_connection(), wanted="removed")

    assert caught.value.mend == "Keep it: a project is bound to its storage for good."


@pytest.mark.parametrize("use", [Use(runs=(UNDER_WAY,)), Use(machines=(machine(**RETAINED),))])
def test_in_use_only_the_same_account_will_do(use: Use) -> None:
    use.require_account(aws_connection(), ACCOUNT, field="access_key_id")

    error = other_account(use, OTHER)
    assert OTHER in error.message
    assert f"Use an identity of account {ACCOUNT}." in error.mend


def test_the_machine_s_account_counts_and_the_way_back_to_it_is_open() -> None:
    use = Use(runs=(UNDER_WAY,), machines=(machine(**RETAINED, account_id=OTHER),))

    use.require_account(aws_connection(), OTHER, field="access_key_id")
    other_account(use, ACCOUNT)


def test_of_machines_in_two_accounts_each_may_be_released_in_turn() -> None:
    machines: tuple[Machine, ...] = (
        machine(**RETAINED),
        machine(**RETAINED, run_id="run-2", account_id=OTHER),
    )

    Use(machines=machines).require_account(aws_connection(), ACCOUNT, field="access_key_id")
    Use(machines=machines).require_account(aws_connection(), OTHER, field="access_key_id")
    other_account(Use(machines=machines), "777788889999")


def test_where_the_account_was_never_known_a_run_protects_nothing() -> None:
    Use(runs=(UNDER_WAY,)).require_account(aws_connection(account_id=None), OTHER, field="access_key_id")
