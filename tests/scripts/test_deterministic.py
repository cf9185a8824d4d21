"""--deterministic: two runs that compete for the cores are equal bit for bit."""

import pytest

from cifar10.runs import checkpoint
from tests.helpers import events, programs

pytestmark = pytest.mark.slow


def _train_twice(directories, data_dir, steps, num_gpus, recipe):
    """Run one trainer per directory at the same time."""
    flags = [
        '--deterministic',
        '--seed=3',
        f'--num_gpus={num_gpus}',
        f'--max_steps={steps}',
        '--recipe=' + recipe,
        '--batch_size=8',
        '--initial_learning_rate=0.01',  # classic diverges at its 0.1 with such small batches
        '--epochs=100',
        '--save_summaries_steps=1',
        '--eval_every=0',
        '--dataset=synthetic',
        '--data_dir=' + data_dir,
    ]
    trainers = [
        programs.start('cifar10_multi_gpu_train', f'--train_dir={directory}', *flags)
        for directory in directories
    ]
    for trainer in trainers:
        _, stderr = trainer.communicate()
        assert (trainer.returncode, stderr) == (0, '')


def _losses(directory):
    return {step: value for step, tag, value in events.scalars(directory) if tag == 'total_loss'}


def _assert_same(directories, steps):
    losses = [_losses(directory) for directory in directories]
    assert losses[0] == losses[1] and sorted(losses[0]) == list(range(1, steps + 1))
    weights = [
        checkpoint.read(f'{directory}/model.ckpt-{steps}').values for directory in directories
    ]
    one, two = ({name: value.tobytes() for name, value in values.items()} for values in weights)
    assert one == two


def test_the_same_again(tmp_path, data_dir):
    """Also after both are resumed."""
    directories = [tmp_path / 'one', tmp_path / 'two']
    for steps in (6, 12):
        _train_twice(directories, data_dir, steps, 2, 'classic')
    _assert_same(directories, 12)
    losses = list(_losses(directories[0]).values())
    assert len(set(losses)) > 10  # no batch repeats, also after the resume


@pytest.mark.long
@pytest.mark.parametrize('recipe', ['classic', 'fast'])
@pytest.mark.parametrize('num_gpus', [1, 2, 4])
def test_the_same_for_500_steps(tmp_path, data_dir, monkeypatch, num_gpus, recipe):
    monkeypatch.setattr(programs, 'DEADLINE_SECS', 1200)
    directories = [tmp_path / 'one', tmp_path / 'two']
    _train_twice(directories, data_dir, 500, num_gpus, recipe)
    _assert_same(directories, 500)
