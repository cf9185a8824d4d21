"""The public hosts of the archives."""

import os
import re

from six.moves import urllib

from cifar10.data import catalog
from tests.helpers import programs

URLS = [
    (archive, url)
    for published in catalog.PUBLISHED.values()
    for archive in published.archives
    for url in archive.urls
]


def test_the_page_names_each_host():
    page = os.path.join(programs.ROOT, 'docs', 'own_images.md')
    with open(page, encoding='utf-8') as file:
        hosts = re.search(r'\*\*Hosts\*\*(.*?)\n\n', file.read(), re.S).group(1)
        named = re.findall('`(.*?)`', hosts)
    assert sorted(named) == sorted({urllib.parse.urlsplit(url).hostname for _, url in URLS})
