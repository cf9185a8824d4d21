"""docs/exercises.md: the numbers, changes and programs of its numbered exercises.

test_changed_networks.py has the sections before them.
"""

import filecmp
import re

import pytest

from cifar10.network import Network
from tests.helpers import checkouts, pages, programs
from tests.helpers.forks import ROOT

PAGE = pages.read('exercises.md')
BLOCKS = [item.text for item in pages.items('exercises.md') if item.is_python]
LOCAL3, CLIP_NORM_FIELD, CLIP_NORM_CODE, QUEUE, COUNT = BLOCKS[-5:]
TRAINING = '--deterministic --seed=1 --batch_size=8 --max_steps=2 --eval_every=0'.split()


def _num_parameters(path, *replacements):
    """Return the number of parameters of cifar10/model.py after replacements in its text."""
    path.write_text(checkouts.replace(checkouts.read_module('model.py'), replacements))
    trainable = Network(str(path)).graph(2).get_collection('trainable_variables')
    return sum(variable.shape.num_elements() for variable in trainable)


def _run_program(directory, text):
    """Run a program of the page in a copy of the checkout; return its standard output."""
    checkout = checkouts.copy(directory, {})
    (directory / 'scripts' / 'exercise.py').write_text(text)
    status, stdout, stderr = programs.run('exercise', checkout=checkout)
    assert status == 0, stderr
    return stdout


@pytest.mark.parametrize(
    'replacements',
    [
        [(r" +flat = .*\n.*'local3'.*\n", LOCAL3)],
        [("'local4', 192", "'local4', 96"), (r'\[192, num_classes\]', '[96, num_classes]')],
    ],
)
def test_networks(tmp_path, replacements):
    number = _num_parameters(tmp_path / 'changed.py', *replacements)
    assert f'`Network: {number} parameters`' in PAGE and number != 1068298


@pytest.mark.slow
def test_the_sum_with_half_of_the_learning_rate_is_the_average(tmp_path, data_dir):
    checkout = checkouts.copy(tmp_path, {'multi_gpu.py': [(r' / len\(gradients\)', '')]})
    for name, place, rate in [('a', ROOT, 0.1), ('b', checkout, 0.05)]:
        arguments = ['--num_gpus=2', f'--data_dir={data_dir}', f'--train_dir={tmp_path / name}']
        arguments += [f'--initial_learning_rate={rate}', *TRAINING]
        status, _, stderr = programs.run('cifar10_multi_gpu_train', *arguments, checkout=place)
        assert status == 0, stderr
    name = 'model.ckpt-2.data-00000-of-00001'
    assert filecmp.cmp(str(tmp_path / 'a' / name), str(tmp_path / 'b' / name), shallow=False)


@pytest.mark.slow
def test_a_new_hyperparameter(tmp_path, data_dir):
    changes = {
        'config.py': [(r'(?<=\n)(?=    crop_range: )', CLIP_NORM_FIELD)],
        'optimizer.py': [(r'(?<=\n)(?=    with .*\n        step = )', CLIP_NORM_CODE)],
    }
    checkout = checkouts.copy(tmp_path, changes)
    arguments = [f'--data_dir={data_dir}', f'--train_dir={tmp_path / "run"}', *TRAINING]
    status, stdout, stderr = programs.run(
        'cifar10_train', *arguments, '--clip_norm=1', checkout=checkout
    )
    assert status == 0, stderr
    assert 'Recipe: classic, as in the books; changed: clip_norm 1.0 instead of inf' in PAGE
    assert 'clip_norm 1.0 instead of inf' in stdout
    status, stdout, stderr = programs.run(
        'cifar10_train', *arguments, '--clip_norm=0', checkout=checkout
    )
    assert (status, stdout, stderr.count('\n')) == (2, '', 1) and '--clip_norm' in stderr


@pytest.mark.slow
def test_a_queue_that_nobody_fills(tmp_path):
    text = QUEUE.replace('/tmp/exercise_6', str(tmp_path / 'data'))
    assert re.search(r'^\[(\d ?){8}\]$', _run_program(tmp_path / 'filled', text), re.MULTILINE)
    (config,) = re.findall(r'`(tf\.Session\(config=.*?)`', PAGE)
    empty = checkouts.replace(
        text,
        [
            (r'tf\.Session\(\)', config.replace('5000', '200')),
            (r' +threads = .*\n', ''),
            (r'join\(threads\)', 'join([])'),
            (
                r' +print.*',
                '    try:\n        session.run(labels)\n    except tf.errors.DeadlineExceededError as error:\n        print(error.message)',
            ),
        ],
    )
    assert 'Timed out waiting for notification' in _run_program(tmp_path / 'empty', empty)


@pytest.mark.slow
def test_count_the_test_images(tmp_path, data_dir, runs):
    """With 50 test images in batches of 16."""
    text = COUNT.replace('/tmp/cifar10_synthetic', str(data_dir))
    text = text.replace('/tmp/synthetic_train', str(runs / 'fast'))
    text = text.replace('10000 / 128', '50 / 16').replace('batch_size=128', 'batch_size=16')
    assert re.search(r'^\d+ of 64$', _run_program(tmp_path / 'too_many', text), re.MULTILINE)
    loop = (
        '    try:\n        while True:\n            correct.extend(session.run(top_k_op))\n'
        '    except tf.errors.OutOfRangeError:\n        pass\n'
    )
    exact = checkouts.replace(
        text, [('_size=16', '_size=16, num_epochs=1'), (r' +for _.*\n.*\n', loop)]
    )
    (line,) = re.findall(r'^\d+ of 50$', _run_program(tmp_path / 'exact', exact), re.MULTILINE)
    arguments = [f'--checkpoint_dir={runs / "fast"}', f'--eval_dir={tmp_path / "eval"}']
    stdout = programs.succeed('cifar10_eval', f'--data_dir={data_dir}', '--run_once', *arguments)
    assert f'({line}, step 3)' in stdout
