"""Hooks of the training session: what happens before, between and after the steps.

TensorFlow calls a method of all hooks, in the order of the list in `train()`, before it calls the
next method: `begin` before the session is made, `after_create_session`, `before_run` and
`after_run` around each step, and `end` after the last step, unless an exception ends the session.
"""
