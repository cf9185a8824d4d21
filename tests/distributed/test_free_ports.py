"""Free ports."""

import contextlib
import socket

import pytest

from cifar10.distributed import free_ports


def test_they_can_be_taken_all_at_once():
    found = free_ports.choose(128)
    assert (
        len(set(found)) == 128 and 10000 < min(found) and max(found) < free_ports._first_ephemeral()
    )
    with contextlib.ExitStack() as end:
        for port in found:
            end.enter_context(contextlib.closing(socket.socket())).bind(('localhost', port))


@pytest.mark.parametrize(
    'text, lowest', [('32768\t60999\n', 32768), ('15000 20000\n', 15000), ('1024 65535\n', 32768)]
)
def test_they_are_below_those_of_connections(monkeypatch, tmp_path, text, lowest):
    (tmp_path / 'range').write_text(text)
    monkeypatch.setattr(free_ports, '_RANGE_FILE', str(tmp_path / 'range'))
    monkeypatch.setattr(free_ports, '_is_free', lambda port: True)
    assert sorted(free_ports.choose(10**5)) == list(range(10001, lowest))


@pytest.mark.parametrize('address', ['localhost', ''])
def test_a_port_that_is_taken(monkeypatch, address):
    with contextlib.closing(socket.socket()) as server:
        server.bind((address, 0))
        port = server.getsockname()[1]
        server.listen(1)
        monkeypatch.setattr(free_ports, '_LOWEST', port)
        monkeypatch.setattr(free_ports, '_first_ephemeral', lambda: port + 1000)
        assert port not in free_ports.choose(1000)
