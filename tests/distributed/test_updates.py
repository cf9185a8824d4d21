"""Updates of the modes, with servers and workers in one process, against NumPy and towers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.distributed.cluster import Strategy
from tests.distributed import cluster_threads
from tests.distributed.cluster_threads import HPARAMS, SCALES, SHAPES, SHIFTS, initial
from tests.machine import numpy_network

AVERAGE = '/ExponentialMovingAverage'


def _assert_close(found, wanted):
    """Compare the variables that are wanted."""
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6, err_msg=name)


def _gradient(value, index):
    return SCALES[index] * value + SHIFTS[index]


class _Model:
    """Variables, momentum and moving averages in NumPy, in float64."""

    def __init__(self, recipe='classic'):
        self._hparams, self.step = HPARAMS[recipe], 0
        self.weights = {name: initial(name).astype(float) for name in SHAPES}
        self.averages, self._momenta = dict(self.weights), dict.fromkeys(SHAPES, 0.0)

    def update(self, gradients):
        """Make an update."""
        self.step += 1
        decay = min(self._hparams.moving_average_decay, (1 + self.step) / (10 + self.step))
        for name, gradient in gradients.items():
            values = self.weights[name], gradient, self._momenta[name]
            self.weights[name], self._momenta[name] = numpy_network.update(
                name, values, self._hparams, self._hparams.initial_learning_rate
            )
            self.averages[name] = decay * self.averages[name] + (1 - decay) * self.weights[name]

    def values(self):
        """Return the values of the TensorFlow variables, by name, without slots."""
        averages = {name + AVERAGE: value for name, value in self.averages.items()}
        return dict(self.weights, global_step=self.step, **averages)


def _towers(data_dir, recipe, num_towers, num_updates):
    """Return the values after each update of one process, from the mean of the gradients."""
    strategy = Strategy('sync', num_towers)
    job = cluster_threads.job(data_dir, strategy, recipe)
    opt = cluster_threads.optimizer_of(job)
    pairs = []
    for name in SHAPES:
        variable = tf.get_variable(name, initializer=initial(name))
        gradients = [_gradient(variable.read_value(), i) for i in range(num_towers)]
        pairs.append((tf.add_n(gradients) / num_towers, variable))
    train_op = optimizer.train_op(
        opt, pairs, tf.train.get_global_step(), job.run_length, job.hparams
    )
    values = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(num_updates):
            session.run(train_op)
            values.append(session.run({v.op.name: v for v in tf.global_variables()}))
    return values


@pytest.mark.parametrize(
    'mode, num_ps, num_workers, recipe',
    [
        ('sync', 1, 2, 'classic'),
        ('sync', 2, 2, 'momentum'),
        ('sync', 2, 3, 'fast'),
        ('allreduce', 0, 2, 'fast'),
        ('allreduce', 0, 3, 'momentum'),
    ],
)
def test_workers_are_towers(tmp_path, data_dir, mode, num_ps, num_workers, recipe):
    """All variables are compared, slots and moving averages included.

    They begin with the initial values of the chief. In an all-reduce, all workers stay equal.
    """
    wanted = _towers(data_dir, recipe, num_workers, 3)
    turns = [list(range(num_workers))] * 3
    found = cluster_threads.run(
        tmp_path, data_dir, turns, mode, num_ps, num_workers, [{'recipe': recipe}]
    )
    for step, values in enumerate(wanted):
        of_workers = [found[step]] if mode == 'sync' else found[step]
        assert sorted(of_workers[0]) == sorted(values)
        _assert_close(of_workers[0], values)
        for others in of_workers[1:]:
            np.testing.assert_equal(others, of_workers[0])


def test_backup_workers(tmp_path, data_dir):
    """A gradient that is too late does not count; the next one of this worker does."""
    model, turns = _Model(), [[0], [1], [1]]
    found = cluster_threads.run(tmp_path, data_dir, turns, 'sync', replicas_to_aggregate=1)
    for values, index in zip(found, [0, None, 1]):
        if index is not None:
            model.update({n: _gradient(w, index) for n, w in model.weights.items()})
        _assert_close(values, model.values())


def test_averages(tmp_path, data_dir):
    """After two local steps, weights and moving averages are averaged, but not the momentum."""
    models = [_Model('momentum') for _ in range(2)]
    found = cluster_threads.run(
        tmp_path,
        data_dir,
        [[0, 1]] * 5,
        'average',
        num_ps=2,
        jobs=[{'recipe': 'momentum', 'max_steps': 5}],
        average_period=2,
    )
    for step, values in enumerate(found, 1):
        for index, model in enumerate(models):
            model.update({n: _gradient(w, index) for n, w in model.weights.items()})
        if step in (2, 4, 5):  # 5 is the last step
            for name in SHAPES:
                for kind in ('weights', 'averages'):
                    mean = sum(getattr(model, kind)[name] for model in models) / 2
                    for model in models:
                        getattr(model, kind)[name] = mean
        for model, own in zip(models, values):
            _assert_close(own, model.values())


@pytest.mark.parametrize('push_steps, fetch_steps', [(1, 1), (2, 3), (3, 1), (1, 2)])
def test_downpour(tmp_path, data_dir, push_steps, fetch_steps):
    """Algorithm 7.1 of Dean et al.; and the updates of others since the weights were fetched."""
    order = [0, 1, 1, 0, 0, 1]
    found = cluster_threads.run(
        tmp_path,
        data_dir,
        [[index] for index in order],
        'async',
        push_steps=push_steps,
        fetch_steps=fetch_steps,
    )
    model, rate = _Model(), HPARAMS['classic'].initial_learning_rate
    copies, fetched, steps = [None, None], [0, 0], [0, 0]
    for index, values in zip(order, found):
        total = dict.fromkeys(SHAPES, 0.0)
        for _ in range(push_steps):
            if steps[index] % fetch_steps == 0:
                copies[index] = dict(model.weights)
                if (push_steps, fetch_steps) != (1, 1):
                    fetched[index] = model.step
            steps[index] += 1
            for name, copy in copies[index].items():
                gradient = _gradient(copy, index)
                total[name] = total[name] + gradient
                copies[index][name] = copy - rate * gradient
        staleness = model.step - fetched[index]
        model.update(total)
        if (push_steps, fetch_steps) == (1, 1):  # It is counted from the end of the own update.
            fetched[index] = model.step
        _assert_close(values, dict(model.values(), staleness=staleness))


@pytest.mark.parametrize('mode, is_restored', [('sync', True), ('async', False)])
def test_another_session_of_the_chief(tmp_path, data_dir, mode, is_restored):
    """Asynchronous training goes on with the variables of the servers."""
    turns = [[0, 1], 'save', [1, 0], 'restart']
    _, saved, later, restarted = cluster_threads.run(tmp_path, data_dir, turns, mode, num_ps=2)
    assert saved['global_step'] < later['global_step']
    wanted = saved if is_restored else later
    _assert_close(restarted, {name: wanted[name] for name in wanted if name != 'staleness'})


@pytest.mark.parametrize(
    'mode, num_ps, own, name',
    [
        ('sync', 2, {'recipe': 'momentum'}, 'optimizer'),  # It has other variables.
        ('sync', 2, {'data_dir': None}, 'training_data'),
        ('allreduce', 0, {'recipe': 'faster'}, 'initial_learning_rate'),
        ('allreduce', 0, {'max_steps': 7}, 'max_steps'),
    ],
)
def test_another_flag_than_the_chief(tmp_path, data_dir, own_data_dir, mode, num_ps, own, name):
    if 'data_dir' in own:
        with open(own_data_dir + '/cifar-10-batches-bin/data_batch_1.bin', 'r+b') as file:
            file.write(b'\x05')
        own = {'data_dir': own_data_dir}
    complaint = cluster_threads.run(tmp_path, data_dir, [], mode, num_ps, jobs=[{}, own])
    assert complaint == (
        f'UserError: worker 1 has another {name} than the chief: give all workers the same flags '
        'and data'
    )
