"""Imports TensorFlow without its start-up chatter.

Set TF_CPP_MIN_LOG_LEVEL to 0 or 1 to see what TensorFlow has to say; this module then leaves everything as it is.
"""
import os
import sys
import tempfile


def _import_tensorflow():
    # Up to TensorFlow 2.21 some lines are written before the variable below is honoured, so file descriptor 2 leads to a
    # file during the import; what it caught is shown if the import fails.
    try:
        stderr = os.dup(2)
    except OSError:  # closed: nothing will be seen
        return
    with tempfile.TemporaryFile() as chatter:
        os.dup2(chatter.fileno(), 2)
        try:
            import tensorflow.compat.v1  # pylint: disable=unused-import,import-outside-toplevel
        except BaseException:
            chatter.seek(0)
            os.write(stderr, chatter.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


# Level 3 also hides errors: those that matter reach Python as exceptions.
if 'tensorflow' not in sys.modules and os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3') not in ('0', '1'):
    _import_tensorflow()
