"""The user API: everything that needs neither a secret nor a provider."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from tensorant.handlers.http import resolver
from tensorant.handlers.routes import connections, connector, organizations, projects, runs

app = resolver()
for routes in (organizations, connections, connector, projects, runs):
    app.include_router(routes.router)


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
