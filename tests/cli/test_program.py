"""The scripts' flags, and what a mistake in them, or Ctrl-C, gives."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from cifar10.data import dataset
from cifar10.hparams import HParams
from tests.scripts.test_scripts import ROOT, run


@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_multi_gpu_train', 'cifar10_eval', 'cifar10_dataset',
                                    'cifar10_classic', 'cifar10_benchmark', 'cifar10_results'])
def test_ctrl_c_during_the_imports_ends_without_a_traceback(tmp_path, script):
    """A stand-in for TensorFlow says that its import has begun, and waits."""
    (tmp_path / 'tensorflow').mkdir()
    (tmp_path / 'tensorflow' / '__init__.py').write_text("print('importing', flush=True)\nopen(0).read()\n")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), ROOT]))
    process = subprocess.Popen([sys.executable, os.path.join(ROOT, 'scripts', script + '.py')], env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert process.stdout.readline() == 'importing\n'
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ('', '')
    assert process.returncode == -signal.SIGINT


def test_help_lists_every_flag():
    for script, flags in [('cifar10_multi_gpu_train', 'num_gpus data_dir train_dir batch_size max_steps log_frequency '
                           'log_device_placement dataset data_url seed fresh summary_steps checkpoint_steps max_to_keep '
                           'intra_op_threads inter_op_threads input_threads recipe ' + ' '.join(HParams._fields)),
                          ('cifar10_benchmark', 'baseline rounds warmup_steps steps json trace num_gpus batch_size dataset data_dir '
                           'data_url intra_op_threads inter_op_threads input_threads'),
                          ('cifar10_eval', 'data_dir eval_dir checkpoint_dir eval_data num_examples eval_interval_secs run_once '
                           'timeout_secs dataset data_url views'),
                          ('cifar10_results', 'runs at_epochs reach plot')]:
        _, stdout, _ = run(script, '--help')
        for flag in flags.split():
            assert re.search(r'^  --(\[no\])?%s: ' % flag, stdout, re.M), flag


TRAIN, EVAL, DATASET = 'cifar10_multi_gpu_train', 'cifar10_eval', 'cifar10_dataset'


@pytest.mark.parametrize('script, args, status, complaint', [
    (TRAIN, ['--num_gpus=0'], 2, r'flag --num_gpus=0: .*; --help lists the flags'),
    (TRAIN, ['--batch_size=9999999999'], 2, r'flag --batch_size=9999999999: .*'),
    (TRAIN, ['--batch_size=many'], 2, r'flag --batch_size=many: .*'),
    (TRAIN, ['--num_gpu=2'], 2, r"Unknown command line flag 'num_gpu'. Did you mean: num_gpus.*"),
    (TRAIN, ['--recipe=slow'], 2, r'flag --recipe=slow: value should be one of <classic\|fast\|best>.*'),
    (TRAIN, ['--contrast=nan'], 2, r'flag --contrast=nan: is not a number; .*'),
    (TRAIN, ['--recipe=fast', '--epochs=2'], 1, r'--schedule=linear needs an end after its warm-up, not --epochs=2: .*'),
    (EVAL, ['--views=3'], 2, r'flag --views=3: value should be one of <1\|2\|10>; .*'),
    (TRAIN, ['--num_gpus', '2', '3'], 2, r'unexpected argument 3; --help tells more'),
    (TRAIN, ['--dataset=mnist'], 2, r'flag --dataset=mnist: value should be one of <cifar10\|synthetic>.*'),
    (TRAIN, ['--data_dir={tmp}/damaged', '--dataset=synthetic'], 1, r'{tmp}/damaged/.*/data_batch_2.bin is not a whole number .*'),
    (TRAIN, ['--data_dir={tmp}/file'], 1, r'Cannot make the directory {tmp}/file \(File exists\): give another one'),
    (TRAIN, ['--data_dir='], 2, r'flag --data_dir=: the name of a directory is missing; .*'),
    (TRAIN, ['--max_to_keep=9999999999'], 2, r'flag --max_to_keep=9999999999: .*'),
    (TRAIN, ['--data_dir={data}', '--dataset=synthetic', '--train_dir={tmp}/file'], 1, r'Cannot make the directory {tmp}/file .*'),
    (TRAIN, ['--data_dir={tmp}/new', '--data_url=http://127.0.0.1:1/x'], 1, r'Cannot download http://127.0.0.1:1/x .*--data_url.*'),
    (EVAL, ['--data_dir={data}', '--dataset=synthetic', '--run_once', '--checkpoint_dir={tmp}'], 1,
     r'There is no checkpoint in {tmp}: train first.*'),
    (EVAL, ['--data_dir={data}', '--dataset=synthetic', '--num_examples=51'], 1, r'--num_examples=51 is more than the 50 .*'),
    (EVAL, ['--eval_data=train'], 2, r'flag --eval_data=train: value should be one of <test\|train_eval>.*'),
    (EVAL, ['--run_once=perhaps'], 2, r'flag --run_once=perhaps: .*'),
    (DATASET, [], 2, r'a command is missing: download, synthetic or verify; --help tells more'),
    (DATASET, ['upload'], 2, r'unexpected argument upload; --help tells more'),
    (DATASET, ['verify', '--data_dir={tmp}/damaged'], 1, r'{tmp}/damaged/.*/data_batch_2.bin is not a whole number .*'),
    (DATASET, ['verify', '--data_dir={tmp}/nowhere'], 1, r'{tmp}/nowhere/.*/data_batch_1.bin is missing: .*'),
])
def test_a_mistake_gets_one_clear_line(tmp_path, data_dir, script, args, status, complaint):
    (tmp_path / 'file').write_text('')
    shutil.copytree(data_dir, str(tmp_path / 'damaged'))
    with open(dataset.train_files(str(tmp_path / 'damaged'))[1], 'ab') as damaged:
        damaged.write(b'x')
    before = sorted(glob.glob(str(tmp_path / '**'), recursive=True))
    found, _, stderr = run(script, *[arg.format(tmp=tmp_path, data=data_dir) for arg in args])
    assert re.fullmatch(r'%s.py: error: %s\n' % (script, complaint.format(tmp=tmp_path)), stderr), stderr
    assert found == status
    assert set(sorted(glob.glob(str(tmp_path / '**'), recursive=True))) - set(before) <= {str(tmp_path / 'new')}
