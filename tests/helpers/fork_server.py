"""Process that has imported TensorFlow, and forks scripts: most of a short run is the import.

It reads a line of JSON per script from stdin, and three file descriptors (the script's stdin,
stdout and stderr) from a socket. It writes the process id of the script, and later its exit status.
It kills every script at the end of its input, also after the tests were killed.
"""

import gc
import json
from multiprocessing import reduction
import os
import runpy
import select
import signal
import socket
import sys
import traceback
import warnings

from cifar10.system import startup

if __name__ == '__main__':
    startup.import_tensorflow()

from cifar10.scripts import cifar10_distributed_train  # noqa: F401 (imported for the scripts)
from tests.helpers import forks, gates

_POLL_SECS = 0.01


def _serve(channel):
    requests, children = open(0, 'rb', buffering=0), set()  # noqa: SIM115 (until the end)
    while True:
        if select.select([requests], [], [], _POLL_SECS if children else None)[0]:
            line = requests.readline()
            if not line:
                break
            children.add(_fork(json.loads(line.decode()), reduction.recvfds(channel, 3)))
        while children:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            children.remove(process)
            _tell(
                process, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            )
    for process in children:
        os.kill(process, signal.SIGKILL)


def _tell(*numbers):
    os.write(1, (' '.join(map(str, numbers)) + '\n').encode())


def _fork(request, files):
    with warnings.catch_warnings():  # Python 3.12 warns of a fork with threads
        warnings.simplefilter('ignore')
        process = os.fork()
    if not process:
        _run(request, files)
    for file in files:
        os.close(file)
    _tell(process)
    return process


def _enter(checkout):
    """Let the script import the packages of another checkout; TensorFlow stays imported."""
    os.chdir(checkout)
    for name in list(sys.modules):
        if name.split('.')[0] in ('cifar10', 'scripts'):
            del sys.modules[name]


def _run(request, files):
    """Run the script in this process, and exit with its status after flushing its output."""
    status = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.environ.update(request['environment'])
        if request['gate']:
            gates.install_gate(request['gate'])
        sys.argv = request['command']
        if request['checkout'] != forks.ROOT:
            _enter(request['checkout'])
        runpy.run_path(sys.argv[0], run_name='__main__')
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()  # Up to Python 3.8, a pipe is fully buffered.
        finally:  # This process must never continue as a second fork server.
            os._exit(status)


if __name__ == '__main__':
    gc.freeze()  # Else a garbage collection in a script would copy all pages of memory.
    _serve(socket.socket(fileno=int(sys.argv[1])))
