"""Helpers of several test modules.

Run a script:
  programs: `call` inside this process, first choice; `run` and `start` in another one.
  forks, fork_server: the other process, forked from one that has imported TensorFlow.
  clusters, gates: a process per task; a worker that waits at a step.
  faults: its flags, full and read-only disks, and what a user sees at its end.
  notebooks: a notebook in a kernel.
  listing: the names in a directory.

Make the input of a test:
  data_sets: small data sets; `conftest.py` has one for all tests.
  pictures, image_files, python_files, download_server: files to convert, and a host.
  checkpoints: the network with random weights.
  changed_networks: the networks of docs/exercises.md, and their layers in NumPy.
  small_run: training on one variable with known values.
  fields, scored: hyperparameters; the metrics of an evaluation.
  queues: a session with queue runners.

Find what is expected:
  oracle: network, loss and normalization in NumPy.
  events, messages: what a run has written to TensorBoard, and printed.
  pages: links, commands and programs of README.md and docs/.
"""
