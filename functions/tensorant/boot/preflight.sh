# shellcheck shell=bash
# What a machine must have before its trainer starts. Sourced by run.sh, which provides `say`, `agent`,
# CONFINED, and `fail`: it reports a code and a message and ends the run.

readonly MIN_DRIVER=580
readonly CHECK_TRIES=5
readonly CHECK_SECONDS=120

# Before anything is downloaded. Arguments: where image and workspace will lie, the image.
preflight() {
  check_architecture
  check_docker
  check_gpu
  check_disk "$1"
  check_route registry "image registry" --image "$2"
  check_route storage "run's storage"
}

check_architecture() {
  local architecture
  architecture=$(uname -m)
  [[ ${architecture} == x86_64 ]] || fail architecture "This machine is ${architecture}; the trainer needs x86_64."
}

# Docker may still be coming up when the machine is young, and a daemon that hangs never answers. `docker
# info` alone proves nothing: before Docker 23 it succeeds without a daemon.
check_docker() {
  local answer try
  command -v docker >/dev/null || fail docker_missing "Docker is not installed."
  for ((try = 1; ; try++)); do
    answer=$(limited docker version --format '{{.Server.Version}}' 2>&1) && break
    ((try < CHECK_TRIES)) ||
      fail docker_unreachable "Docker does not answer: $(gist <<<"${answer:-nothing in ${CHECK_SECONDS} s}")"
    sleep "${RETRY_SECONDS}"
  done
  answer=$(limited docker info --format '{{json .Runtimes}}' 2>&1) || true
  [[ ${answer} == *'"nvidia"'* ]] || fail nvidia_runtime "Docker has no NVIDIA runtime: $(gist <<<"${answer}")"
}

# Statuses of nvidia-smi (its manual): 9 no driver loaded, 12 its library missing; 18 (NVML) library and
# kernel module differ.
check_gpu() {
  local seen status=0 name driver
  command -v nvidia-smi >/dev/null || fail driver_missing "No NVIDIA driver is installed."
  seen=$(limited nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1) || status=$?
  case ${status} in
    0) ;;
    9 | 12 | 18) fail driver_missing "The NVIDIA driver does not work: ${seen}" ;;
    *) fail gpu_missing "nvidia-smi sees no GPU: ${seen:-status ${status}}" ;;
  esac
  [[ ${seen} != *$'\n'* ]] ||
    fail gpu_count "This machine has $(wc -l <<<"${seen}") GPUs; a run uses exactly one."
  IFS=, read -r name driver <<<"${seen}"
  driver=${driver// /}
  [[ ${driver%%.*} =~ ^[0-9]+$ ]] || fail gpu_missing "nvidia-smi sees no GPU: ${seen}"
  ((${driver%%.*} >= MIN_DRIVER)) ||
    fail driver_too_old "The NVIDIA driver is ${driver}; ${MIN_DRIVER} or newer is needed."
  say "GPU ${name}, driver ${driver}"
}

check_disk() {
  local free_kib free_gib
  read -r _ _ _ free_kib _ < <(df -Pk "$1" | tail -n 1) || true
  free_gib=$((${free_kib:-0} / 1024 / 1024))
  ((free_gib >= MIN_FREE_DISK_GIB)) ||
    fail disk_too_small "${free_gib} GiB of disk are free; ${MIN_FREE_DISK_GIB} GiB are needed."
  say "Disk: ${free_gib} GiB free"
}

# Arguments: what the agent calls the place, what people call it, more for the agent.
check_route() {
  local trouble
  trouble=$(agent reach "$1" "${@:3}") || fail "route_$1" "The $2 can't be reached: ${trouble}."
}

# Once the image is there, since no other image may be assumed. Argument: the image.
check_gpu_in_container() {
  local seen
  seen=$(limited docker run --rm --gpus all "${CONFINED[@]}" --network none \
    --entrypoint nvidia-smi "$1" --query-gpu=name --format=csv,noheader 2>&1) ||
    fail gpu_in_container "A container sees no GPU: $(gist <<<"${seen:-nvidia-smi does not answer}")"
  say "GPU in a container: ${seen}"
}

# A GPU that has fallen off the bus can keep whoever asks waiting, and so can Docker.
limited() {
  timeout --foreground --kill-after=10 "${CHECK_SECONDS}" "$@"
}
