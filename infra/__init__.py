"""The CDK app. Node.js is chosen here, before anything under this package imports `aws_cdk` and starts it."""

from infra.node import use_bundled_node

use_bundled_node()
