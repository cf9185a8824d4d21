"""Exit statuses by which the tasks of a cluster tell whoever supervises them what to do.

0 means that the run is over; 128 + the number of a signal that it is not, although the chief may
have saved a checkpoint.
"""

STALLED = 75  # without peers or progress: start the task again (EX_TEMPFAIL of sysexits.h)
