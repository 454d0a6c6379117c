"""The CDK app. Importing `infra` first chooses the bundled Node.js, before any test imports `aws_cdk`."""

import infra

__all__ = ["infra"]
