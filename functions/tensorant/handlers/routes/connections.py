"""Reading connections and their GPU catalogs. The connections function creates, changes and checks them."""

from __future__ import annotations

from tensorant import bootstrap
from tensorant.handlers.connection_views import CatalogView, ConnectionView
from tensorant.handlers.http import actor
from tensorant.handlers.http import router as new_router
from tensorant.handlers.views import Listed

router = new_router()


@router.get("/v1/organizations/<organization_id>/connections")
def list_connections(organization_id: str) -> Listed[ConnectionView]:
    connections = bootstrap.connection_reader().list(actor(router.current_event), organization_id)
    now = bootstrap.clock().now()
    return Listed(items=[ConnectionView.of(each, now=now) for each in connections])


@router.get("/v1/organizations/<organization_id>/connections/<connection_id>")
def show_connection(organization_id: str, connection_id: str) -> ConnectionView:
    """A connection with what its last check saw."""
    connection = bootstrap.connection_reader().show(
        actor(router.current_event), organization_id, connection_id
    )
    return ConnectionView.of(connection, now=bootstrap.clock().now())


@router.get("/v1/organizations/<organization_id>/connections/<connection_id>/gpus")
def show_catalog(organization_id: str, connection_id: str) -> CatalogView:
    """The GPU types of a compute connection with prices, as its last check found them."""
    catalog = bootstrap.connection_reader().catalog(
        actor(router.current_event), organization_id, connection_id
    )
    return CatalogView.of(catalog)
