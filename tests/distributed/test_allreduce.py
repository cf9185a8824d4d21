"""The collectives in the graphs of all-reduce: how many, of what, and who runs them."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import checkpointing
from cifar10.distributed import allreduce
from cifar10.distributed.cluster import Strategy, Task
from cifar10.hparams import CLASSIC, FAST
from tests.helpers import worker_graphs
from tests.helpers.worker_graphs import ancestors

NUM_PARAMETERS = 1068298  # only the 10 biases of softmax_linear do not fill rows of 16


def _collectives(*fetches):
    return [op for op in ancestors(*fetches) if op.type.startswith('Collective')]


def _keys(operations):
    return sorted((op.get_attr('group_key'), op.get_attr('instance_key')) for op in operations)


@pytest.mark.parametrize('hparams, num_workers', [(CLASSIC, 2), (FAST, 3)], ids=['classic', 'fast'])
def test_one_collective_for_all_gradients(data_dir, hparams, num_workers):
    worker = worker_graphs.build(data_dir, 'allreduce', 0, num_workers, num_workers - 1, hparams)
    (collective,) = _collectives(worker.update.train_op)
    assert collective.inputs[0].shape.as_list() == [(NUM_PARAMETERS + 6) // 16, 16]
    assert {name: collective.get_attr(name) for name in ('group_size', 'merge_op', 'final_op')} == {
        'group_size': num_workers,
        'merge_op': b'Add',
        'final_op': b'Div',
    }
    # The values at the start: one collective for each type.
    with worker.graph.as_default():
        kinds = {variable.dtype.base_dtype for variable in tf.global_variables()}
        total = sum(
            -(-variable.shape.num_elements() // 16) * 16 for variable in tf.global_variables()
        )
    first = _collectives(worker.update.start_op)
    assert {op.inputs[0].dtype for op in first} == kinds == {tf.float32, tf.int64} and len(
        first
    ) == 2
    assert sum(op.inputs[0].shape.num_elements() for op in first) == total
    assert {
        tuple(op.get_attr(name) for name in ('group_size', 'merge_op', 'final_op')) for op in first
    } == {(num_workers, b'Add', b'Id')}
    assert (
        len(set(_keys(first + [collective]))) == 3
        and len({group for group, _ in _keys(first + [collective])}) == 1
    )


def test_what_one_worker_fetches_alone_needs_no_collective(data_dir):
    """What is fetched together with the train op, as summaries are, may need the collective that
    the train op runs anyway."""
    worker = worker_graphs.build(data_dir, 'allreduce', 0, 2)
    trained = set(_collectives(worker.update.train_op))
    assert set(_collectives(worker.fetches.summary_op)) <= trained
    with worker.graph.as_default():
        finite = checkpointing.FiniteHook(tf.train.get_global_step(), worker.fetches, None)
        finite.begin()
        assert _collectives(*finite._is_finite.values()) == [] and len(finite._is_finite) == 20
        alone = [
            tf.global_variables_initializer(),
            tf.local_variables_initializer(),
            tf.train.get_global_step().read_value(),
        ]
    assert (
        _collectives(
            *alone
            + [worker.update.publish_op, worker.fetches.learning_rate]
            + worker.fetches.losses
        )
        == []
    )
    assert (
        _collectives(*[gradient for grads in worker.fetches.tower_grads for gradient, _ in grads])
        == []
    )
    assert set(_collectives(*finite._fetches['norms'])) <= trained


def test_workers_run_the_same_collectives(data_dir):
    found = []
    for index in (0, 1):
        worker = worker_graphs.build(data_dir, 'allreduce', 0, 2, index, FAST)
        operations = [
            op for op in worker.graph.get_operations() if op.type.startswith('Collective')
        ]
        found.append(
            {
                key: (
                    op.type,
                    str(op.inputs[0].shape),
                    op.inputs[0].dtype,
                    op.get_attr('merge_op'),
                    op.get_attr('final_op'),
                )
                for op in operations
                for key in _keys([op])
            }
        )
        assert len(found[-1]) == len(operations) == 3
    assert found[0] == found[1]


def test_one_worker_needs_no_collective(data_dir):
    graph = worker_graphs.build(data_dir, 'allreduce', 0, 1).graph
    assert not any(op.type.startswith('Collective') for op in graph.get_operations())


def _alone(num_workers=1, index=0):
    return SimpleNamespace(strategy=Strategy('allreduce', num_workers), task=Task('worker', index))


def test_gradients_find_their_variables():
    """After they have been one vector."""
    rng = np.random.RandomState(0)
    gradients = [
        (tf.constant(rng.randn(*shape), tf.float32), tf.get_variable('v%d' % i, shape))
        for i, shape in enumerate([[3, 5], [7], [], [2, 2, 2]])
    ]
    update = allreduce.update(
        _alone(),
        None,
        gradients,
        None,
        lambda means: tf.group(*(gradient for gradient, _ in means)),
    )
    assert [variable for _, variable in update.gradients] == [variable for _, variable in gradients]
    with tf.Session() as session:
        for (gradient, _), (same, _) in zip(gradients, update.gradients):
            np.testing.assert_array_equal(*session.run([gradient, same]))


@pytest.mark.parametrize('index', [0, 1])
def test_all_start_with_the_values_of_the_chief(monkeypatch, index):
    """Each one's part of the sum: the chief's are its values, those of the others zeros."""
    monkeypatch.setattr(allreduce.collective_ops, 'all_reduce', lambda tensor, *unused: tensor)
    values = [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.float32(7),
        np.int64(2**40 + 1),
        np.array([1.5], np.float32),
    ]
    variables = [tf.get_variable('v%d' % i, initializer=value) for i, value in enumerate(values)]
    start = allreduce.update(
        _alone(2, index), None, [(tf.zeros([2, 3]), variables[0])], None, lambda means: tf.no_op()
    ).start_op
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(start)
        for value, after in zip(values, session.run(variables)):
            np.testing.assert_array_equal(after, value if index == 0 else np.zeros_like(value))
