"""`poweroff`, `shutdown now`, `shutdown -h now` and `shutdown -P now`."""

import sys

from tensorant_local.machines.stand_ins.power import shut_down

if sys.argv[1:] not in ([], ["now"], ["-h", "now"], ["-P", "now"]):
    sys.exit(f"shutdown (stand-in): not understood: {sys.argv[1:]}")
shut_down()
