"""What a simulated machine finds on its PATH in place of Docker, systemd and the NVIDIA driver.

Each takes what the boot scripts use and refuses, by name, what it does not know. They need the standard
library alone, so that they start quickly.
"""
