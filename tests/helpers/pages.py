"""README.md and docs/*.md: headings, links, commands and programs."""

import collections
import glob
import os
import re
import shlex
from typing import NamedTuple

from tests.helpers.forks import ROOT

PATHS = [os.path.join(ROOT, 'README.md')] + sorted(glob.glob(os.path.join(ROOT, 'docs', '*.md')))
NAMES = [os.path.basename(path) for path in PATHS]

_FENCED = re.compile(r'^( *)```(\w*)\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r'`(python (?:scripts|docs)/[^`]+)`')
_SHELLS = ('', 'bash', 'sh', 'console')
_PROGRAMS = r'[\w./-]*python[\w.]*|pip|\.|tensorboard|git|trap|ruff|kubectl|sbatch'


class Item(NamedTuple):
    """A command or a Python program of a page."""

    page: str  # the name of its file
    text: str
    is_python: bool = False
    file: str = ''  # the name under which the page tells the reader to save a program

    def __str__(self):
        return f'{self.page}: {self.text}'


def read(page):
    """Return the text of a page."""
    with open(PATHS[NAMES.index(page)]) as opened:
        return opened.read()


def anchors(page):
    """Return the anchors that GitHub makes of the headings."""
    found, times = [], collections.Counter()
    for heading in re.findall(r'^#+ (.*)$', _FENCED.sub('', read(page)), re.MULTILINE):
        text = re.sub(r'!?\[(.*?)\]\(.*?\)', r'\1', heading).replace('`', '').lower().strip()
        anchor = re.sub(r'[^\w\- ]', '', text).replace(' ', '-')
        found.append(f'{anchor}-{times[anchor]}' if times[anchor] else anchor)
        times[anchor] += 1
    return found


def links(page):
    """Return the targets of the links and images that lead to files of the repository."""
    text = re.sub('`[^`\n]*`', '', _FENCED.sub('', read(page)))
    targets = re.findall(r'\]\(([^)\s]+)', text)
    return [target for target in targets if not re.match('[a-z]+:', target)]


def flags(script):
    """Return the names of the flags of a script that flags.md lists."""
    sections = dict(
        section.split('\n', 1) for section in re.split('^###? ', read('flags.md'), flags=re.M)[1:]
    )
    own = sections[script + '.py']
    # `--flag` of [Group] names single flags of a group.
    groups = re.findall(r'(?<! of )\[([\w ]+)\]\(#', own)
    tables = ''.join([own, *(sections[group] for group in groups)])
    single = re.findall(r'((?:`--\w+`(?:, )?)+) of \[', own)
    return set(re.findall(r'^`--(\w+)`', tables, re.M) + re.findall(r'--(\w+)', ''.join(single)))


def items(page):
    """Return the commands and programs of a page; commands within a sentence are the last ones."""
    text, found = read(page), []
    for block in _FENCED.finditer(text):
        indent, language, body = block.groups()
        body = re.sub('^' + indent, '', body, flags=re.MULTILINE)
        if language == 'python':
            saved = re.findall(r'as\s+`(\w+\.py)`', text[: block.start()].rsplit('```', 1)[-1])
            found.append(Item(page, body, True, saved[-1] if saved else ''))
        elif language in _SHELLS:
            found += [Item(page, command) for command in _commands(body)]
    return found + [Item(page, command) for command in _INLINE.findall(_FENCED.sub('', text))]


def _commands(block):
    """Split a block into commands.

    With prompts, the lines without one are output. Without prompts, a block that does not begin
    with a known program is one item.
    """
    lines = block.splitlines()
    if any(line.startswith('$ ') for line in lines):
        lines = [line[2:] for line in lines if line.startswith('$ ')]
    elif not re.match(rf'(#.*\n)*({_PROGRAMS})\b', block):
        return [block.rstrip()]
    commands, command = [], ''
    for line in lines:
        command += line
        if command.endswith('\\') or not _is_closed(command):
            command += '\n'
        else:
            commands += _parts(command)
            command = ''
    return commands + _parts(command)


def _is_closed(command):
    """Return True if each quotation mark of a command has its partner."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def _parts(command):
    """Split a command at `&&`; leave comments out."""
    if '\n' in command:
        return [command]
    return [
        part.strip() for part in re.sub(r'(^|\s)#.*', '', command).split(' && ') if part.strip()
    ]
