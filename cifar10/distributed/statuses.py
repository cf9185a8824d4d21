"""Exit statuses by which the tasks of a cluster tell whoever supervises them what to do."""

STALLED = 75  # without peers or progress: start the task again (EX_TEMPFAIL of sysexits.h)
