"""Mistakes in the command line, errors and Ctrl-C: one line and the exit status."""

import glob
import platform
import re
import shlex
import shutil
import signal

import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10.cli import program
from cifar10.config import HParams
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import machine, signals
from tests.helpers import programs

RUN = 'data_dir dataset data_url label_mode train_dir max_steps log_frequency save_summaries_steps save_checkpoint_steps '
TRAINING = RUN + (
    'fresh max_to_keep keep_best eval_every profile_step seed deterministic log_device_placement intra_op_threads '
    'inter_op_threads num_preprocess_threads ' + ' '.join(HParams._fields)
)
PLACEMENT = ' num_gpus devices_per_tower variable_strategy'


@pytest.mark.parametrize(
    'script, names',
    [
        ('cifar10_train', TRAINING + ' variable_strategy'),
        ('cifar10_multi_gpu_train', TRAINING + PLACEMENT),
        ('cifar10_classic', RUN + 'batch_size num_gpus'),
        (
            'cifar10_benchmark',
            'baseline rounds warmup_steps steps json_file trace_file num_gpus batch_size dataset data_dir data_url label_mode '
            'intra_op_threads inter_op_threads num_preprocess_threads gpu_gflops devices_per_tower variable_strategy',
        ),
        (
            'cifar10_distributed_train',
            TRAINING
            + PLACEMENT
            + ' ps_hosts worker_hosts job_name task_index mode replicas_to_aggregate '
            'fetch_steps push_steps average_period connect_timeout_secs stall_timeout_secs',
        ),
        (
            'cifar10_eval',
            'data_dir eval_dir checkpoint_dir eval_data num_examples eval_interval_secs run_once timeout_secs dataset '
            'data_url label_mode num_views use_gpu checkpoint top_k predictions_file figures_dir',
        ),
        (
            'cifar10_predict',
            'checkpoint_dir checkpoint saved_model_dir num_views top_k recursive json csv',
        ),
        ('cifar10_export', 'checkpoint_dir checkpoint export_dir model_version tflite_file'),
        (
            'cifar10_dataset',
            'dataset data_dir data_url label_mode test_fraction seed strict num_examples contact_sheet_file',
        ),
        ('cifar10_results', 'runs at_epochs target_precision plot_file'),
        ('cifar10_launch', 'num_ps num_workers max_restarts'),
    ],
)
def test_help_lists_every_flag(script, names):
    status, stdout, stderr = programs.call(script, '--help')
    assert (status, stderr) == (0, '')
    listed = re.findall(r'^  --(?:\[no\])?(\w+): ', stdout, re.M)
    assert sorted(listed) == sorted(names.split() + ['version'])


@pytest.mark.slow
def test_a_mistake_with_a_closed_stderr():
    """The line is not written to another file."""
    assert programs.run(
        'cifar10_dataset', 'upload', wrapper=['sh', '-c', 'exec "$@" 2>&-', 'sh']
    ) == (2, '', '')


# command line, exit status, line
MISTAKES = [
    ('cifar10_train --batch_size=many', 2, 'flag --batch_size=many: .*; --help lists the flags'),
    ('cifar10_multi_gpu_train --num_gpuss=2', 2, '.* Did you mean: num_gpus.*'),
    ('cifar10_launch --made_up=2', 2, '.*; the flags of cifar10_distributed_train.py come .*'),
    ('cifar10_train --recipe=slow', 2, r'flag --recipe=slow: .*<classic\|fast\|best>.*'),
    ('cifar10_train --contrast=nan', 2, 'flag --contrast=nan: is not a number; .*'),
    (
        'cifar10_train --recipe=fast --epochs=inf',
        1,
        '--schedule=linear does not work with --epochs=inf: .*',
    ),
    (
        'cifar10_multi_gpu_train --num_gpus=6 --devices_per_tower=6',
        1,
        '--devices_per_tower=6 is more than the 5 layers of the network: give at most 5',
    ),
    (
        'cifar10_multi_gpu_train --num_gpus=4 --devices_per_tower=3',
        1,
        '--num_gpus=4 is not a multiple of --devices_per_tower=3: change one of them',
    ),
    ('cifar10_multi_gpu_train --devices_per_tower=2', 1, '--num_gpus=1 is not a multiple of .*'),
    ('cifar10_benchmark step --devices_per_tower=2', 1, '.* without --baseline: leave them out'),
    (
        'cifar10_benchmark estimate --variable_strategy=spread',
        1,
        '--variable_strategy has no effect on .*',
    ),
    ('cifar10_benchmark towers --devices_per_tower=9', 1, '--devices_per_tower=9 is more .*'),
    (
        'cifar10_benchmark estimate --json_file={tmp}/x',
        1,
        '--json_file has no effect on estimate: leave it out',
    ),
    ('cifar10_eval --norun_once=1', 2, '--norun_once=1 does not take an argument; --help .*'),
    ('cifar10_eval --flagfile={data}/cifar-10-batches-bin/test_batch.bin', 2, "'utf-8' codec .*"),
    # arguments
    (
        'cifar10_multi_gpu_train --num_gpus 2 3',
        2,
        "the arguments must be flags only, not '3'; --help explains the usage",
    ),
    ('cifar10_dataset', 2, r'the arguments must be download\|.*\|verify, not none; .*'),
    ('cifar10_dataset info x', 2, "the arguments must be info, not 'info' 'x'; .*"),
    ('cifar10_dataset convert x', 2, 'the arguments must be convert SRC OUT, not .*'),
    (
        "cifar10_dataset convert '' x",
        2,
        "the arguments .* SRC OUT, not 'convert' '' 'x'; .*",
    ),
    ("cifar10_predict {tmp}/file ''", 2, "the arguments must be IMAGE..., not '.*/file' ''; .*"),
    ('cifar10_predict', 2, 'the arguments must be IMAGE..., not none; .*'),
    # directories and files
    ('cifar10_train --data_dir={tmp}/damaged', 1, '.*_batch_2.bin has an incomplete record: .*'),
    ('cifar10_dataset verify --data_dir={tmp}/damaged', 1, '.*_batch_2.bin has an incomplete .*'),
    (
        'cifar10_train --data_dir={tmp}/file',
        2,
        'flag --data_dir={tmp}/file: {tmp}/file is not a directory: give another one; .*',
    ),
    ('cifar10_train --data_dir=', 2, 'flag --data_dir=: the name is missing; .*'),
    ('cifar10_train --train_dir={tmp}/file/run', 2, '.*: {tmp}/file is not a directory: .*'),
    (
        'cifar10_eval --checkpoint_dir={tmp}/file',
        2,
        'flag --checkpoint_dir=.* is not a directory: .*',
    ),
    ('cifar10_dataset holdout {tmp}/file {tmp}/new', 1, '{tmp}/file is not a directory: .*'),
    ('cifar10_dataset download --data_url=', 2, 'flag --data_url=: the name is missing; .*'),
    (
        'cifar10_dataset info --contact_sheet_file={tmp}/x.gif',
        2,
        'flag --contact_sheet_file=.*: the name of the file must end in .png or .jpg or .jpeg; .*',
    ),
    (
        'cifar10_train --data_dir={tmp}/new --data_url=http://127.0.0.1:1/x',
        1,
        'Cannot download http://127.0.0.1:1/x .*--data_url.*',
    ),
    ('cifar10_eval --data_dir={data} --num_examples=51', 1, '--num_examples=51 is more than .*'),
    ('cifar10_eval --data_dir={data} --checkpoint_dir={tmp} --run_once', 1, 'There is no ch.*'),
    ('cifar10_eval --data_dir={tmp}/nowhere', 1, '{tmp}/nowhere does not exist: make a data .*'),
    ('cifar10_eval --run_once --checkpoint_dir={tmp}/no', 1, '{tmp}/no does not exist: train .*'),
    ('cifar10_predict x --saved_model_dir={tmp}/no', 1, '{tmp}/no does not exist: export a .*'),
    ('cifar10_export --checkpoint_dir={tmp}/no', 1, '{tmp}/no does not exist: train first, .*'),
    (
        'cifar10_dataset info --data_dir={data} --dataset=cifar100',
        1,
        '{data}/cifar-100-binary does not exist: download it with .*',
    ),
    ('cifar10_train --data_dir={tmp}/no/data', 1, '{tmp}/no does not exist: make it, or give .*'),
    # two flags for one directory
    (
        'cifar10_train --data_dir={tmp}/link --train_dir={tmp}/damaged/',
        1,
        '--train_dir={tmp}/damaged/ is also the directory of --data_dir: give two directories',
    ),
    (
        'cifar10_classic --data_dir={data} --train_dir={data}/cifar-10-batches-bin',
        1,
        '.* is also the directory of --data_dir: .*',
    ),
    (
        'cifar10_train --data_dir={tmp}/a --train_dir={tmp}/a/cifar-100-binary',
        1,
        '.* is also the directory of --data_dir: .*',
    ),
    (
        'cifar10_distributed_train --data_dir={tmp}/a --train_dir={tmp}/a',
        1,
        '.* directory of --data_dir: .*',
    ),
    (
        'cifar10_eval --checkpoint_dir={tmp} --eval_dir={tmp}/',
        1,
        '.* also the directory of --checkpoint_dir: .*',
    ),
    (
        'cifar10_eval --checkpoint={tmp}/x --eval_dir={tmp}',
        1,
        '.* also the directory of --checkpoint: .*',
    ),
    (
        'cifar10_eval --data_dir={data} --eval_dir={data}',
        1,
        '.* also the directory of --data_dir: .*',
    ),
    (
        'cifar10_export --checkpoint_dir={tmp} --export_dir={tmp}',
        1,
        '.* directory of --checkpoint_dir: .*',
    ),
]


@pytest.fixture
def places(tmp_path, data_dir):
    """A file, a damaged data set and a link to it."""
    (tmp_path / 'link').symlink_to('damaged')
    (tmp_path / 'file').write_text('')
    shutil.copytree(data_dir, str(tmp_path / 'damaged'))
    with open(dataset.read(str(tmp_path / 'damaged')).train.paths[1], 'ab') as damaged:
        damaged.write(b'x')
    return {'tmp': str(tmp_path), 'data': data_dir}


@pytest.mark.parametrize('mistake', MISTAKES, ids=lambda mistake: mistake[0][:60])
def test_a_mistake_gives_one_line(places, mistake):
    line, status, complaint = mistake
    script, *args = shlex.split(line.format(**places))
    before = sorted(glob.glob(places['tmp'] + '/**', recursive=True))
    found, _, stderr = programs.call(script, *args)
    told = rf'{script}.py: error: {complaint.format(**places)}\n'
    assert re.fullmatch(told, stderr) and found == status, stderr
    assert sorted(glob.glob(places['tmp'] + '/**', recursive=True)) == before


def _raise(error):
    raise error


@pytest.mark.parametrize(
    'error, status, line',
    [
        (UserError('bad'), 1, 'error: bad'),
        (PermissionError(13, 'denied', '/x'), 1, "error: [Errno 13] denied: '/x'"),
        (signals.SignalInterrupt(signal.SIGINT), 130, 'interrupted (SIGINT)'),
        (signals.SignalInterrupt(signal.SIGTERM), 143, 'interrupted (SIGTERM)'),
    ],
)
def test_errors_that_give_one_line(capsys, monkeypatch, error, status, line):
    monkeypatch.setattr('sys.argv', ['/somewhere/program.py'])
    with pytest.raises(SystemExit) as end:
        program._call(lambda: _raise(error), [])
    assert end.value.code == status
    assert capsys.readouterr() == ('', f'program.py: {line}\n')


def test_a_bug_report_has_the_traceback_above_the_line(capsys, monkeypatch):
    monkeypatch.setattr('sys.argv', ['program.py'])
    monkeypatch.setenv('TF_CPP_MIN_LOG_LEVEL', '0')
    with pytest.raises(SystemExit) as end:
        program._call(lambda: _raise(UserError('bad')), [])
    first, *others, last = capsys.readouterr().err.splitlines()
    assert first == 'Traceback (most recent call last):' and ', in _raise' in ' '.join(others)
    assert (end.value.code, last) == (1, 'program.py: error: bad')


def test_errors_of_tensorflow(capsys, monkeypatch):
    monkeypatch.setattr('sys.argv', ['program.py'])
    exhausted = (
        'full: not enough memory or disk space: choose a smaller --batch_size, or free some space'
    )
    for kind, line in [
        ('ResourceExhaustedError', exhausted),
        ('NotFoundError', 'full'),
        ('PermissionDeniedError', 'full'),
    ]:
        with pytest.raises(SystemExit) as end:
            program._call(
                lambda kind=kind: _raise(getattr(tf.errors, kind)(None, None, 'full')), []
            )
        assert end.value.code == 1
        assert capsys.readouterr().err == f'program.py: error: {line}\n'


def test_main_may_return_the_exit_status():
    with pytest.raises(SystemExit) as end:
        program._call(lambda: 75, [])
    assert end.value.code == 75


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        program._call(lambda: 1 / 0, [])


def test_ctrl_c_under_another_error(capsys):
    """TensorFlow's context managers may raise another error after an interrupt."""

    def interrupted():
        try:
            raise signals.SignalInterrupt(signal.SIGINT)
        finally:
            raise ValueError

    with pytest.raises(SystemExit) as end:
        program._call(interrupted, [])
    assert end.value.code == 130


def test_the_versions(monkeypatch):
    monkeypatch.setattr(machine, 'num_cores', lambda: 3)
    monkeypatch.setattr(machine, 'cpu_name', lambda: 'Some Processor')
    monkeypatch.setattr(
        machine, 'gpu_names', lambda config: ['Some GPU'] if config == 'config' else []
    )
    told = f'cifar10 {cifar10.__version__}, Python {platform.python_version()}, TensorFlow {tf.__version__}; Some Processor (cores: 3)'
    assert program.versions() == told and program.versions('config') == told + ', Some GPU'


@pytest.mark.slow
def test_version():
    """The flag has priority over mistakes."""
    stdout = programs.run('cifar10_train', '--version', '--no-such-flag')[1]
    assert re.match(
        rf'cifar10 {cifar10.__version__}, Python {platform.python_version()}, TensorFlow {tf.__version__}; .*\(cores: \d+\).*\n$',
        stdout,
    )
