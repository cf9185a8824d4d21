"""docs/zh/*.md: links, and commands that are those of the English pages."""

import glob
import os
import re

import pytest

from tests.helpers import pages
from tests.helpers.forks import ROOT

PATHS = sorted(glob.glob(os.path.join(ROOT, 'docs', 'zh', '*.md')))


def _read(path):
    with open(path, encoding='utf-8') as opened:
        return opened.read()


def _blocks(text):
    """Return the fenced blocks of commands of a page, in order."""
    blocks = re.findall(r'^```(\w*)\n(.*?)^```$', text, re.M | re.S)
    return [block for language, block in blocks if not language]


def _anchors(text):
    """Return the anchors that GitHub makes of the headings."""
    headings = re.findall(r'^#+ (.*)$', text, re.M)
    return {re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in headings}


def test_the_commands_are_those_of_the_readme():
    """Those for the Chinese book are on the English page of the books."""
    chinese = _blocks(_read(os.path.join(ROOT, 'docs', 'zh', 'README.md')))
    sections = re.split('^## ', pages.read('README.md'), flags=re.M)
    english = [
        block
        for section in sections
        if not section.startswith(('Four GPUs', 'Tests'))
        for block in _blocks(section)
    ]
    assert [block for block in chinese if '../practice' not in block] == english
    of_the_book = [block for block in chinese if '../practice' in block]
    known = ''.join(_blocks(pages.read('books.md'))).splitlines()
    assert of_the_book and set(''.join(of_the_book).splitlines()) <= set(known)


def test_the_page_for_own_work():
    """Its programs, commands and numbers of parameters are those of the English pages."""
    text = _read(os.path.join(ROOT, 'docs', 'zh', 'own_work.md'))
    english = ''.join(map(pages.read, ['exercises.md', 'own_images.md', 'fine_tuning.md']))
    programs = re.findall(r'^```python\n.*?^```$', text, re.M | re.S)
    assert len(programs) == 5 and all(program in english for program in programs)
    commands = ''.join(_blocks(text)).splitlines()
    assert commands and set(commands) <= set(english.splitlines())
    numbers = re.findall(r'(?<![\d,.])\d{6,7}(?![\d,.])', text)
    assert len(numbers) >= 6 and set(numbers) <= set(re.findall(r'\d+', english))


@pytest.mark.parametrize('path', PATHS, ids=os.path.basename)
def test_flags(path):
    """Each flag exists, also in the text."""
    others = {'logdir', 'logdir_spec', 'depth', 'version', 'num_filters'}  # not in flags.md
    known = set(re.findall(r'^`--(\w+)`', pages.read('flags.md'), re.M)) | others
    assert set(re.findall(r'(?<!-)--(\w+)', _read(path))) <= known


@pytest.mark.parametrize('path', PATHS, ids=os.path.basename)
def test_links(path):
    text = _read(path)
    targets = re.findall(r'\]\(([^)\s]+)', re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S))
    assert targets
    for target in targets:
        if re.match('[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        linked = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        assert os.path.exists(linked), target
        if anchor:
            assert anchor in _anchors(_read(linked)), target


@pytest.mark.parametrize('path', PATHS, ids=os.path.basename)
def test_punctuation(path):
    """Between Chinese characters, punctuation has the full width."""
    text = re.sub('`[^`\n]*`', '', re.sub(r'^```.*?^```$', '', _read(path), flags=re.M | re.S))
    assert re.findall('[一-鿿][,;:!?(]|[)][一-鿿]', re.sub(r'\]\([^)]*\)', ']', text)) == []


def test_the_messages_are_those_of_the_english_page():
    """Each text of the table is on the page for troubleshooting, too."""
    (table,) = re.findall(
        r'^\| 屏幕上的文字 .*\n\|.*\n((?:\|.*\n)+)',
        _read(os.path.join(ROOT, 'docs', 'zh', 'README.md')),
        re.M,
    )
    english = pages.read('troubleshooting.md')
    rows = [re.findall('`(.*?)`', row.split(' | ')[0]) for row in table.splitlines()]
    assert len(rows) >= 10
    for text in sum(rows, []):
        assert f'`{text}' in english, text
