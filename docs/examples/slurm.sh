#!/bin/bash
#SBATCH --job-name=cifar10 --nodes=2 --ntasks-per-node=1 --distribution=block
# All-reduce. Run sbatch in the checkout. The trainer gets the flags after the name of this file:
#   one task per machine:  sbatch --nodes=2 --ntasks-per-node=1 --gpus-per-task=4 docs/examples/slurm.sh --num_gpus=4 --recipe=fast
#   one task per GPU:      sbatch --nodes=2 --ntasks-per-node=4 --gpus-per-task=1 docs/examples/slurm.sh --recipe=fast
# Add --cpus-per-task and --time for your cluster. Do not add --fresh: each restart would start a new run.
# $HOME must be the same directory on all nodes.
. venv/bin/activate
# One process prepares the data, before the tasks start.
python scripts/cifar10_dataset.py download --data_dir="$HOME/cifar10_data" || exit
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; fi
port=$((10000 + SLURM_JOB_ID % 1000 * 20))  # Jobs that share a node need different ports.
WORKERS=$(for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  for ((i = 0; i < SLURM_NTASKS_PER_NODE; i++)); do echo "$host:$((port + i))"; done
done | paste -s -d ,)
export WORKERS
# Restart lost and killed tasks, and those that end with status 75 because another one is lost.
# After a configuration error (status 1 or 2), end all tasks.
srun --kill-on-bad-exit=1 bash -c '
  trap exit INT TERM
  until python scripts/cifar10_distributed_train.py --worker_hosts="$WORKERS" --job_name=worker --task_index="$SLURM_PROCID" \
      --data_dir="$HOME/cifar10_data" --train_dir="$HOME/cifar10_train" "$@"; do
    status=$?; [ $status -gt 2 ] || exit $status
  done' task "$@"
