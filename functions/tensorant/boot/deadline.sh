#!/usr/bin/env bash
# First at every boot: arm the moment at which this machine turns itself off, whatever else happens.
# A first boot gets the run's limit and leaves a marker; a restart finds it and gets the recovery window.
# Arguments: limit in seconds, recovery window in seconds, name of the attempt.
set -eEuo pipefail

readonly limit_seconds=$1 recovery_seconds=$2 attempt_name=$3
readonly state="${ROOT:-}/var/lib/tensorant/attempts/${attempt_name}"

say() {
  echo "tensorant: $*"
}

# Without a deadline or its marker this machine could run for ever: off at once.
give_up() {
  say "The deadline could not be armed; powering off."
  systemctl --no-block poweroff
}

# This runs before the system is up. A timer that waited for the system would never start: hence
# --no-block, and no default dependencies on the timer or on what it starts.
arm() {
  systemd-run --no-block --unit=tensorant-deadline --on-boot="${1}s" \
    --timer-property=DefaultDependencies=no --timer-property=AccuracySec=1s \
    --property=DefaultDependencies=no systemctl poweroff
}

if systemctl is-active --quiet tensorant-deadline.timer; then
  exit 0
fi
trap give_up ERR
if [[ -e "${state}/booted" ]]; then
  arm "${recovery_seconds}"
  say "Restarted for recovery. Nothing is trained; this machine powers off in ${recovery_seconds} s."
else
  arm "${limit_seconds}"
  mkdir -p "${state}"
  chmod 700 "${ROOT:-}/var/lib/tensorant"
  : >"${state}/booted"
  sync "${state}/booted" "${state}"
  say "First boot. This machine powers off in ${limit_seconds} s at the latest."
fi
