"""What a mistake in the command line, an error or Ctrl-C gives."""

import glob
import os
import pstats
import re
import shutil
import signal

import pytest
import tensorflow.compat.v1 as tf

from cifar10.cli import program
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import HParams
from cifar10.runs import signals
from tests.helpers import programs

RUN = 'data_dir dataset data_url label train_dir max_steps log_frequency summary_steps checkpoint_steps '
TRAINING = RUN + (
    'fresh max_to_keep keep_best eval_steps profile_step seed deterministic log_device_placement intra_op_threads '
    'inter_op_threads input_threads ' + ' '.join(HParams._fields)
)
PLACEMENT = ' num_gpus devices_per_tower variable_strategy'


@pytest.mark.parametrize(
    'script, names',
    [
        ('cifar10_train', TRAINING),
        ('cifar10_multi_gpu_train', TRAINING + PLACEMENT),
        ('cifar10_classic', RUN + 'batch_size num_gpus'),
        (
            'cifar10_benchmark',
            'baseline rounds warmup_steps steps json trace num_gpus batch_size dataset data_dir data_url label '
            'intra_op_threads inter_op_threads input_threads gpu_gflops devices_per_tower variable_strategy',
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
            'data_url label views use_gpu checkpoint top_k predictions',
        ),
        ('cifar10_predict', 'checkpoint_dir checkpoint saved_model views top_k recursive json csv'),
        ('cifar10_export', 'checkpoint_dir checkpoint export_dir model_version tflite'),
        (
            'cifar10_dataset',
            'dataset data_dir data_url label test_fraction seed strict examples contact_sheet',
        ),
        ('cifar10_results', 'runs at_epochs reach plot'),
        ('cifar10_launch', 'num_ps num_workers restarts'),
    ],
)
def test_help_lists_every_flag(script, names):
    status, stdout, stderr = programs.call(script, '--help')
    assert (status, stderr) == (0, '')
    listed = re.findall(r'^  --(?:\[no\])?(\w+): ', stdout, re.M)
    assert sorted(listed) == sorted(names.split() + ['version'])


@pytest.mark.slow
def test_a_profile_of_absl(tmp_path, data_dir):
    """Its flags are in every script; they hide no error."""
    profile = tmp_path / 'profile'
    status, _, stderr = programs.run(
        'cifar10_dataset',
        'verify',
        '--data_dir=%s' % data_dir,
        '--run_with_profiling',
        '--profile_file=%s' % profile,
        wrapper=[
            'sh',
            '-c',
            'exec "$@" %s' % ('> /dev/full' if os.path.exists('/dev/full') else ''),
            'sh',
        ],
    )
    assert 'dataset.py' in {
        os.path.basename(path) for path, _, _ in pstats.Stats(str(profile)).stats
    }
    if os.path.exists('/dev/full'):
        assert status == 1 and 'cannot write to the standard output' in stderr


@pytest.mark.slow
def test_a_mistake_with_a_closed_stderr():
    """It does not go elsewhere."""
    assert programs.run(
        'cifar10_dataset', 'upload', wrapper=['sh', '-c', 'exec "$@" 2>&-', 'sh']
    ) == (2, '', '')


@pytest.mark.slow
def test_help_with_a_closed_output():
    assert programs.run(
        'cifar10_dataset', '--help', wrapper=['sh', '-c', 'exec "$@" >&-', 'sh']
    ) == (0, '', '')


def test_help_ends_with_0():
    status, stdout, stderr = programs.run('cifar10_train', '--help')
    assert (status, stderr) == (0, '') and '--recipe: <classic|fast|best>' in stdout


TRAIN, EVAL, DATASET = 'cifar10_multi_gpu_train', 'cifar10_eval', 'cifar10_dataset'
MISTAKES = [
    (TRAIN, ['--num_gpus=0'], 2, r'flag --num_gpus=0: .*; --help lists the flags'),
    (TRAIN, ['--batch_size=9999999999'], 2, r'flag --batch_size=9999999999: .*'),
    (TRAIN, ['--batch_size=many'], 2, r'flag --batch_size=many: .*'),
    (TRAIN, ['--num_gpu=2'], 2, r"Unknown command line flag 'num_gpu'. Did you mean: num_gpus.*"),
    (
        TRAIN,
        ['--recipe=slow'],
        2,
        r'flag --recipe=slow: value should be one of <classic\|fast\|best>.*',
    ),
    (TRAIN, ['--contrast=nan'], 2, r'flag --contrast=nan: is not a number; .*'),
    (
        TRAIN,
        ['--recipe=fast', '--epochs=inf'],
        1,
        r'--schedule=linear needs an end after its warm-up, not --epochs=inf: .*',
    ),
    (EVAL, ['--views=3'], 2, r'flag --views=3: value should be one of <1\|2\|10>; .*'),
    (
        TRAIN,
        ['--num_gpus=6', '--devices_per_tower=6'],
        1,
        r'--devices_per_tower=6 is more than the 5 layers of the network '
        r'\(conv1, conv2, local3, local4, softmax_linear\): give at most 5',
    ),
    (
        TRAIN,
        ['--num_gpus=4', '--devices_per_tower=3'],
        1,
        r'--num_gpus=4 devices cannot be divided into towers of 3: '
        r'give --num_gpus=6, or another multiple of --devices_per_tower',
    ),
    (
        TRAIN,
        ['--num_gpus=64', '--devices_per_tower=3'],
        1,
        r'--num_gpus=64 .*: give --num_gpus=63, .*',
    ),
    (
        TRAIN,
        ['--devices_per_tower=2'],
        1,
        r'--num_gpus=1 devices cannot be divided into towers of 2: give --num_gpus=2, .*',
    ),
    (
        TRAIN,
        ['--variable_strategy=gpu'],
        2,
        r'flag --variable_strategy=gpu: value should be one of <cpu\|first_device\|spread>; .*',
    ),
    (TRAIN, ['--num_gpus', '2', '3'], 2, r'unexpected argument 3; --help explains the usage'),
    (
        TRAIN,
        ['--dataset=mnist'],
        2,
        r'flag --dataset=mnist: value should be one of <cifar10\|cifar100\|synthetic>.*',
    ),
    (
        TRAIN,
        ['--data_dir={tmp}/damaged', '--dataset=synthetic'],
        1,
        r'{tmp}/damaged/.*/data_batch_2.bin is not a whole number .*',
    ),
    (
        TRAIN,
        ['--data_dir={tmp}/file'],
        2,
        r'flag --data_dir={tmp}/file: {tmp}/file is a file, not a directory: give another one; .*',
    ),
    (TRAIN, ['--data_dir='], 2, r'flag --data_dir=: the name of a directory is missing; .*'),
    (TRAIN, ['--max_to_keep=9999999999'], 2, r'flag --max_to_keep=9999999999: .*'),
    (
        TRAIN,
        ['--train_dir={tmp}/file'],
        2,
        r'flag --train_dir={tmp}/file: {tmp}/file is a file, not a directory: give another '
        r'one; .*',
    ),
    (
        TRAIN,
        ['--data_dir={data}', '--dataset=synthetic', '--train_dir={tmp}/file/run'],
        2,
        r'flag --train_dir={tmp}/file/run: {tmp}/file is a file, not a directory: give another one; .*',
    ),
    (
        EVAL,
        ['--eval_dir={tmp}/file'],
        2,
        r'flag --eval_dir={tmp}/file: {tmp}/file is a file, not a directory: give another one; .*',
    ),
    (
        EVAL,
        ['--checkpoint_dir={tmp}/file'],
        2,
        r'flag --checkpoint_dir=.*{tmp}/file is a file, not a directory: .*',
    ),
    (
        'cifar10_benchmark',
        ['step', '--devices_per_tower=2'],
        1,
        r'--devices_per_tower and --variable_strategy are measured by towers, '
        r'without --baseline: leave them out',
    ),
    (
        'cifar10_benchmark',
        ['plan', '--variable_strategy=spread'],
        1,
        r'.* without --baseline: leave them out',
    ),
    (
        'cifar10_benchmark',
        ['towers', '--baseline', '--variable_strategy=spread'],
        1,
        r'.* without --baseline: leave them out',
    ),
    (
        'cifar10_benchmark',
        ['towers', '--devices_per_tower=9'],
        1,
        r'--devices_per_tower=9 is more than the 5 layers .*',
    ),
    (
        EVAL,
        ['--norun_once=1'],
        2,
        r'--norun_once=1 does not take an argument; --help lists the flags',
    ),
    (
        EVAL,
        ['--flagfile={tmp}/damaged/cifar-10-batches-bin/test_batch.bin'],
        2,
        r"'utf-8' codec can't decode .*; --help lists .*",
    ),
    (
        TRAIN,
        ['--data_dir={tmp}/new', '--data_url=http://127.0.0.1:1/x'],
        1,
        r'Cannot download http://127.0.0.1:1/x .*--data_url.*',
    ),
    (
        EVAL,
        ['--data_dir={data}', '--dataset=synthetic', '--run_once', '--checkpoint_dir={tmp}'],
        1,
        r'There is no checkpoint in {tmp}: train first.*',
    ),
    (
        EVAL,
        ['--data_dir={data}', '--dataset=synthetic', '--num_examples=51'],
        1,
        r'--num_examples=51 is more than the 50 .*',
    ),
    (
        EVAL,
        ['--eval_data=train'],
        2,
        r'flag --eval_data=train: value should be one of <test\|train_eval>.*',
    ),
    (EVAL, ['--run_once=perhaps'], 2, r'flag --run_once=perhaps: .*'),
    (
        DATASET,
        [],
        2,
        r'a command is missing: download, synthetic, convert, holdout, info or verify; --help explains them',
    ),
    (
        DATASET,
        ['upload'],
        2,
        r'unknown command upload: give download, synthetic, convert, holdout, info or verify; --help explains '
        r'them',
    ),
    (
        'cifar10_benchmark',
        ['all'],
        2,
        r'unknown command all: give input, step, train, towers, profile, distributed or plan; .*',
    ),
    (DATASET, [''], 2, r'a command is missing: download, .*'),
    (TRAIN, [''], 2, r"unexpected argument ''; --help explains the usage"),
    (
        DATASET,
        ['download', '--data_url='],
        2,
        r'flag --data_url=: the address of the archive is missing; .*',
    ),
    (
        DATASET,
        ['convert', '', '{tmp}/new'],
        2,
        r'an argument is empty: the name of a file or directory is missing; .*',
    ),
    (
        'cifar10_predict',
        ['{tmp}/file', ''],
        2,
        r'an argument is empty: the name of a file or directory is missing; .*',
    ),
    (EVAL, ['--predictions='], 2, r'flag --predictions=: the name of a file is missing; .*'),
    (
        DATASET,
        ['info', '--contact_sheet='],
        2,
        r'flag --contact_sheet=: the name of a file is missing; .*',
    ),
    (
        DATASET,
        ['info', '--contact_sheet={tmp}/x.gif'],
        2,
        r'flag --contact_sheet={tmp}/x.gif: the name of the file must end in .png '
        r'or .jpg or .jpeg; .*',
    ),
    (
        EVAL,
        ['--data_dir={tmp}/nowhere'],
        1,
        r'{tmp}/nowhere does not exist: make a data set with `cifar10_dataset.py download` or '
        r'`cifar10_dataset.py synthetic`, or give another --data_dir',
    ),
    (
        EVAL,
        ['--data_dir={tmp}/nowhere/cifar-10-batches-bin', '--dataset=synthetic'],
        1,
        r'{tmp}/nowhere/cifar-10-batches-bin does .*',
    ),
    (
        DATASET,
        ['info', '--data_dir={data}', '--dataset=cifar100'],
        1,
        r'{data}/cifar-100-binary does not exist: download it with .*',
    ),
    (
        DATASET,
        ['info', '--data_dir={tmp}/nowhere', '--dataset=cifar100'],
        1,
        r'{tmp}/nowhere does not exist: make a data set with .*',
    ),
    (
        DATASET,
        ['holdout', '{tmp}/file', '{tmp}/new'],
        1,
        r'{tmp}/file is a file, not a directory: give another one',
    ),
    (
        TRAIN,
        ['--data_dir={tmp}/nowhere/data'],
        1,
        r'{tmp}/nowhere does not exist: make it, or give another --data_dir',
    ),
    (
        TRAIN,
        ['--data_dir={tmp}/nowhere/data', '--dataset=cifar100'],
        1,
        r'{tmp}/nowhere does not exist: make it, .*',
    ),
    (
        'cifar10_train',
        ['--data_dir={tmp}/a/b/cifar-10-batches-bin', '--dataset=synthetic'],
        1,
        r'{tmp}/a/b does not exist: make .*',
    ),
    (
        'cifar10_classic',
        ['--data_dir={tmp}/nowhere/data'],
        1,
        r'{tmp}/nowhere does not exist: make it, .*',
    ),
    (
        'cifar10_benchmark',
        ['input', '--data_dir={tmp}/nowhere/data'],
        1,
        r'{tmp}/nowhere does not exist: make it, .*',
    ),
    (
        EVAL,
        ['--run_once', '--checkpoint_dir={tmp}/nowhere'],
        1,
        r'{tmp}/nowhere does not exist: train first, or give another '
        r'--checkpoint_dir',
    ),
    (
        'cifar10_predict',
        ['{tmp}/file', '--checkpoint_dir={tmp}/nowhere', '--checkpoint=best'],
        1,
        r'{tmp}/nowhere does not exist: .*',
    ),
    (
        'cifar10_predict',
        ['{tmp}/file', '--saved_model={tmp}/nowhere'],
        1,
        r'{tmp}/nowhere does not exist: export a model with .*',
    ),
    (
        'cifar10_export',
        ['--checkpoint_dir={tmp}/nowhere'],
        1,
        r'{tmp}/nowhere does not exist: train first, .*',
    ),
    (
        TRAIN,
        ['--data_dir={data}', '--train_dir={data}'],
        1,
        r'--train_dir={data} is the directory of --data_dir too: give each .*',
    ),
    (
        'cifar10_train',
        ['--data_dir={tmp}/link', '--train_dir={tmp}/damaged/'],
        1,
        r'--train_dir={tmp}/damaged/ is the .*',
    ),
    (
        'cifar10_classic',
        ['--data_dir={data}', '--train_dir={data}/cifar-10-batches-bin'],
        1,
        r'--train_dir=.* of --data_dir too: .*',
    ),
    (
        'cifar10_train',
        ['--data_dir={tmp}/new', '--train_dir={tmp}/new/cifar-100-binary', '--dataset=cifar100'],
        1,
        r'--train_dir=.* of --data_dir too: .*',
    ),
    (
        'cifar10_distributed_train',
        ['--data_dir={tmp}/new', '--train_dir={tmp}/new'],
        1,
        r'--train_dir=.* of --data_dir too: .*',
    ),
    (
        EVAL,
        ['--checkpoint_dir={tmp}', '--eval_dir={tmp}/'],
        1,
        r'--eval_dir={tmp}/ is the directory of --checkpoint_dir too: .*',
    ),
    (
        EVAL,
        ['--checkpoint={tmp}/model.ckpt-1', '--eval_dir={tmp}'],
        1,
        r'--eval_dir={tmp} is the directory of --checkpoint too: .*',
    ),
    (
        EVAL,
        ['--data_dir={data}', '--eval_dir={data}'],
        1,
        r'--eval_dir={data} is the directory of --data_dir too: give each .*',
    ),
    (
        'cifar10_export',
        ['--checkpoint_dir={tmp}', '--export_dir={tmp}'],
        1,
        r'--export_dir={tmp} is the directory of .*dir too: .*',
    ),
    (
        'cifar10_results',
        ['--runs=a:b:c', '--plot='],
        2,
        r'flag --plot=: the name of a file is missing; .*',
    ),
    (
        'cifar10_benchmark',
        ['plan', '--json='],
        2,
        r'flag --json=: the name of a file is missing; .*',
    ),
    (
        DATASET,
        ['verify', '--data_dir={tmp}/damaged'],
        1,
        r'{tmp}/damaged/.*/data_batch_2.bin is not a whole number .*',
    ),
    (
        DATASET,
        ['verify', '--data_dir={tmp}/nowhere'],
        1,
        r'{tmp}/nowhere does not exist: make a data set with .*',
    ),
]


@pytest.fixture
def places(tmp_path, data_dir):
    """A file, a damaged data set, and a link to it."""
    (tmp_path / 'link').symlink_to('damaged')
    (tmp_path / 'file').write_text('')
    shutil.copytree(data_dir, str(tmp_path / 'damaged'))
    with open(dataset.read(str(tmp_path / 'damaged')).train.paths[1], 'ab') as damaged:
        damaged.write(b'x')
    return {'tmp': str(tmp_path), 'data': data_dir}


def _assert_one_line(run, places, mistake):
    script, args, status, complaint = mistake
    before = sorted(glob.glob(places['tmp'] + '/**', recursive=True))
    found, _, stderr = run(script, *[arg.format(**places) for arg in args])
    assert re.fullmatch(r'%s.py: error: %s\n' % (script, complaint.format(**places)), stderr), (
        stderr
    )
    assert found == status
    after = sorted(glob.glob(places['tmp'] + '/**', recursive=True))
    assert after == before


@pytest.mark.parametrize('mistake', MISTAKES, ids=lambda mistake: ' '.join(mistake[1])[:40])
def test_a_mistake_gives_one_line(places, mistake):
    _assert_one_line(programs.call, places, mistake)


@pytest.mark.slow
@pytest.mark.parametrize('mistake', [MISTAKES[0], MISTAKES[10], MISTAKES[16], MISTAKES[20]])
def test_a_mistake_in_a_process(places, mistake):
    _assert_one_line(programs.run, places, mistake)


def _raise(error):
    raise error


@pytest.mark.parametrize(
    'error, status, line',
    [
        (UserError('bad'), 1, 'error: bad'),
        (PermissionError(13, 'denied', '/x'), 1, "error: [Errno 13] denied: '/x'"),
        (signals.Interrupted(signal.SIGINT), 130, 'interrupted (SIGINT)'),
        (signals.Interrupted(signal.SIGTERM), 143, 'interrupted (SIGTERM)'),
    ],
)
def test_errors_that_give_one_line(capsys, monkeypatch, error, status, line):
    monkeypatch.setattr('sys.argv', ['/somewhere/program.py'])
    with pytest.raises(SystemExit) as end:
        program._call(lambda: _raise(error), [])
    assert end.value.code == status
    assert capsys.readouterr() == ('', 'program.py: %s\n' % line)


def test_errors_of_tensorflow(capsys, monkeypatch):
    monkeypatch.setattr('sys.argv', ['program.py'])
    exhausted = 'full: not enough memory or disk space; choose a smaller --batch_size, or make room'
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
        assert capsys.readouterr().err == 'program.py: error: %s\n' % line


@pytest.mark.parametrize('result, status', [(None, 0), (0, 0), (75, 75)])
def test_main_may_return_the_exit_status(result, status):
    with pytest.raises(SystemExit) as end:
        program._call(lambda: result, [])
    assert end.value.code == status


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        program._call(lambda: 1 / 0, [])


def test_ctrl_c_under_another_error(capsys):
    """TensorFlow's context managers may raise an error while an interrupt passes through them."""

    def interrupted():
        try:
            raise signals.Interrupted(signal.SIGINT)
        finally:
            raise ValueError

    with pytest.raises(SystemExit) as end:
        program._call(interrupted, [])
    assert end.value.code == 130
