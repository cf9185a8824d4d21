"""Networks that the programs refuse."""

import json
import os

import pytest

from tests.helpers import checkouts, checkpoints, faults, programs
from tests.helpers.changed_networks import RESIDUAL
from tests.helpers.forks import ROOT


@pytest.mark.parametrize('name', ['{}/file.py', 'file', '../file', 'cifar10.model', 7, ['model']])
def test_the_network_of_a_record_is_never_imported(tmp_path, data_dir, name):
    """Unless it has the name of a network of the package."""
    name = name.format(tmp_path) if isinstance(name, str) else name
    effect = tmp_path / 'effect'
    (tmp_path / 'file.py').write_text(f'open({str(effect)!r}, "w")\n{RESIDUAL}')
    run = tmp_path / 'run'
    checkpoints.save(run, 1)
    (run / 'run.json').write_text(json.dumps({'num_towers': 1, 'network': name}))
    evaluation = faults.evaluation(data_dir, run, tmp_path / 'eval', '--run_once')
    for script, *arguments in [
        ('cifar10_eval', *evaluation),
        ('cifar10_predict', f'--checkpoint_dir={run}', f'{tmp_path}/image.png'),
        ('cifar10_export', f'--checkpoint_dir={run}', f'--export_dir={tmp_path}/exported'),
    ]:
        status, _, stderr = programs.call(script, *arguments)
        complaint = f'is not of this package: {name}: give its file with --network'
        faults.assert_one_line(stderr, complaint)
        assert status == 1
    assert not effect.exists()


@pytest.mark.parametrize(
    'old, new, complaint',
    [
        ('def inference', 'def infer', 'has no function inference'),
        (
            r"tf.get_variable\('biases', \[num_classes\], .*\)",
            "tf.Variable(tf.zeros([10]), name='biases')",
            'creates softmax_linear/biases by tf.Variable: use tf.get_',
        ),
    ],
)
def test_an_unusable_network(tmp_path, data_dir, old, new, complaint):
    """Each tower and each part of a batch would have a tf.Variable of its own."""
    (tmp_path / 'mine.py').write_text(checkouts.replace(RESIDUAL, [(old, new)]))
    arguments = faults.job(data_dir, tmp_path / 'run', f'--network={tmp_path}/mine.py')
    status, _, stderr = programs.call('cifar10_train', *arguments)
    faults.assert_one_line(stderr, f'{tmp_path}/mine.py {complaint}')
    assert status == 1


@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_eval'])
@pytest.mark.parametrize('name', ['missing.py', 'rennet', 'tests'])
def test_a_missing_network(tmp_path, script, name):
    """One line, before the import of TensorFlow."""
    (tmp_path / 'tensorflow.py').write_text('raise AssertionError("imported")\n')
    path = os.pathsep.join([str(tmp_path), ROOT])
    status, _, stderr = programs.run(script, f'--network={name}', PYTHONPATH=path)
    faults.assert_one_line(stderr, f'There is no network {name}: give model, resnet or')
    assert status == 2
