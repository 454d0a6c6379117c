"""The table's keys, and the access patterns they serve. Nothing scans.

| what                                   | pk               | sk                    | gsi1pk            | gsi1sk            |
|----------------------------------------|------------------|-----------------------|-------------------|-------------------|
| organization                           | ORG#id           | ORG                   |                   |                   |
| member; a person's organizations       | ORG#id           | MEMBER#subject        | SUBJECT#subject   | ORG#id            |
| connection; an organization's          | ORG#id           | CONNECTION#id         |                   |                   |
| catalog of a connection                | CONNECTION#id    | CATALOG               |                   |                   |
| project; an organization's             | ORG#id           | PROJECT#id            |                   |                   |
| dataset version; a project's           | ORG#id           | DATASET#id            | PROJECT#id        | DATASET#created   |
| version of a project with a content    | PROJECT#id       | CONTENT#sha256        |                   |                   |
| run; an organization's, newest first   | RUN#id           | RUN                   | ORG#id#RUNS       | created#id        |
| machine; a run's; by instance          | RUN#id           | MACHINE#attempt       | INSTANCE#a#r#i    | RUN#id            |
| timeline of a run, in order of storing | RUN#id           | FACT#id               | TIMELINE#id       | stored#n          |
| progress, terminal event, signals      | RUN#id           | PROGRESS, TERMINAL#n, SIGNALS |           |                   |

A second index, `gsi2`, holds only what the sweep must see: machines that are not closed (OPEN#MACHINES),
runs that are under way (OPEN#RUNS), dataset versions that are neither valid nor invalid (OPEN#DATASETS), the
connections that machines are made with (COMPUTE#CONNECTIONS), and
removed connections until their credentials are deleted (REMOVED#CONNECTIONS).
"""

from __future__ import annotations

from typing import TypedDict

from tensorant.domain.connections import Catalog, Connection
from tensorant.domain.identity import Member, Organization
from tensorant.domain.machines import Machine
from tensorant.domain.projects import DatasetContent, DatasetVersion, Project
from tensorant.domain.runs import Run
from tensorant.domain.timeline import Fact
from tensorant.ports import Entity

INDEX = "gsi1"
OPEN_INDEX = "gsi2"
OPEN_MACHINES = "OPEN#MACHINES"
RUNS_UNDER_WAY = "OPEN#RUNS"
OPEN_DATASETS = "OPEN#DATASETS"
COMPUTE_CONNECTIONS = "COMPUTE#CONNECTIONS"
REMOVED_CONNECTIONS = "REMOVED#CONNECTIONS"


class Key(TypedDict):
    pk: str
    sk: str


def organization(organization_id: str) -> Key:
    return {"pk": f"ORG#{organization_id}", "sk": "ORG"}


def member(organization_id: str, subject: str) -> Key:
    return {"pk": f"ORG#{organization_id}", "sk": f"MEMBER#{subject}"}


def connection(organization_id: str, connection_id: str) -> Key:
    return {"pk": f"ORG#{organization_id}", "sk": f"CONNECTION#{connection_id}"}


def catalog(connection_id: str) -> Key:
    return {"pk": f"CONNECTION#{connection_id}", "sk": "CATALOG"}


def project(organization_id: str, project_id: str) -> Key:
    return {"pk": f"ORG#{organization_id}", "sk": f"PROJECT#{project_id}"}


def dataset(organization_id: str, version_id: str) -> Key:
    return {"pk": f"ORG#{organization_id}", "sk": f"DATASET#{version_id}"}


def dataset_content(project_id: str, sha256: str) -> Key:
    return {"pk": f"PROJECT#{project_id}", "sk": f"CONTENT#{sha256}"}


def run(run_id: str) -> Key:
    return {"pk": f"RUN#{run_id}", "sk": "RUN"}


def machine(run_id: str, attempt: int) -> Key:
    return {"pk": f"RUN#{run_id}", "sk": f"MACHINE#{attempt:04d}"}


def fact(item: Fact) -> Key:
    return {"pk": f"RUN#{item.run_id}", "sk": f"FACT#{item.id}"}


def progress(run_id: str) -> Key:
    return {"pk": f"RUN#{run_id}", "sk": "PROGRESS"}


def terminal_event(run_id: str, attempt: int) -> Key:
    return {"pk": f"RUN#{run_id}", "sk": f"TERMINAL#{attempt:04d}"}


def signals(run_id: str) -> Key:
    return {"pk": f"RUN#{run_id}", "sk": "SIGNALS"}


def subject_index(subject: str) -> str:
    return f"SUBJECT#{subject}"


def project_index(project_id: str) -> str:
    return f"PROJECT#{project_id}"


def runs_index(organization_id: str) -> str:
    return f"ORG#{organization_id}#RUNS"


def instance_index(account_id: str, region: str, instance_id: str) -> str:
    return f"INSTANCE#{account_id}#{region}#{instance_id}"


def timeline_index(run_id: str) -> str:
    return f"TIMELINE#{run_id}"


def of(entity: Entity) -> Key:
    """The primary key of anything versioned."""
    match entity:
        case Catalog():
            return catalog(entity.connection_id)
        case DatasetContent():
            return dataset_content(entity.project_id, entity.sha256)
        case Run():
            return run(entity.id)
        case Machine():
            return machine(entity.run_id, entity.attempt)
        case _:
            return _of_organization(entity)


def _of_organization(entity: Organization | Member | Connection | Project | DatasetVersion) -> Key:
    match entity:
        case Organization():
            return organization(entity.id)
        case Member():
            return member(entity.organization_id, entity.subject)
        case Connection():
            return connection(entity.organization_id, entity.id)
        case Project():
            return project(entity.organization_id, entity.id)
        case DatasetVersion():
            return dataset(entity.organization_id, entity.id)


def index_of(entity: Entity) -> dict[str, str]:
    """The index attributes of an entity; empty for what is never looked up by them."""
    match entity:
        case Member():
            return _index(subject_index(entity.subject), f"ORG#{entity.organization_id}")
        case DatasetVersion():
            return _index(project_index(entity.project_id), f"DATASET#{entity.created_at.isoformat()}")
        case Run():
            return _index(runs_index(entity.organization_id), f"{entity.created_at.isoformat()}#{entity.id}")
        case Machine() if entity.instance_id is not None:
            pk = instance_index(entity.account_id, entity.parameters.region, entity.instance_id)
            return _index(pk, f"RUN#{entity.run_id}")
        case _:
            return {}


def open_index_of(entity: Entity) -> dict[str, str]:
    """The attributes of the second index; empty for what the sweep need not see."""
    match entity:
        case Machine() if not entity.closed:
            return {"gsi2pk": OPEN_MACHINES, "gsi2sk": f"{entity.run_id}#{entity.attempt:04d}"}
        case Connection() if entity.removed:
            kept = entity.purged_at is None
            return {"gsi2pk": REMOVED_CONNECTIONS, "gsi2sk": entity.id} if kept else {}
        case Connection() if entity.kind.is_compute:
            return {"gsi2pk": COMPUTE_CONNECTIONS, "gsi2sk": entity.id}
        case DatasetVersion() if entity.is_open:
            return {"gsi2pk": OPEN_DATASETS, "gsi2sk": f"{entity.organization_id}#{entity.id}"}
        case Run() if entity.under_way:
            return {"gsi2pk": RUNS_UNDER_WAY, "gsi2sk": entity.id}
        case _:
            return {}


def _index(pk: str, sk: str) -> dict[str, str]:
    return {"gsi1pk": pk, "gsi1sk": sk}
