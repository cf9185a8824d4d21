#!/usr/bin/env python3
"""Runs the programs that the runner promises to run, other_programs.jsonl; compares the verdicts.

They are those of two books, those of the CIFAR-10 tutorial in all versions, and programs that train
on CIFAR-10, of 108 repositories.

What none of them reaches is not in `tf1_runner`. To record it, run them with `coverage` (a file
sitecustomize.py that starts it) with TensorFlow 2.21 and 1.15, and log each name that a program
gets from the tables of tf.contrib and of TensorFlow before 1.0.

It is no test of the suite, because it needs clones of the repositories, their data and an hour:

  python tests/tf1_runner/other_programs.py CLONES DATA [PART OF A NAME]

CLONES has a clone of each repository, OWNER+NAME. DATA has what the programs read: the versions of
CIFAR-10 and CIFAR-100 by their usual names, the archives beside them, `mnist` (four files), `ptb`
(three text files), text8.zip, `deepchem` (Tox21), `packages` (deepchem and rdkit), and the own
formats of three programs in `lia`, `pam` and `tfc`. /tmp/cifar10_data is a link to it, because
programs name this directory. A line of the list is an object with

  repository, commit, program: of github.com
  edits: file -> list of [regular expression, replacement]: only steps, sizes and paths
  files: new file -> file in DATA or CLONES
  directories: new directories
  arguments, options: of the program and of the runner
  first: list of the program that must have ended before, such as a training, and its arguments
  beside: list of the program that must run at the same time, such as a server, and its arguments
  packages: further packages that the program needs
  correct: True if the program is correct for Python 3 and TensorFlow 1; else `why` is the reason
  output: regular expression of the line that shows that the program works
  before: the end of the program with the runner of version 1.4.0
  after: the end with today's runner: "runs", or the last line
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'other_programs.jsonl')
DEADLINE_SECS = 240


def _copy(row, clones, fill, top):
    """Copy a repository, apply the edits, and return the path of the program."""
    owner, name = row['repository'].split('/')
    copy = os.path.join(top, name)
    shutil.copytree(
        os.path.join(clones, f'{owner}+{name}'),
        copy,
        symlinks=True,
        ignore=shutil.ignore_patterns('.git'),
    )
    for path, edits in row.get('edits', {}).items():
        path = os.path.join(copy, path)
        with open(path, encoding='utf-8', errors='surrogateescape', newline='') as file:
            text = file.read()
        for pattern, replacement in edits:
            text = re.sub(pattern, fill(replacement), text)
        with open(path, 'w', encoding='utf-8', errors='surrogateescape', newline='') as file:
            file.write(text)
    for path, source in row.get('files', {}).items():
        os.makedirs(os.path.dirname(os.path.join(copy, path)), exist_ok=True)
        os.symlink(fill(source), os.path.join(copy, path))
    return os.path.join(copy, row['program'])


def run(row, clones, data):
    """Return "runs", or the last line of the program."""
    with tempfile.TemporaryDirectory() as top:

        def fill(text):
            for name, value in [('data', data), ('clones', clones), ('out', top)]:
                text = text.replace('{' + name + '}', value)
            return text

        program = _copy(row, clones, fill, top)
        directory = os.path.dirname(program)
        for name in row.get('directories', []):
            os.makedirs(os.path.join(directory, fill(name)))
        environ = {name: fill(value) for name, value in row.get('env', {}).items()}

        def start(words):
            command = [sys.executable, os.path.join(ROOT, 'scripts', 'cifar10_run.py'), *words]
            return subprocess.Popen(
                [fill(word) for word in command],
                cwd=directory,
                env=dict(os.environ, MPLBACKEND='Agg', PYTHONUNBUFFERED='1', **environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
                errors='replace',
                start_new_session=True,
            )

        if 'first' in row:
            start(row['first']).communicate()
        beside = start(row['beside']) if 'beside' in row else None
        process = start(row.get('options', []) + [program] + row.get('arguments', []))
        timer = threading.Timer(DEADLINE_SECS, os.killpg, [process.pid, signal.SIGKILL])
        timer.start()
        verdict = _verdict(process, row).replace(top + '/', '')
        timer.cancel()
        for one in filter(None, [process, beside]):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.communicate()
        return verdict


def _verdict(process, row):
    """Return "runs" after the line that shows it, or the last line at the end of the process."""
    lines = ['no output']
    for line in process.stdout:
        lines.append(line.strip())
        # A short program is to end without an error.
        if not row.get('whole') and re.search(row['output'], line):
            return 'runs'
    is_shown = re.search(row['output'], '\n'.join(lines), re.DOTALL)
    return 'runs' if process.wait() == 0 and is_shown else [line for line in lines if line][-1]


def main():
    """Run the programs whose repository or path contains the last argument."""
    clones, data = map(os.path.abspath, sys.argv[1:3])
    with open(LIST, encoding='utf-8') as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        name = f'{row["repository"]} {row["program"]}'
        if (sys.argv + [''])[3] in name:
            found = run(row, clones, data)
            is_same = found == row['after'] or {found, row['after']}.isdisjoint({'runs'})
            print('same' if is_same else 'OTHER', name, '|', found, flush=True)


if __name__ == '__main__':
    main()
