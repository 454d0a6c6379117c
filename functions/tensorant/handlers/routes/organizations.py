"""Organizations, and who the caller is."""

from __future__ import annotations

from http import HTTPStatus

from tensorant import bootstrap
from tensorant.handlers.http import actor
from tensorant.handlers.http import router as new_router
from tensorant.handlers.requests import CreateOrganization
from tensorant.handlers.views import MeView, OrganizationView

router = new_router()


@router.get("/v1/me")
def me() -> MeView:
    """Who the caller is, and which organizations they belong to."""
    person = actor(router.current_event)
    members = bootstrap.organizations().memberships(person)
    return MeView.of(person.subject, members, platform_admin=person.platform_admin)


@router.post("/v1/organizations")
def create_organization(request: CreateOrganization) -> tuple[OrganizationView, int]:
    """Create an organization with its first owner. Platform admins only."""
    organization = bootstrap.organizations().create(
        actor(router.current_event), name=request.name, owner=request.owner
    )
    return OrganizationView.of(organization), HTTPStatus.CREATED
