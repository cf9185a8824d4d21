"""Where the time of a step goes."""

import json

import tensorflow.compat.v1 as tf

from cifar10.measure import profiling


def test_trace_counts_the_steps_that_it_traces():
    calls = []
    with tf.device('/cpu:0'):
        called = tf.py_func(lambda: calls.append(1), [], [], name='called')
    with tf.Session() as session:
        figures, trace = profiling.trace(session, called, warmup_steps=2, steps=3)
    assert len(calls) == 5
    total = figures.pop('sum of all operations')
    assert abs(total - sum(figures.values())) < 1e-9 and figures['called (PyFunc)'] > 0
    assert any('PyFunc' in event['name'] for event in json.loads(trace)['traceEvents'])


def test_most_expensive_operations_come_first():
    """By their medians, at most 25 of them, with their shares round by round."""
    figures = {'op%d (Add)' % i: [i / 10, i / 10, 0] for i in range(1, 31)}
    figures['conv (Conv2D)'] = [50, 5, 30]
    figures['sum of all operations'] = [100, 50, 40]
    lines = profiling.most_expensive(figures).splitlines()
    assert lines[:4] == [
        '|  | ms | share in % |',
        '| --- | --- | --- |',
        '| conv (Conv2D) | 30 (5 to 50) | 50 (10 to 75) |',
        '| op30 (Add) | 3 (0 to 3) | 3 (0 to 6) |',
    ]
    assert [line.split(' ')[1] for line in lines[4:-1]] == ['op%d' % i for i in range(29, 6, -1)]
    assert lines[-1] == '| sum of all operations | 50 (40 to 100) | 100 (100 to 100) |'
