# shellcheck shell=bash
# What a machine must have before anything is downloaded. Sourced by run.sh, which provides `fail`:
# it reports a code and a message and ends the run. Argument: where image and workspace will lie.

readonly MIN_DRIVER=580
readonly CHECK_TRIES=5

preflight() {
  check_architecture
  check_docker
  check_gpu
  check_disk "$1"
}

check_architecture() {
  local architecture
  architecture=$(uname -m)
  [[ ${architecture} == x86_64 ]] ||
    fail architecture "This machine is ${architecture}; the trainer needs x86_64. Choose an x86_64 type and AMI."
}

# Docker may still be coming up when the machine is young.
check_docker() {
  local runtimes try
  command -v docker >/dev/null || fail docker_missing "Docker is not installed. Use an AMI with Docker Engine."
  for ((try = 1; ; try++)); do
    runtimes=$(docker info --format '{{json .Runtimes}}' 2>&1) && break
    ((try < CHECK_TRIES)) || fail docker_unreachable "Docker does not answer: ${runtimes}"
    sleep "${RETRY_SECONDS}"
  done
  [[ ${runtimes} == *'"nvidia"'* ]] || fail nvidia_runtime \
    "Docker has no NVIDIA runtime. Install NVIDIA Container Toolkit and run: nvidia-ctk runtime configure --runtime=docker"
}

check_gpu() {
  local seen name driver
  command -v nvidia-smi >/dev/null ||
    fail driver_missing "No NVIDIA driver is installed. Use an AMI with driver ${MIN_DRIVER} or newer."
  seen=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1) ||
    fail gpu_missing "nvidia-smi sees no GPU: ${seen}"
  IFS=, read -r name driver <<<"${seen}"
  driver=${driver// /}
  [[ ${driver%%.*} =~ ^[0-9]+$ ]] || fail gpu_missing "nvidia-smi sees no GPU: ${seen}"
  ((${driver%%.*} >= MIN_DRIVER)) ||
    fail driver_too_old "The NVIDIA driver is ${driver}; ${MIN_DRIVER} or newer is needed. Use a newer AMI."
  say "GPU ${name}, driver ${driver}"
}

check_disk() {
  local free_kib free_gib
  read -r _ _ _ free_kib _ < <(df -Pk "$1" | tail -n 1) || true
  free_gib=$((${free_kib:-0} / 1024 / 1024))
  ((free_gib >= MIN_FREE_DISK_GIB)) ||
    fail disk_too_small "${free_gib} GiB of disk are free; ${MIN_FREE_DISK_GIB} GiB are needed. Ask for a larger workspace."
  say "Disk: ${free_gib} GiB free"
}
