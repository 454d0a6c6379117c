"""The CDK app: `python -m infra.app` synthesizes without credentials, Docker or a Node.js on the PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk

from infra.deployment import Deployment
from infra.stack import TensorantStack

if TYPE_CHECKING:
    from collections.abc import Mapping

STACK_ID = "Tensorant"
"""The template is `Tensorant.template.json`, whatever the deployment is called."""


def build(*, outdir: str | None = None, context: Mapping[str, Any] | None = None) -> cdk.App:
    """The app with its one stack, for whatever account and region it is deployed to.

    The CDK command line passes `outdir` and `context` by the environment. Raises `deployment.ContextError`.
    """
    app = cdk.App(
        analytics_reporting=False,
        # cfn-lint checks the template in CI; CDK's own check takes longer than all the rest of a synthesis.
        builtin_cloud_formation_validation=False,
        outdir=outdir,
        context=context,
    )
    TensorantStack(app, STACK_ID, deployment=Deployment.from_context(app.node.try_get_context))
    return app


if __name__ == "__main__":
    build().synth()
