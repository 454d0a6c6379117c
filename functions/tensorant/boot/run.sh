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
readonly PULL_TRIES=5
readonly REFUSED=3       # agent.py: the control plane does not want this machine
readonly NOT_STARTED=125 # docker run: the container was never started
heartbeat=""
explained=""

main() {
  start_once
  introduce
  # shellcheck source=/dev/null
  . "${library}/preflight.sh"
  preflight "${state_root}"
  report preflight_passed
  pull
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
      say "No answer from ${AGENT_URL}. Check the subnet's route out, DNS and the security group's outbound HTTPS."
      exit 1
      ;;
  esac
  explained=""
  python3 "${library}/agent.py" heartbeats &
  heartbeat=$!
  report booted
}

pull() {
  local try
  for ((try = 1; ; try++)); do
    say "Pulling ${image}"
    docker pull --quiet "${image}" >"${pull_log}" 2>&1 && break
    say "$(tail -n 1 "${pull_log}")"
    ((try < PULL_TRIES)) ||
      fail image_pull "The image ${image} could not be pulled: $(tail -n 1 "${pull_log}")"
    sleep "${RETRY_SECONDS}"
  done
  report image_pulled
}

# From here on the trainer sends the heartbeats, and ships its own log.
train() {
  local status=0
  mkdir -p "${state_root}/data"
  stop_heartbeats
  say "Starting the trainer"
  docker run --name tensorant-trainer --gpus all \
    --volume "${state_root}/data:/workspace/data" \
    --volume "${SESSION_FILE}:/run/tensorant/session.json:ro" \
    "${image}" train >"${trainer_log}" 2>&1 || status=$?
  case ${status} in
    0) say "The trainer has ended well." ;;
    "${NOT_STARTED}") fail container_start "Docker could not start the trainer: $(tail -n 1 "${trainer_log}")" ;;
    *)
      last_words
      report trainer_exited --exit-code "${status}" --message "The trainer's container ended with status ${status}."
      ;;
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

# Console and log; the agent ships the log with the next report.
say() {
  echo "tensorant: $*"
  echo "$(date -u +%FT%TZ) $*" >>"${HOST_LOG}"
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
  agent report "$@" || say "$1 could not be reported"
}

agent() {
  python3 "${library}/agent.py" "$@"
}

main
