"""Ports of this machine that servers can take."""

import contextlib
import os
import random
import socket

_LOWEST = 10001
# Linux: the ports that outgoing connections take
_RANGE_FILE = '/proc/sys/net/ipv4/ip_local_port_range'
_EPHEMERAL = 32768  # the first of them where no file tells


def choose(number):
    """Returns a list of so many different ports that nobody uses now.

    They are below those that the system gives to outgoing connections, so that none of these takes
    one before its server starts. If the system gives nearly every port to connections, they are
    below 32768.
    """
    end = _first_ephemeral()
    candidates = list(range(_LOWEST, end if end - _LOWEST >= 1000 else _EPHEMERAL))
    # two launchers that start at the same time seldom choose the same
    random.SystemRandom().shuffle(candidates)
    found = []
    for port in candidates:
        if len(found) == number:
            break
        if _is_free(port):
            found.append(port)
    return found


def _first_ephemeral():
    if os.path.exists(_RANGE_FILE):
        with open(_RANGE_FILE) as numbers:
            return int(numbers.read().split()[0])
    return _EPHEMERAL


def _is_free(port):
    with contextlib.closing(socket.socket()) as server:
        try:
            server.bind(('', port))
        except OSError:
            return False
    return True
