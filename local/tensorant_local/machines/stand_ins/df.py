"""`df -Pk DIRECTORY`: the free space that the machine's options give, in KiB, as POSIX prints it."""

import sys

from tensorant_local.machines.layout import Layout

_USED_KIB = 40 * 1024 * 1024

if sys.argv[1:-1] != ["-Pk"]:
    sys.exit(f"df (stand-in): not understood: {sys.argv[1:]}")
free_kib = Layout.of_this_machine().options.free_disk_gib * 1024 * 1024
total_kib = free_kib + _USED_KIB
print("Filesystem     1024-blocks      Used Available Capacity Mounted on")
print(f"/dev/root        {total_kib} {_USED_KIB} {free_kib}  {100 * _USED_KIB // total_kib}% /")
