"""The customer's CDK app. It needs no credentials to be synthesized.

    tensorant connections show CONNECTION --json > connection.json
    cdk deploy --app "python -m infra.connector" \\
        --context connection=connection.json --context customerBusArn=ARN [--context account=ACCOUNT] \\
        [--context quota=true] [--context checks=true] [--context profileRole=ARN]

`customerBusArn` is the deployment's output CustomerBusArn. Without CDK, deploy the plain template:
`tensorant connections connector CONNECTION > connector.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk

from infra.connector.customer import Customer
from infra.connector.stack import ConnectorStack

if TYPE_CHECKING:
    from collections.abc import Mapping

STACK_ID = "TensorantConnector"


def build(*, outdir: str | None = None, context: Mapping[str, Any] | None = None) -> cdk.App:
    """The app with its one stack. Raises `ContextError`."""
    app = cdk.App(
        analytics_reporting=False,
        builtin_cloud_formation_validation=False,
        outdir=outdir,
        context=context,
        default_stack_synthesizer=cdk.BootstraplessSynthesizer(),
    )
    ConnectorStack(app, STACK_ID, customer=Customer.from_context(app.node.try_get_context))
    return app


if __name__ == "__main__":
    build().synth()
