"""The public hosts of the archives, where there is a network."""

import hashlib
import os
import re
import socket
import time

import pytest
from six.moves import urllib

from cifar10.data import catalog
from tests.helpers import programs

URLS = [
    (archive, url)
    for published in catalog.PUBLISHED.values()
    for archive in published.archives
    for url in archive.urls
]
# as programs of other projects show them
NUM_BYTES = {
    'cifar-10-binary.tar.gz': 170052171,
    'cifar-10-python.tar.gz': 170498071,
    'cifar-100-binary.tar.gz': 168513733,
    'cifar-100-python.tar.gz': 169001437,
}
DEADLINE_SECS = 60  # The official host needs an hour.


@pytest.fixture(scope='module')
def network():
    for _, url in URLS:
        try:
            socket.create_connection((urllib.parse.urlsplit(url).hostname, 443), 5).close()
            return
        except OSError:
            pass
    pytest.skip('there is no network')


def test_the_page_names_each_host():
    page = os.path.join(programs.ROOT, 'docs', 'own_images.md')
    with open(page, encoding='utf-8') as file:
        hosts = re.search(r'\*\*Hosts\*\*(.*?)\n\n', file.read(), re.S).group(1)
        named = re.findall('`(.*?)`', hosts)
    assert sorted(named) == sorted({urllib.parse.urlsplit(url).hostname for _, url in URLS})


@pytest.mark.long
@pytest.mark.parametrize('archive, url', URLS, ids=[url for _, url in URLS])
def test_a_host_has_the_published_archive(network, archive, url):
    """The MD5 of a fast host, the length of each one."""
    md5, start = hashlib.md5(), time.monotonic()
    with urllib.request.urlopen(url, timeout=DEADLINE_SECS) as response:
        length = int(response.headers['Content-Length'])
        assert length == NUM_BYTES[archive.name]
        num_bytes = 0
        while num_bytes < length and time.monotonic() < start + DEADLINE_SECS:
            chunk = response.read1(1 << 18)
            md5.update(chunk)
            num_bytes += len(chunk)
            assert chunk, f'closed after {num_bytes} bytes'
    assert num_bytes < length or md5.hexdigest() == archive.md5
