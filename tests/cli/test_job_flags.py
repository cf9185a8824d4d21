"""From flags to a Job."""

from absl import flags
import pytest

from cifar10.cli import given_job, job_flags
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import FAST, Intervals
from cifar10.runs.machine import Threads
from cifar10.training import Job
from tests.helpers import programs


@pytest.fixture(autouse=True)
def defined():
    """The flags, for one test."""
    with programs.own_flags():
        job_flags.define()
        yield


def test_without_flags_the_defaults_of_the_job(data_dir):
    flags.FLAGS(['a script', '--data_dir=' + data_dir])
    assert given_job.prepare() == Job(dataset.read(data_dir), 300, devices=['/cpu:0'])


def test_every_flag_reaches_the_job(data_dir):
    flags.FLAGS(
        [
            'a script',
            '--data_dir=' + data_dir,
            '--dataset=synthetic',
            '--recipe=fast',
            '--batch_size=5',
            '--intra_op_threads=2',
            '--inter_op_threads=3',
            '--input_threads=4',
            '--max_steps=6',
            '--log_frequency=7',
            '--summary_steps=8',
            '--checkpoint_steps=9',
            '--max_to_keep=10',
            '--eval_steps=12',
            '--seed=11',
            '--log_device_placement',
            '--profile_step=6',
        ]
    )
    assert given_job.prepare(6, 3, 'spread') == Job(
        data=dataset.read(data_dir),
        num_examples=300,
        hparams=FAST._replace(batch_size=5),
        devices=['/cpu:%d' % i for i in range(6)],
        devices_per_tower=3,
        variable_strategy='spread',
        given_threads=Threads(intra_op=2, inter_op=3, prefetch=4),
        max_steps=6,
        intervals=Intervals(
            log_frequency=7,
            summary_steps=8,
            checkpoint_steps=9,
            max_to_keep=10,
            eval_steps=12,
            profile_step=6,
        ),
        seed=11,
        log_device_placement=True,
    )


@pytest.mark.parametrize('args, eval_steps', [([], 9), (['--eval_steps=4'], 4)])
def test_the_best_is_chosen_of_all_checkpoints_by_default(data_dir, args, eval_steps):
    flags.FLAGS(
        ['a script', '--data_dir=' + data_dir, '--keep_best', '--checkpoint_steps=9'] + args
    )
    intervals = given_job.prepare().intervals
    assert (intervals.keep_best, intervals.eval_steps) == (True, eval_steps)


def test_the_best_of_no_evaluation():
    flags.FLAGS(['a script', '--keep_best', '--eval_steps=0'])
    with pytest.raises(
        UserError,
        match='^--keep_best needs evaluations, and --eval_steps=0 makes none: leave out one of them$',
    ):
        job_flags.check()


def test_a_step_to_trace_after_the_end():
    flags.FLAGS(['a script', '--max_steps=6', '--profile_step=7'])
    with pytest.raises(
        UserError,
        match='^--profile_step=7 is after the end of the run, --max_steps=6: give a step up to that$',
    ):
        job_flags.check()


def test_the_run_is_held_in_train_dir(tmp_path, data_dir):
    flags.FLAGS(
        [
            'a script',
            '--data_dir=' + data_dir,
            '--train_dir=%s' % (tmp_path / 'run'),
            '--recipe=fast',
        ]
    )
    job = given_job.prepare(4, 2)
    with given_job.held_run(job) as run:
        assert run.record['last_step'] == job.pace.last_step == 38
        assert (run.path, run.resumed) == (str(tmp_path / 'run'), None)
        assert (run.record['recipe'], run.record['num_towers'], run.record['class_names'][0]) == (
            'fast',
            2,
            'disc',
        )


def test_defaults_of_the_books():
    job_flags.define_num_gpus()
    job_flags.define_placement()
    flags.FLAGS(['a script'])
    names = [
        'num_gpus',
        'train_dir',
        'data_dir',
        'max_steps',
        'log_frequency',
        'summary_steps',
        'checkpoint_steps',
        'max_to_keep',
        'devices_per_tower',
        'variable_strategy',
    ]
    assert [flags.FLAGS[name].value for name in names] == [
        1,
        '/tmp/cifar10_train',
        '/tmp/cifar10_data',
        1000000,
        10,
        100,
        1000,
        5,
        1,
        'cpu',
    ]
