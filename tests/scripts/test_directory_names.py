"""Directory names: accepted literally, or rejected if TensorFlow reads them as a pattern or URL."""

import pytest

from cifar10.runs import checkpoint
from tests.helpers import faults, messages, programs

pytestmark = pytest.mark.slow
LONG = pytest.mark.long

REFUSED = [
    'run[12]',
    'run*',
    'run?',
    'run\\1',
    'a[b]/run',
    b'run\xff'.decode(errors='surrogateescape'),
    'gs://bucket/run',
]


@pytest.fixture(autouse=True)
def neighbours(tmp_path, monkeypatch):
    """The working directory, with two runs that match the patterns."""
    for name in ('run1', 'run2', 'a[b]', 'ab/run'):
        (tmp_path / name).mkdir(parents=True)
        for suffix in ('index', 'data-00000-of-00001', 'meta'):
            (tmp_path / name / ('model.ckpt-1.' + suffix)).write_text(name)
    monkeypatch.chdir(str(tmp_path))


def _assert_refused(tmp_path, script, *args):
    before = faults.snapshot(tmp_path)
    status, stdout, stderr = programs.call(script, *args)
    assert (status, stdout) == (2, ''), stderr
    faults.assert_one_line(stderr)
    assert faults.snapshot(tmp_path) == before


@pytest.mark.parametrize('name', REFUSED, ids=ascii)
@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_multi_gpu_train', 'cifar10_classic'])
def test_refused_to_trainers(tmp_path, data_dir, script, name):
    keep = [] if script == 'cifar10_classic' else ['--max_to_keep=1']
    job = faults.classic_job if script == 'cifar10_classic' else faults.job
    _assert_refused(
        tmp_path, script, *job(data_dir, name, '--max_steps=2', '--save_checkpoint_steps=1', *keep)
    )


@pytest.mark.parametrize('name', REFUSED, ids=ascii)
def test_refused_to_the_evaluator(tmp_path, data_dir, name):
    _assert_refused(
        tmp_path, 'cifar10_eval', '--run_once', *faults.evaluation(data_dir, name, 'eval')
    )


def test_a_pattern_above_the_directory(tmp_path, data_dir, monkeypatch):
    """The given name is harmless, but the absolute path is not."""
    monkeypatch.chdir(str(tmp_path / 'a[b]'))
    _assert_refused(tmp_path, 'cifar10_train', *faults.job(data_dir, 'run', '--max_steps=1'))


@pytest.mark.parametrize(
    'name',
    [
        '--fresh/"a run" of it\'s, gr\u00fcn \u2713 $HOME & %s {}; #1',
        pytest.param('-x', marks=LONG),
        pytest.param('~', marks=LONG),
    ],
)
def test_names_that_work(tmp_path, data_dir, name):
    """Train, resume and evaluate."""
    for step in (1, 2):
        status, stdout, stderr = programs.call(
            'cifar10_train', *faults.job(data_dir, name, f'--max_steps={step}')
        )
        assert (status, stderr) == (0, '')
        assert checkpoint.read_latest(str(tmp_path / name)).step == step
    assert messages.resuming(tmp_path / name, 1) in stdout
    status, stdout, stderr = programs.call(
        'cifar10_eval', '--run_once', *faults.evaluation(data_dir, name, name + '/eval')
    )
    assert (status, stderr) == (0, '') and 'of 50, step 2), ' in stdout


def test_a_list_that_names_checkpoints_elsewhere(tmp_path, data_dir):
    """A copied directory of the original tutorial lists absolute paths. The original is
    unchanged."""
    original = tmp_path / 'original'
    args = ['--save_checkpoint_steps=1', '--seed=1']
    assert (
        programs.call('cifar10_train', *faults.job(data_dir, original, '--max_steps=3', *args))[0]
        == 0
    )
    lines = [f'model_checkpoint_path: "{original}/model.ckpt-3"']
    lines += [f'all_model_checkpoint_paths: "{original}/model.ckpt-{step}"' for step in (1, 2, 3)]
    (original / 'checkpoint').write_text('\n'.join(lines) + '\n')
    copied = faults.copy(original, tmp_path / 'copied')
    before = faults.snapshot(original)
    status, _, stderr = programs.call(
        'cifar10_train', *faults.job(data_dir, copied, '--max_steps=5', '--max_to_keep=1', *args)
    )
    assert status == 0 and len(stderr.splitlines()) <= 1
    assert faults.snapshot(original) == before
    assert checkpoint.read_latest(copied).path == copied + '/model.ckpt-5'
