#!/bin/sh
# Everything that needs a GPU, in one command and under nine minutes: kernels against their
# oracles, the calibration suite, its fit and plots, and two policies validated step by step.
#
#   scripts/gpu_check.sh [--dry-run] [--partial]
#
# OUT               where all rows, the profile and the table go (default out/gpu_check): a new
#                   folder, an empty one, or that of an earlier check
# PYTHON            the interpreter (default python3), with torch and triton
# SERVETWIN_WHEELS  a folder of wheels, for modules that the machine lacks and cannot fetch
#
# --dry-run pretends every time, on a CPU if need be: it proves the script, never a GPU.
# --partial runs what the modules there allow; without it a missing module stops everything.
# Exit code 0: every bar is kept. 1: one is missed, or a step did not run. 2: nothing was begun
# (no GPU, no torch, a folder that holds other things).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
exec "${PYTHON:-python3}" "$root/scripts/gpu_check/check.py" "$@"
