"""README.md and docs/*.md: links, commands and programs."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.config import HPARAMS, RECIPES
from cifar10.data import synthetic
from tests.helpers import data_sets, pages, pictures, programs
from tests.helpers.forks import DEADLINE_SECS, ROOT

RUN = [
    'README.md',
    'one_step.md',
    'listings.md',
    'own_images.md',
    'fine_tuning.md',
    'use_the_model.md',
]  # pages whose commands are run
# Commands that are not run: a pattern of `PAGE: COMMAND`.
NOT_RUN = [
    r': python3 -m venv venv$',
    r': \. venv/bin/activate$',
    r': pip install ',
    r': python -m pytest ',
    r': tensorboard ',
    r': git clone ',
    r' \.\./(dlwithtf|practice)/',
    r' --checkpoint_dir=/tmp/dlwithtf_train ',
    # These two do not end.
    r'^README.md: python scripts/cifar10_multi_gpu_train.py --num_gpus=4$',
    r'^README.md: python scripts/cifar10_eval.py$',
    r'^one_step.md: with tf.control_dependencies',  # two lines of a program
    r'^listings.md: import numpy',  # tests/test_book_listing.py runs it
    r' --train_dir=search_2 ',
]

with open(os.path.join(ROOT, 'docs', 'figures', 'measurements', 'partition.txt')) as partition:
    PARTITION = re.escape(re.sub('^#.*\n', '', partition.read(), flags=re.M))
# Documented output: page, part of the command, pattern.
PROMISED = [
    ('one_step.md', 'tf.constant(2.0)', r'^Tensor\("mul:0", shape=\(\), dtype=float32\)\n6\.0\n$'),
    ('one_step.md', 'output_partition_graphs', PARTITION),
    ('listings.md', 'import cifar10\n', r'^loss = 4\.\d\d\nloss = \d\.\d\d\n$'),
    (
        'own_images.md',
        ' convert shapes ',
        r'\n270 training and 30 test examples of circles, crosses, squares in shapes_data\n$',
    ),
    (
        'own_images.md',
        ' --train_dir=shapes_run ',
        r'\nData: 270 examples of circles, crosses, squares in shapes_data\n',
    ),
    (
        'own_images.md',
        ' --train_dir=shapes_run ',
        r' precision @ 1 = (1\.000|0\.[89]\d\d) \(\d+ of 30, step 85\)',
    ),
    ('own_images.md', ' --eval_dir=shapes_eval ', r'of 30, step 85\)'),
    (
        'own_images.md',
        ' holdout ',
        r'^225 training and 45 test examples of circles, crosses, squares in shapes_search\n$',
    ),
    (
        'own_images.md',
        ' --train_dir=search_',
        r' precision @ 1 = (1\.000|0\.[5-9]\d\d) \(\d+ of 45, step 106\)',
    ),
]
OTHER_FLAGS = {
    'flagfile',
    'help',
    'version',
    'logdir',
    'logdir_spec',
    'port',
}  # of each script, of TensorBoard

PROGRAM = """
import tensorflow as tf

tf.app.flags.DEFINE_integer('max_steps', 1, 'Steps.')
tf.app.flags.DEFINE_string('train_dir', '', 'Directory.')
step = tf.Variable(0)
train_op = step.assign_add(1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(tf.app.flags.FLAGS.max_steps):
        session.run(train_op)
    print(session.run(step))
"""


def _is_run(item):
    return not any(re.search(pattern, str(item)) for pattern in NOT_RUN)


@pytest.mark.parametrize('page', pages.NAMES)
def test_links(page):
    directory = os.path.dirname(pages.PATHS[pages.NAMES.index(page)])
    for link in pages.links(page):
        path, _, anchor = link.partition('#')
        assert os.path.exists(os.path.join(directory, path)), link
        if anchor and (not path or path.endswith('.md')):
            assert anchor in pages.anchors(os.path.basename(path) or page), link


def test_the_readme_links_each_page():
    linked = {link.partition('#')[0] for link in pages.links('README.md')}
    assert {'docs/' + page for page in pages.NAMES[1:]} <= linked


def test_files_of_docs_in_docstrings_and_messages():
    for directory in ('cifar10', 'tf1_runner', 'scripts', 'tests'):
        for top, _, names in os.walk(os.path.join(ROOT, directory)):
            for name in names:
                if name.endswith('.py'):
                    with open(os.path.join(top, name)) as opened:
                        named = re.findall(r'docs/\w[\w/.-]*\.\w+', opened.read())
                    for path in named:
                        assert os.path.exists(os.path.join(ROOT, path)), (name, path)


def test_flags():
    """Each script has the flags after its name, and each flag within a sentence exists."""
    known = set(re.findall(r'`--(\w+)`', pages.read('flags.md'))) | OTHER_FLAGS
    for page in pages.NAMES:
        text = pages.read(page).replace('\\\n', ' ')
        for script in re.findall(r'(?<!tests/)scripts/(\w+\.py)', text):
            assert os.path.exists(os.path.join(ROOT, 'scripts', script)), (page, script)
        for script, arguments in re.findall(r'\b(cifar10_\w+)\.py( --[^`\n|]*)', text):
            own, _, trainer = arguments.partition(' -- ')
            assert set(re.findall(r' --(\w+)', own)) <= pages.flags(script) | {'help'}, (
                page,
                script,
            )
            flags = pages.flags('cifar10_distributed_train')
            assert set(re.findall(r' --(\w+)', trainer)) <= flags, (page, script)
        if page == 'changelog.md':  # It has old names.
            continue
        for flag in re.findall(r'`--(?:no)?(\w+)[=`]', text):
            assert flag in known, (page, flag)


def test_the_table_of_recipes():
    """It has the hyperparameters that differ; a flag has dashes; a cell without effect is empty."""
    rows = re.findall(r'^\| `(--)?(\w+)` \|(.*)\|.*\|$', pages.read('recipes.md'), re.M)
    found = {name: [cell.strip() for cell in cells.split('|')] for _, name, cells in rows}

    def cell(recipe, name):
        value = getattr(recipe, name) if recipe.has_effect(name) else ''
        return f'{value:g}' if isinstance(value, float) else str(value)

    expected = {name: [cell(recipe, name) for recipe in RECIPES.values()] for name in HPARAMS}
    del expected['recipe']
    assert found == {name: cells for name, cells in expected.items() if len(set(cells)) > 1}
    for dashes, name, _ in rows:
        assert bool(dashes) == bool(HPARAMS[name].metadata['help']), name


def test_each_exception_and_promise_has_its_command():
    items = [item for page in RUN for item in pages.items(page)]
    for pattern in NOT_RUN:
        assert any(re.search(pattern, str(item)) for item in items), pattern
    for page, part, _ in PROMISED:
        assert any(item.page == page and part in item.text and _is_run(item) for item in items)


def _make_checkout(directory):
    """Copy the checkout to a directory, and make the input of the pages.

    In the copy, the directory replaces /tmp, because the defaults of flags lie there.
    """
    for name in ('cifar10', 'tf1_runner', 'scripts'):
        shutil.copytree(
            os.path.join(ROOT, name),
            str(directory / name),
            ignore=shutil.ignore_patterns('__pycache__'),
        )
        for source in (directory / name).rglob('*.py'):
            source.write_text(_redirect(source.read_text(), directory))
    (directory / 'bin').mkdir()
    python = directory / 'bin' / 'python'
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    data_sets.write(directory / 'cifar10_data', train_records=2)
    synthetic.maybe_write(str(directory / 'cifar10_synthetic'), records_per_file=100)
    (directory / 'my_program.py').write_text(PROGRAM)
    pictures.write(directory / 'my_photos', ['cats', 'dogs'], 10)
    (directory / 'my_files').mkdir()
    np.zeros([20, 3073], np.uint8).tofile(str(directory / 'my_files' / 'data_batch_1.bin'))
    (directory / 'my_files' / 'batches.meta.txt').write_text('cats\ndogs\n')
    for name in ('cat.jpg', 'holiday.png'):
        pictures.smooth(150, 200).save(str(directory / name))


def _is_input(item):
    """Return True for a program that makes the input of its page, and for the command to run it."""
    return bool(item.file or re.match(r'python \w+\.py$', item.text))


def _redirect(text, directory):
    return text.replace('/tmp/', f'{directory}/')


def _adapt(text, directory):
    """Redirect a command or a program; two steps replace 20, which show the same."""
    return re.sub(
        r'((?:max_steps|last_step)=|model\.ckpt-)20\b', r'\g<1>2', _redirect(text, directory)
    )


def _is_fork(item):
    """Return True for a script, except for the first one, which starts as a user starts it.

    A fork has imported TensorFlow, which is most of a short run.
    """
    scripts = [item for item in pages.items(RUN[0]) if item.text.startswith('python scripts/')]
    return item.text.startswith('python scripts/') and item != scripts[0]


def _fork(command, directory):
    """Run a script as a fork; see _run."""
    _, script, *arguments = shlex.split(command)
    name = os.path.basename(script)[: -len('.py')]
    return programs.run(name, *arguments, checkout=str(directory))


def _run(command, directory):
    """Run a shell command in a process group of its own; return (exit status, stdout, stderr)."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ('TF_CPP_MIN_LOG_LEVEL', 'PYTHONPATH')
    }
    process = subprocess.Popen(
        ['sh', '-c', command],
        cwd=str(directory),
        env=dict(environment, PATH=f'{directory}/bin:{environment["PATH"]}'),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=2 * DEADLINE_SECS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, stdout, stderr


@pytest.mark.slow
@pytest.mark.skipif(tf.__version__ < '2', reason='the pages show programs for TensorFlow 2')
@pytest.mark.parametrize('page', RUN)
def test_commands(page, tmp_path, monkeypatch):
    """Run each command as it is written, except for _adapt.

    The order is that of the page, after the program that makes its input.
    """
    monkeypatch.setattr(programs, 'DEADLINE_SECS', 2 * DEADLINE_SECS)
    _make_checkout(tmp_path)
    failed = []
    for item in sorted(pages.items(page), key=_is_input, reverse=True):
        if item.is_python:
            name = item.file or 'program.py'
            (tmp_path / name).write_text(_adapt(item.text, tmp_path))
        if item.file or not _is_run(item):
            continue
        command = f'python {name}' if item.is_python else _adapt(item.text, tmp_path)
        status, stdout, stderr = (_fork if _is_fork(item) else _run)(command, tmp_path)
        stderr = re.sub('.*building the font cache.*\n', '', stderr)
        is_script = item.text.startswith('python scripts/')
        if status or 'Traceback (most recent call last)' in stderr or is_script and stderr:
            failed.append(f'{item}\nended with status {status}:\n{stdout}\n{stderr}')
        for _, part, pattern in [promise for promise in PROMISED if promise[0] == page]:
            if part in item.text and not re.search(pattern, stdout):
                failed.append(f'{item}\nshould print {pattern!r}, but printed:\n{stdout}')
    assert not failed, '\n'.join(failed)
