#!/bin/sh
# Ten runs of the same program, three at a time; each knows which one it is.
#GPUQ --name sweep
#GPUQ --array 0-9%3
rate=$(echo "0.1 0.05 0.02 0.01 0.005 0.002 0.001 0.0005 0.0002 0.0001" | cut -d ' ' -f $((GPUQ_ARRAY_INDEX + 1)))
echo "run $GPUQ_ARRAY_INDEX of $GPUQ_ARRAY_SIZE with rate $rate"
