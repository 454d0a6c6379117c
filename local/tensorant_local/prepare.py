"""`python -m tensorant_local.prepare`: does beforehand what takes long the first time."""

from __future__ import annotations

from tensorant_local import synthesis
from tensorant_local.base_models import BUILDERS, prepared
from tensorant_local.cloud import CONTEXT, PROJECT


def main() -> None:
    """Build the base models and synthesize the template; both are kept in .tensorant."""
    for name in BUILDERS:
        prepared(name, PROJECT / ".tensorant" / "models")
    synthesis.template(PROJECT, cache=PROJECT / ".tensorant" / "synth", context=CONTEXT)


if __name__ == "__main__":
    main()
