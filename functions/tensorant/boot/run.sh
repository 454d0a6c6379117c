#!/usr/bin/env bash
# One training, once: introduce this machine, look at it, fetch the image, run the trainer, wait for release.
set -euo pipefail
umask 077

readonly root="${ROOT:-}"
readonly library="${root}/usr/local/lib/tensorant"
readonly state_root="${root}/var/lib/tensorant"
set -a
# shellcheck source=/dev/null
. "${root}/etc/tensorant/boot.env"
set +a
export STATE="${state_root}/attempts/${ATTEMPT_NAME}"
export TOKEN_FILE="${root}/etc/tensorant/token"
export SESSION_FILE="${root}/run/tensorant/session.json"
export HOST_LOG="${STATE}/host.log"
readonly trainer_log="${STATE}/trainer.log"
readonly pull_log="${STATE}/pull.log"
readonly data="${state_root}/data"
readonly PULL_TRIES=5
readonly REFUSED=3 # agent.py: the control plane does not want this machine
# Containers run as root over files that root owns, and need no right beyond that. What they print is
# read from `docker run` itself; a log driver would fill the disk with a second copy.
readonly CONFINED=(--cap-drop ALL --security-opt no-new-privileges --log-driver none)
heartbeat=""
explained=""

main() {
  start_once
  introduce
  # shellcheck source=/dev/null
  . "${library}/preflight.sh"
  preflight "${state_root}" "${image}"
  report preflight_passed
  pull
  check_gpu_in_container "${image}"
  train
}

# The directory is the proof that this attempt has begun: a restart, or a second start, ends here.
start_once() {
  mkdir -p "${STATE}"
  if ! mkdir "${STATE}/started" 2>/dev/null; then
    echo "tensorant: This attempt has run before; nothing is trained again."
    exit 0
  fi
  sync "${STATE}"
  trap finish EXIT
  trap 'trap - EXIT; exit 143' TERM
}

# Needs a route out. A machine that cannot introduce itself has nobody to report to but the console.
introduce() {
  local status=0
  explained=yes
  say "Introducing this machine to ${AGENT_URL}"
  image=$(agent exchange) || status=$?
  case ${status} in
    0) ;;
    "${REFUSED}")
      say "This machine is not wanted: its attempt is over, or its token is in use."
      RELEASE_WAIT_SECONDS=0
      exit 1
      ;;
    *)
      say "route_control_plane: The control plane can't be reached at ${AGENT_URL}: ${image}."
      say "Check the subnet's route out, the VPC's DNS and the security group's outbound HTTPS."
      exit 1
      ;;
  esac
  explained=""
  python3 "${library}/agent.py" heartbeats &
  heartbeat=$!
  report booted
}

pull() {
  local try reason
  for ((try = 1; ; try++)); do
    say "Pulling ${image}"
    docker pull --quiet "${image}" >"${pull_log}" 2>&1 && break
    reason=$(gist <"${pull_log}")
    say "${reason}"
    [[ ${reason} != *"no space left"* ]] || fail disk_too_small "The disk has no room for the image: ${reason}"
    ((try < PULL_TRIES)) || fail image_pull "The image ${image} could not be pulled: ${reason}"
    sleep "${RETRY_SECONDS}"
  done
  report image_pulled
}

# From here on the trainer sends the heartbeats, and ships its own log. Docker's default network stays:
# a container on it is one hop further than the host, out of reach of the instance's metadata and role.
# Shared memory is what PyTorch's data loaders pass batches through. Statuses 125 to 127 are Docker's own,
# also when its daemon goes away under a trainer; 137 and 143 say that somebody ended the trainer. What a
# trainer has begun is never told as something else: a machine is released after a failed preflight.
train() {
  local status=0
  mkdir -p "${data}"
  stop_heartbeats
  say "Starting the trainer"
  docker run --name tensorant-trainer --gpus all "${CONFINED[@]}" --shm-size 4g --stop-timeout 60 \
    --volume "${data}:/workspace/data" \
    --volume "${SESSION_FILE}:/run/tensorant/session.json:ro" \
    "${image}" train >"${trainer_log}" 2>&1 || status=$?
  if ((status == 0)); then
    say "The trainer has ended well."
    return
  fi
  last_words
  [[ -n $(ls -A "${data}") ]] || nothing_done "${status}"
  report trainer_exited --exit-code "${status}" --message "The trainer's container ended with status ${status}."
}

nothing_done() {
  case $1 in
    125 | 126 | 127) fail container_start "Docker could not start the trainer: $(gist <"${trainer_log}")" ;;
    137 | 143) ;;
    *) fail image_broken \
      "The trainer's container ended with status $1 before it had done anything: $(gist <"${trainer_log}")" ;;
  esac
}

# A trainer that dies young has shipped nothing: its last lines travel with the host's own.
last_words() {
  local line
  while IFS= read -r line; do say "trainer: ${line}"; done < <(tail -n 40 "${trainer_log}")
}

# However this script ends, the machine waits for its release, and then turns itself off.
finish() {
  local status=$?
  set +e
  ((status == 0)) || [[ -n ${explained} ]] ||
    report preflight_failed --code boot_script --message "The start-up script failed with status ${status}."
  stop_heartbeats
  say "Waiting ${RELEASE_WAIT_SECONDS} s for release."
  sleep "${RELEASE_WAIT_SECONDS}"
  say "Nobody has released this machine; powering off."
  systemctl poweroff
}

stop_heartbeats() {
  if [[ -n ${heartbeat} ]]; then
    kill "${heartbeat}" 2>/dev/null || true
    wait "${heartbeat}" 2>/dev/null || true
    heartbeat=""
  fi
}

# Console and log; the agent ships the log with heartbeats and reports. A full disk must not end this script.
say() {
  echo "tensorant: $*"
  echo "$(date -u +%FT%TZ) $*" >>"${HOST_LOG}" || true
}

# The line of a tool's output that says why; Docker likes to end with a pointer to its help.
gist() {
  sed -e '/^[[:space:]]*$/d' -e '/--help/d' | tail -n 1
}

fail() {
  local code=$1 message=$2
  say "${code}: ${message}"
  explained=yes
  report preflight_failed --code "${code}" --message "${message}"
  exit 1
}

report() {
  say "$1"
  agent report "$@" >/dev/null || say "$1 could not be reported"
}

agent() {
  python3 "${library}/agent.py" "$@"
}

main
