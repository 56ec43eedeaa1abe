# Common to the scripts of tools/: source it, do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
# One compiler needs up to 1 GB: not more of them than memory allows.
JOBS=${GPUQ_JOBS:-$(awk -v cpus="$(nproc)" \
  '/MemAvailable/ { fit = int($2 / 1000000); print (fit < 1) ? 1 : (fit < cpus ? fit : cpus) }' \
  /proc/meminfo)}
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$JOBS}

die() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

# build_dir PRESET: the build folder of a preset of CMakePresets.json.
build_dir() {
  if [ "$1" = dev ]; then echo "$ROOT/build"; else echo "$ROOT/build/$1"; fi
}

# configure PRESET: quiet unless it fails.
configure() {
  local log
  log=$(cmake --preset "$1" 2>&1) || { echo "$log" >&2; return 1; }
}

# build PRESET [TARGET...]: configures first. (No reliance on set -e: it is off inside conditions.)
build() {
  local preset=$1
  shift
  configure "$preset" || return
  cmake --build "$(build_dir "$preset")" -j "$JOBS" ${1:+--target "$@"} -- -k 0
}

# build_quietly PRESET [TARGET...]: shows the output only if it fails.
build_quietly() {
  local log
  log=$(build "$@" 2>&1) || { grep -vE '^\[[0-9]+/[0-9]+\]' <<< "$log" >&2; return 1; }
}
