"""`nvidia-smi --query-gpu=name,driver_version --format=csv,noheader`, with the real one's failures.

A line for each GPU. Statuses: nvidia-smi's manual, RETURN VALUE.
"""

import sys

from tensorant_local.machines.layout import Layout

_NO_DRIVER = 9
_NO_GPU = 6

if sys.argv[1:] != ["--query-gpu=name,driver_version", "--format=csv,noheader"]:
    sys.exit(f"nvidia-smi (stand-in): not understood: {sys.argv[1:]}")
options = Layout.of_this_machine().options
if options.driver_version is None:
    print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    sys.exit(_NO_DRIVER)
if options.gpu_name is None:
    print("No devices were found")
    sys.exit(_NO_GPU)
for _ in range(options.gpus):
    print(f"{options.gpu_name}, {options.driver_version}")
