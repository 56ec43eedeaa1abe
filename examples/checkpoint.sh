#!/usr/bin/env bash
#GPUQ --name checkpoint --gpus 1 --grace 20s --timeout 1h
# Counts to STEPS, a step a second. When it has to make room it gets SIGTERM: it saves how far it got and leaves with 0,
# which counts as preempted, so it runs again later, and then goes on from there.
# Try it: submit it, then submit a job that preempts it, and watch `gpuq logs -f JOB`.
set -euo pipefail

steps=${STEPS:-60}
folder=${GPUQ_CHECKPOINT_DIR:-$PWD}  # of the job, not of the attempt; on every node where it is shared
saved=$folder/checkpoint
step=0

save() {
  echo "$step" > "$saved.new"
  sync "$saved.new"
  mv "$saved.new" "$saved"  # whole or not at all
}

leave() {
  save
  echo "told to stop ($(cat "${GPUQ_STOP_REASON_FILE:-/dev/null}")); saved a checkpoint at step $step"
  exit 0
}
trap leave TERM

mkdir -p "$folder"
if [ -s "$saved" ]; then
  step=$(cat "$saved")
  echo "going on from the checkpoint at step $step"
else
  echo "step 0 of $steps"
fi
while [ "$step" -lt "$steps" ]; do
  sleep 1 &
  wait $!  # unlike a plain sleep, this ends when the signal comes
  step=$((step + 1))
  [ $((step % 10)) -ne 0 ] || { save; echo "step $step of $steps"; }
done
rm -f "$saved"
echo "done"
