"""`uname -m`, the machine's architecture."""

import sys

from tensorant_local.machines.layout import Layout

if sys.argv[1:] != ["-m"]:
    sys.exit(f"uname (stand-in): not understood: {sys.argv[1:]}")
print(Layout.of_this_machine().options.architecture)
