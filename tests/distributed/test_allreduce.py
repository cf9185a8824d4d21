"""The collectives in the graphs of all-reduce."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.config import FAST
from cifar10.distributed import allreduce
from cifar10.distributed.cluster import Strategy, Task
from cifar10.hooks import checkpoint_hooks
from tests.helpers import worker_graphs
from tests.helpers.worker_graphs import ancestors

NUM_PARAMETERS = 1068298


def _collectives(*fetches):
    return {op for op in ancestors(*fetches) if op.type.startswith('Collective')}


def _described(operations):
    """Return a dict from the keys of collectives to their common attributes."""
    names = ('group_key', 'group_size', 'merge_op', 'final_op')
    return {
        op.get_attr('instance_key'): [str(op.inputs[0].shape)] + [op.get_attr(n) for n in names]
        for op in operations
    }


def test_one_collective_for_all_gradients(data_dir):
    """At the start there is one per variable. All workers have the same collectives."""
    found = []
    for index in (2, 0):
        worker = worker_graphs.build(data_dir, 'allreduce', 0, 3, index, FAST)
        gradients = _collectives(worker.update.train_op)
        assert list(_described(gradients).values()) == [
            [f'({NUM_PARAMETERS},)', 1, 3, b'Add', b'Div']
        ]
        first = _collectives(worker.update.worker_init_op)
        with worker.graph.as_default():
            shapes = [str(variable.shape) for variable in tf.global_variables()]
        described = _described(gradients | first)
        assert len(described) == 1 + len(first) == 1 + len(shapes)
        assert sorted(_described(first).values()) == sorted(
            [shape, 1, 3, b'Add', b'Id'] for shape in shapes
        )
        found.append(described)
    assert found[0] == found[1]


def test_what_one_worker_fetches_alone_needs_no_collective(data_dir):
    """Fetches with the train op, such as summaries, may need its collective."""
    worker = worker_graphs.build(data_dir, 'allreduce', 0, 2)
    trained = _collectives(worker.update.train_op)
    assert _collectives(worker.fetches.summary_op) <= trained
    with worker.graph.as_default():
        nan_hook = checkpoint_hooks.NanHook(worker.fetches, None)
        nan_hook.begin()
        assert len(nan_hook._is_finite) == 20
        alone = [
            tf.global_variables_initializer(),
            tf.local_variables_initializer(),
            tf.train.get_global_step().read_value(),
            worker.update.chief_init_op,
            worker.fetches.learning_rate,
        ]
    alone += list(nan_hook._is_finite.values()) + worker.fetches.losses
    alone += [gradient for grads in worker.fetches.tower_grads for gradient, _ in grads]
    assert _collectives(*alone) == set()
    assert _collectives(*nan_hook._fetches['norms']) <= trained


def test_one_worker_needs_no_collective(data_dir):
    graph = worker_graphs.build(data_dir, 'allreduce', 0, 1).graph
    assert not any(op.type.startswith('Collective') for op in graph.get_operations())


def _alone(num_workers=1, index=0):
    return SimpleNamespace(strategy=Strategy('allreduce', num_workers), task=Task('worker', index))


def test_gradients_find_their_variables():
    """They were flattened to one vector."""
    rng = np.random.RandomState(0)
    gradients = [
        (tf.constant(rng.randn(*shape), tf.float32), tf.get_variable(f'v{i}', shape))
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
    """The chief adds its values, the others add zeros."""
    monkeypatch.setattr(allreduce.collective_ops, 'all_reduce', lambda tensor, *unused: tensor)
    values = [np.arange(6, dtype=np.float32).reshape(2, 3), np.int64(2**40 + 1)]
    variables = [tf.get_variable(f'v{i}', initializer=value) for i, value in enumerate(values)]
    start = allreduce.update(
        _alone(2, index), None, [(tf.zeros([2, 3]), variables[0])], None, lambda means: tf.no_op()
    ).worker_init_op
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(start)
        for value, after in zip(values, session.run(variables)):
            np.testing.assert_array_equal(after, value if index == 0 else np.zeros_like(value))
