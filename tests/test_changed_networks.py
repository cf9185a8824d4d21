"""docs/exercises.md: its changes of network and training, and all programs that follow them."""

import dataclasses
import hashlib
import json
import math
import os
import re
import shutil
import textwrap
import types
from unittest import mock

import numpy as np
from PIL import Image
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import model, multi_gpu, muon, network, optimizer
from cifar10.config import CLASSIC, RunLength
from cifar10.data import dataset
from cifar10.network import Network
from cifar10.runs import checkpoint
from tests.helpers import checkouts, clusters, faults, messages, oracle, pages, programs
from tests.helpers.forks import ROOT

PAGE = pages.read('exercises.md')
NUM_FILTERS, DROPOUT, LOSS, DEVICES, RESIDUAL, ADAM, COSINE, PADDING = [
    item.text for item in pages.items('exercises.md') if item.is_python
][:8]
ROWS = re.findall(r'^\| [^|]+ \| (`.*`) \| (\d+) \|$', PAGE, re.MULTILINE)
MODEL = checkouts.read_module('model.py')
AVERAGE = '/ExponentialMovingAverage'
INITIAL = {'moving_mean': 0, 'moving_variance': 1}  # statistics of batch normalization


def _number(text):
    """Return the number of parameters that the page has after a text."""
    return int(re.search(text + r'.*?`Network: (\d+) parameters`', PAGE, re.DOTALL).group(1))


def _change_row(change):
    """Return MODEL with the change in a row of the table."""
    kinds = 'instead of|in the line before|in the line after that of'
    new, kind, old = re.fullmatch(rf'`(.*?)`,? ({kinds}) `(.*?)`', change).groups()
    if kind == 'instead of':
        return checkouts.replace(MODEL, [(re.escape(old), new)])
    pattern = re.escape(old) if 'before' in kind else old + ' = .*'
    (line,) = re.findall(rf'(?<=\n) +{pattern}\n', MODEL)
    new = f'    {new}\n'
    new = new + line if 'before' in kind else line + new
    return checkouts.replace(MODEL, [(re.escape(line), new)])


def _on_two_devices():
    """Return MODEL with two lines of tf.device, for CPUs."""
    found = re.search(
        r'    pool2 = _conv.*\n((.*\n)*?)    flat = .*\n((.*\n)+?)(?=    return log)', MODEL
    )
    layers = textwrap.indent(found.group(1) + found.group(3), '    ')
    return MODEL.replace(found.group(), DEVICES.replace('gpu', 'cpu') + layers)


NETWORKS = {
    'residual': RESIDUAL,
    'fewer_filters': _change_row(ROWS[0][0]),
    'one_more_convolution': _change_row(ROWS[1][0]),
    'one_more_layer': _change_row(ROWS[2][0]),
    'renamed': _change_row(ROWS[3][0]),
    'dropout': checkouts.replace(MODEL, [(r"(?<=\n)(?=    with .*'softmax_linear')", DROPOUT)]),
    'another_loss': checkouts.replace(MODEL, [(r'def loss\((.*\n)*', LOSS)]),
    'two_devices': _on_two_devices(),
}


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """The paths of NETWORKS by name."""
    directory = tmp_path_factory.mktemp('networks')
    for name, text in NETWORKS.items():
        (directory / f'{name}.py').write_text(text)
    return {name: str(directory / f'{name}.py') for name in NETWORKS}


def _call(script, *args):
    """Return the stdout of a script that succeeds, called in this process."""
    status, stdout, stderr = programs.call(script, *args)
    assert status == 0, stderr
    return stdout


def _assert_one_line(result, *parts, status=1):
    """Assert that a script has ended with one line on stderr."""
    assert result[0] == status
    faults.assert_one_line(result[2], *parts)


def _statistics(values):
    """Return the statistics of batch normalization, and their averages."""
    pattern = f'.*/moving_(mean|variance)({AVERAGE})?'
    return {name: value for name, value in values.items() if re.fullmatch(pattern, name)}


def _assert_moved(run, step, number=20):
    """Assert that no statistic in a checkpoint has its initial value."""
    found = _statistics(checkpoint.read(f'{run}/model.ckpt-{step}').values)
    assert len(found) == number
    for name, value in found.items():
        assert (value != INITIAL[name.replace(AVERAGE, '').split('/')[-1]]).all(), name


# The numbers of the page, and layers in NumPy


@pytest.mark.parametrize(
    'name, number',
    [
        *zip(list(NETWORKS)[1:5], (int(number) for _, number in ROWS)),
        ('residual', _number('A residual network')),
        ('dropout', 1068298),
    ],
)
def test_numbers_of_parameters(files, name, number):
    trainable = Network(files[name]).graph(2).get_collection('trainable_variables')
    assert sum(variable.shape.num_elements() for variable in trainable) == number


def _relu(x):
    return np.maximum(x, 0)


def _conv(x, weights, stride):
    """Return a convolution with padding SAME."""
    size, out = len(weights), -(-x.shape[1] // stride)
    missing = (out - 1) * stride + size - x.shape[1]
    pads = (missing // 2, missing - missing // 2)
    x, stop = np.pad(x, [(0, 0), pads, pads, (0, 0)], 'constant'), (out - 1) * stride + 1
    return sum(
        x[:, i : i + stop : stride, j : j + stop : stride] @ weights[i, j]
        for i in range(size)
        for j in range(size)
    )


class _Layers:
    """Batch normalization in NumPy, in float64.

    Attributes:
      statistics: (mean, variance, number of values) of the batch, by the name of the layer.
    """

    def __init__(self, values, is_training):
        self._values = {name: value.astype(np.float64) for name, value in values.items()}
        self._is_training, self.statistics = is_training, {}

    def __call__(self, x, name, stride=1):
        value = {key: self._values.get(f'{name}/{key}') for key in ('scale', 'offset', *INITIAL)}
        x = _conv(x, self._values[name + '/weights'], stride)
        mean, variance = value['moving_mean'], value['moving_variance']
        if self._is_training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            self.statistics[name] = mean, variance, x.size // x.shape[3]
        return (x - mean) / np.sqrt(variance + 1e-3) * value['scale'] + value['offset']

    def logits(self, x):
        values = [self._values['softmax_linear/' + name] for name in ('weights', 'biases')]
        return x.mean((1, 2)) @ values[0] + values[1]


def _listing(x, layer):
    """Return the logits of the page's network; `layer` is a _Layers."""
    x = _relu(layer(x, 'conv', 2))
    for block in ('block1', 'block2'):
        y = _relu(layer(x, block + '/conv1'))
        x = _relu(x + layer(y, block + '/conv2'))
    return layer.logits(x)


def _resnet(x, layer):
    """Return the logits of ResNet-20 (He et al., section 4.2, shortcuts of option A)."""
    x = _relu(layer(x, 'conv'))
    for i in range(9):
        name, stride = f'group{i // 3 + 1}_block{i % 3 + 1}', 2 if i in (3, 6) else 1
        y = _relu(layer(x, name + '/conv1', stride))
        y = layer(y, name + '/conv2')
        if stride == 2:
            zeros = np.zeros_like(y[..., : y.shape[3] // 4])
            x = np.concatenate([zeros, x[:, ::2, ::2], zeros], 3)
        x = _relu(x + y)
    return layer.logits(x)


@pytest.mark.parametrize('is_training', [False, True])
@pytest.mark.parametrize('name, logits', [('residual', _listing), ('resnet', _resnet)])
def test_logits_and_statistics_equal_numpy(files, name, logits, is_training):
    """Of batches of two sizes. resnet has the unbiased variance, as the kernel of cuDNN."""
    images = tf.placeholder(tf.float32, [None, 24, 24, 3])
    found = Network(files.get(name, name)).inference(images, is_training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    variables, rng = network.variables(), np.random.RandomState(0)
    if name == 'resnet':
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]
        assert sum(sizes) == 269722  # 0.27 million in the paper
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for key, variable in variables.items():
            if not key.endswith('/weights'):
                value = rng.uniform(0.5, 1.5, variable.shape.as_list())
                variable.load(value - (not key.endswith('variance')), session)
        for size in (5, 3):
            fed, before = rng.randn(size, 24, 24, 3), session.run(variables)
            layers = _Layers(before, is_training)
            expected = logits(fed, layers)
            values = session.run(found, {images: fed})
            np.testing.assert_allclose(values, expected, atol=1e-4 * np.abs(expected).max())
            session.run(updates, {images: fed})
            after = session.run(variables)
            assert len(layers.statistics) == len(updates) / 2 == (len(before) // 5) * is_training
            for layer, (mean, variance, count) in layers.statistics.items():
                bessel = count / (count - 1) if name == 'resnet' else 1
                for key, value in [('mean', mean), ('variance', variance * bessel)]:
                    key = f'{layer}/moving_{key}'
                    wanted = 0.9 * before[key] + 0.1 * value
                    np.testing.assert_allclose(after[key], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('num_towers', [1, 2])
def test_statistics_are_those_of_the_first_tower(files, num_towers):
    """After 20 steps; their averages have the decay min(d, (1 + step) / (10 + step))."""
    images = [tf.placeholder(tf.float32, [8, 24, 24, 3]) for _ in range(num_towers)]
    hparams = dataclasses.replace(CLASSIC, moving_average_decay=0.5)
    step, opt = tf.train.get_or_create_global_step(), optimizer.create(0.05, hparams)
    _, tower_grads = multi_gpu.tower_gradients(
        [f'/cpu:{i}' for i in range(num_towers)],
        [(each, tf.constant(np.arange(8))) for each in images],
        opt,
        Network(files['residual'], hparams=hparams),
    )
    gradients, run_length = multi_gpu.average_gradients(tower_grads), RunLength(8, 300)
    train_op = optimizer.train_op(opt, gradients, step, run_length, hparams)
    variables, rng = {v.op.name: v for v in tf.global_variables()}, np.random.RandomState(0)
    config = tf.ConfigProto(device_count={'CPU': num_towers})
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        values = session.run(variables)
        wanted = {name: value.astype(float) for name, value in _statistics(values).items()}
        for count in range(1, 21):
            fed = [1 + (i + 1) * rng.randn(8, 24, 24, 3) for i in range(num_towers)]
            layers, decay = _Layers(values, True), min(0.5, (1 + count) / (10 + count))
            _listing(fed[0], layers)
            session.run(train_op, dict(zip(images, fed)))
            values = session.run(variables)
            for layer, statistics in layers.statistics.items():
                for name, value in zip(INITIAL, statistics):
                    name = f'{layer}/{name}'
                    wanted[name] += 0.1 * (value - wanted[name])
                    wanted[name + AVERAGE] += (1 - decay) * (wanted[name] - wanted[name + AVERAGE])
    assert len(wanted) == 20
    for name, value in wanted.items():
        np.testing.assert_allclose(values[name], value, rtol=2e-5, atol=1e-5, err_msg=name)


def test_the_train_op_of_the_tutorial_updates_the_statistics():
    model = types.ModuleType('model')
    exec(RESIDUAL, model.__dict__)
    logits = model.inference(
        tf.constant(np.random.RandomState(0).randn(4, 24, 24, 3), tf.float32), is_training=True
    )
    step = tf.train.get_or_create_global_step()
    train_op = cifar10.train(cifar10.loss(logits, tf.constant([1, 2, 3, 4])), step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        found = session.run(_statistics({v.op.name: v for v in tf.global_variables()}))
    assert found and all((value % 1 != 0).all() for value in found.values())


def test_hidden_layers_of_muon(files):
    for name in ('model', 'resnet', files['residual']):
        with Network(name).graph().as_default():
            names = [v.op.name for v in tf.trainable_variables()]
            hidden = [v.op.name for v in tf.trainable_variables() if muon._is_hidden(v)]
        weights = [name for name in names if name.endswith('/weights')]
        assert hidden == [name for name in weights if name != 'softmax_linear/weights']
        assert len(hidden) == {'model': 4, 'resnet': 19}.get(name, 5)


@pytest.mark.parametrize('size', [16, None])
def test_grad_cam(graph, size):
    """The gradient of a logit with respect to pool2, as a program of the tutorial asks for it."""
    images = tf.placeholder(tf.float32, [size, 24, 24, 3])
    logits = cifar10.inference(images)
    pool2 = graph.get_tensor_by_name('pool2:0')
    (gradient,) = tf.gradients(logits[:, 7], pool2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        fed = {images: np.random.RandomState(0).randn(16, 24, 24, 3)}
        found, x, values = session.run([gradient, pool2, network.variables()], fed)
    signs, x = [], x.reshape(16, -1)
    for layer in ('local3', 'local4'):
        x = _relu(x @ values[layer + '/weights'] + values[layer + '/biases'])
        signs.append(x > 0)
    expected = signs[1] * values['softmax_linear/weights'][:, 7]
    expected = (signs[0] * (expected @ values['local4/weights'].T)) @ values['local3/weights'].T
    assert found.shape == (16, 6, 6, 64)
    expected = expected.reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


# Changes of the training


def _module(name, *replacements):
    """Return a module of the package after replacements in its text."""
    module = types.ModuleType(name)
    text = checkouts.replace(checkouts.read_module(name + '.py'), replacements)
    exec(text, module.__dict__)
    return module


CREATE = r"(?=    if hparams\.optimizer == 'gradient_descent')", ADAM
RATE = r'(?=        else:  # linear\n)', COSINE
SAMPLE = r'last = HEIGHT - image_size', re.search(r'`(last = .*?)`', PAGE).group(1)
DISTORT = r'(?=    rows, columns, flip, contrast_factors = )', PADDING


def test_adam():
    """Kingma and Ba, 2015, algorithm 1; all variables share the powers of the two decays."""
    changed, rng = _module('optimizer', CREATE), np.random.RandomState(0)
    hparams = types.SimpleNamespace(**dict(vars(CLASSIC), optimizer='adam'))
    values, factors = [{name: rng.randn(4) for name in 'abc'} for _ in range(2)]
    variables = {
        name: tf.get_variable(name, initializer=value.astype(np.float32))
        for name, value in values.items()
    }
    gradients = [
        (variables[name] * factors[name].astype(np.float32), variables[name]) for name in 'abc'
    ]
    opt, step = changed.create(0.01, hparams), tf.train.get_or_create_global_step()
    train_op = changed.train_op(opt, gradients, step, RunLength(8, 300), hparams)
    powers = [v for v in tf.global_variables() if 'power' in v.op.name]
    m, v = dict.fromkeys('abc', 0), dict.fromkeys('abc', 0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for t in (1, 2, 3):
            session.run(train_op)
            for name in 'abc':
                gradient = values[name] * factors[name]
                m[name] = 0.9 * m[name] + 0.1 * gradient
                v[name] = 0.999 * v[name] + 0.001 * gradient**2
                means = m[name] / (1 - 0.9**t), v[name] / (1 - 0.999**t)
                values[name] = values[name] - 0.01 * means[0] / np.sqrt(means[1])
                found = session.run(variables[name])
                np.testing.assert_allclose(found, values[name], rtol=1e-4, atol=1e-6)
        found = sorted(session.run(powers))
    np.testing.assert_allclose(found, [0.9**4, 0.999**4], rtol=1e-5)


def test_cosine():
    changed = _module('optimizer', RATE)
    hparams = types.SimpleNamespace(**dict(vars(CLASSIC), schedule='cosine', epochs=20.0))
    with tf.Session() as session:
        for step in (0, 5000, 9999):  # of 500 steps per epoch
            rate = changed.learning_rate(tf.constant(step), RunLength(100, 50000), hparams)
            expected = 0.1 * (1 + math.cos(math.pi * step / 10000)) / 2
            np.testing.assert_allclose(session.run(rate), expected, rtol=1e-5, atol=1e-8)


def test_padding():
    changed, rng = _module('distortions', SAMPLE, DISTORT), np.random.RandomState(0)
    images = rng.randint(0, 256, [4, 3, 32, 32]).astype(np.uint8)
    rows, columns, flip = [0, 4, 8, 1], [8, 4, 0, 7], [False, False, True, True]
    given = changed.Distortions(
        tf.constant(rows), tf.constant(columns), tf.constant(flip), tf.ones([4])
    )
    with tf.Session() as session:
        found = session.run(changed.distort(tf.constant(images), given, 32))
        sampled = session.run(changed.sample(2000, image_size=32))
    assert set(sampled.rows) == set(sampled.columns) == set(range(9))
    for i, image in enumerate(images):
        padded = np.pad(image, [(0, 0), (4, 4), (4, 4)], 'constant').astype(float)
        crop = padded[:, rows[i] : rows[i] + 32, columns[i] : columns[i] + 32]
        crop = (crop[..., ::-1] if flip[i] else crop).transpose(1, 2, 0)
        np.testing.assert_allclose(found[i], (crop - crop.mean()) / crop.std(), atol=1e-4)


# The residual network in the programs


RESIDUAL_STEPS = ['--batch_size=16', '--deterministic', '--seed=1']


@pytest.fixture(scope='module')
def residual_run(tmp_path_factory, data_dir, files):
    """A run of 20 steps with a relative path of the network: its directory and stdout."""
    run = tmp_path_factory.mktemp('residual') / 'run'
    given = f'--network={os.path.relpath(files["residual"])}'
    arguments = faults.evaluated_job(data_dir, run, '--max_steps=20', given, *RESIDUAL_STEPS)
    return run, _call('cifar10_train', *arguments)


@pytest.fixture
def own_residual_run(tmp_path, residual_run):
    """A copy of its directory."""
    shutil.copytree(str(residual_run[0]), str(tmp_path / 'run'))
    return tmp_path / 'run'


def test_a_run_of_the_residual_network(files, residual_run):
    """run.json has the absolute path, and the SHA-256 of the source."""
    run, stdout = residual_run
    assert f'Network: {_number("A residual network")} parameters\n' in stdout
    ((_, _, step),) = re.findall(messages.precision(50), stdout)
    assert step == '20' and '(sub-batches: 1)' in stdout
    record = json.loads((run / 'run.json').read_text())
    assert record['network'] == files['residual']
    assert record['network_checksum'] == hashlib.sha256(RESIDUAL.encode()).hexdigest()
    _assert_moved(run, 20)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, data_dir, files, residual_run):
    for steps in (8, 20):
        flags = [f'--max_steps={steps}', f'--network={files["residual"]}', *RESIDUAL_STEPS]
        stdout = _call('cifar10_train', *faults.job(data_dir, tmp_path / 'run', *flags))
    assert messages.resuming(tmp_path / 'run', 8) in stdout and 'has changed' not in stdout
    one, two = [
        checkpoint.read(f'{run}/model.ckpt-20').values
        for run in (tmp_path / 'run', residual_run[0])
    ]
    assert sorted(one) == sorted(two)
    for name, value in one.items():
        assert value.tobytes() == two[name].tobytes(), name


def _probabilities(stdout):
    (row,) = [json.loads(line)['predictions'] for line in stdout.splitlines()]
    return [each['probability'] for each in sorted(row, key=lambda each: each['class'])]


def _assert_same_predictions(call, directory, data_dir, run, always=()):
    """Evaluate, predict and export; return the groups of messages.precision.

    Args:
      call: a function like `_call`.
      directory: a directory for the results.
      always: flags of all programs.
    """
    table, image = directory / 'predictions.csv', str(directory / 'image.png')
    flags = ['--run_once', f'--predictions_file={table}', *always]
    stdout = call('cifar10_eval', *faults.evaluation(data_dir, run, directory / 'eval', *flags))
    (precision,) = re.findall(messages.precision(50), stdout)
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    Image.fromarray(images[0]).save(image)
    exported = f'{directory}/exported'
    call('cifar10_export', f'--checkpoint_dir={run}', f'--export_dir={exported}', *always)
    rows = [[float(value) for value in table.read_text().splitlines()[1].split(',')[2:]]]
    for source in ([f'--checkpoint_dir={run}', *always], [f'--saved_model_dir={exported}']):
        stdout = call('cifar10_predict', '--json', '--top_k=10', *source, image)
        rows.append(_probabilities(stdout))
    for row in rows[1:]:
        np.testing.assert_allclose(row, rows[0], atol=1e-5)
    return precision


def test_evaluation_prediction_and_export(tmp_path, data_dir, files, residual_run):
    """All agree with the trainer, and with NumPy and the moving averages of the checkpoint."""
    run, stdout = residual_run
    always = ['--network=' + files['residual']]
    precision = _assert_same_predictions(_call, tmp_path, data_dir, run, always)
    assert [precision] == re.findall(messages.precision(50), stdout)
    values = checkpoint.read(f'{run}/model.ckpt-20').values
    averages = {name: values.get(name + AVERAGE, value) for name, value in values.items()}
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    logits = _listing(oracle.evaluation_images(images), _Layers(averages, False))
    found = np.loadtxt(str(tmp_path / 'predictions.csv'), delimiter=',', skiprows=1)[:, 2:]
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def _programs_without_flag(data_dir, run, directory):
    """Yield the results of the programs that read a run, without --network."""
    evaluation = faults.evaluation(data_dir, run, directory / 'eval', '--run_once')
    yield programs.call('cifar10_eval', *evaluation)
    yield programs.call('cifar10_predict', f'--checkpoint_dir={run}', f'{directory}/image.png')
    exported = f'--export_dir={directory}/exported'
    yield programs.call('cifar10_export', f'--checkpoint_dir={run}', exported)


@pytest.mark.parametrize('name', ['{}/file.py', 'file', '../file', 'cifar10.model', 7, ['model']])
def test_the_network_of_a_record_is_never_imported(tmp_path, data_dir, own_residual_run, name):
    """Unless it has the name of a network of the package."""
    name = name.format(tmp_path) if isinstance(name, str) else name
    effect = tmp_path / 'effect'
    (tmp_path / 'file.py').write_text(f'open({str(effect)!r}, "w")\n{RESIDUAL}')
    record = own_residual_run / 'run.json'
    record.write_text(json.dumps(dict(json.loads(record.read_text()), network=name)))
    for result in _programs_without_flag(data_dir, own_residual_run, tmp_path):
        _assert_one_line(result, f'is not of this package: {name}: give its file with --network')
    assert not effect.exists()


def test_a_checkpoint_of_another_network(tmp_path, data_dir, files, own_residual_run):
    before = sorted(path.name for path in own_residual_run.iterdir())
    arguments = faults.job(data_dir, own_residual_run, '--max_steps=21', '--batch_size=16')
    for name in ('model', 'resnet', files['renamed']):
        _assert_one_line(
            programs.call('cifar10_train', *arguments, f'--network={name}'),
            'does not fit: its ',
            f'give the --network of this run ({files["residual"]}), another --train_dir, or set --fresh',
        )
    assert sorted(path.name for path in own_residual_run.iterdir()) == before
    evaluation = faults.evaluation(data_dir, own_residual_run, tmp_path / 'eval', '--run_once')
    result = programs.call('cifar10_eval', *evaluation, '--network=resnet')
    _assert_one_line(result, ' does not fit: ', 'give the --network of its run')


def test_a_changed_source(data_dir, own_residual_run, tmp_path):
    """The trainer prints it; a deterministic run is refused."""
    (tmp_path / 'mine.py').write_text(RESIDUAL + '# changed\n')
    flags = ['--max_steps=21', f'--network={tmp_path}/mine.py']
    arguments = faults.job(data_dir, own_residual_run, *flags)
    result = programs.call('cifar10_train', *arguments, *RESIDUAL_STEPS)
    _assert_one_line(result, 'cannot continue bit for bit: its network_checksum was ')
    stdout = _call('cifar10_train', *arguments, '--batch_size=16')
    assert f'\nThe source of the network has changed: {tmp_path}/mine.py\n' in stdout


def test_a_file_without_inference(tmp_path, data_dir):
    (tmp_path / 'mine.py').write_text('def infer(images):\n    return images\n')
    arguments = faults.job(data_dir, tmp_path / 'run', f'--network={tmp_path}/mine.py')
    result = programs.call('cifar10_train', *arguments)
    _assert_one_line(result, f'{tmp_path}/mine.py has no function inference')
    assert not (tmp_path / 'run').exists()


def test_a_variable_without_get_variable(tmp_path, data_dir):
    """Each tower and each part of a batch would have another one."""
    changed = checkouts.replace(
        RESIDUAL,
        [
            (
                r"tf.get_variable\('biases', \[num_classes\], .*\)",
                "tf.Variable(tf.zeros([10]), name='biases')",
            )
        ],
    )
    (tmp_path / 'mine.py').write_text(changed)
    arguments = faults.job(data_dir, tmp_path / 'run', f'--network={tmp_path}/mine.py')
    result = programs.call('cifar10_train', *arguments)
    complaint = (
        f'The network {tmp_path}/mine.py creates softmax_linear/biases by tf.Variable: use tf.get_'
    )
    _assert_one_line(result, complaint)


def test_a_counter_in_two_towers():
    """An integer variable, which tf.get_variable makes trainable, counts the steps."""

    def inference(images, num_classes, hparams, *, is_training):
        counter = tf.get_variable('counter', [], tf.int32, tf.zeros_initializer())
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, counter.assign_add(1))
        return model.inference(images, num_classes, hparams)

    def _load(unused_name):
        return types.SimpleNamespace(inference=inference), 'checksum'

    with mock.patch('cifar10.networks.load', _load):
        images = np.random.RandomState(0).randn(4, 24, 24, 3).astype(np.float32)
        batches = [(tf.constant(images), tf.constant([0, 1, 2, 3]))] * 2
        opt = tf.train.GradientDescentOptimizer(0.1)
        _, tower_grads = multi_gpu.tower_gradients(['/cpu:0', '/cpu:0'], batches, opt)
    gradients = multi_gpu.average_gradients(tower_grads)
    step = tf.train.get_or_create_global_step()
    train_op = optimizer.train_op(opt, gradients, step, RunLength(8, 100), CLASSIC)
    counter = network.variables()['counter']
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train_op)
        assert session.run(counter) == 3
    names = {variable.op.name for variable in tf.global_variables()}
    assert 'counter' in names and 'counter' + AVERAGE not in names


@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_eval'])
@pytest.mark.parametrize('name', ['missing.py', 'rennet', 'tests'])
def test_a_missing_network(tmp_path, script, name):
    """One line, before the import of TensorFlow."""
    (tmp_path / 'tensorflow.py').write_text('raise AssertionError("imported")\n')
    path = os.pathsep.join([str(tmp_path), ROOT])
    result = programs.run(script, f'--network={name}', PYTHONPATH=path)
    _assert_one_line(result, f'There is no network {name}: give model, resnet or', status=2)


# Slow: every change in every program


def _follow(tmp_path, data_dir, call, training=(), always=()):
    """Train on one tower and on two; evaluate, predict, export; return the output of the trainers.

    Args:
      call: a function like `_call`.
      training: flags of the trainers.
      always: flags of all programs.
    """
    run, flags = tmp_path / 'run', ['--batch_size=8', '--seed=1', *training, *always]
    one = call('cifar10_train', *faults.job(data_dir, run, '--max_steps=2', *flags))
    arguments = faults.evaluated_job(data_dir, run, '--max_steps=4', '--num_gpus=2', *flags)
    two = call('cifar10_multi_gpu_train', *arguments)
    assert messages.resuming(run, 2) in two
    precision = _assert_same_predictions(call, tmp_path, data_dir, run, always)
    assert [precision] == re.findall(messages.precision(50), two) and precision[2] == '4'
    return one + two


@pytest.mark.slow
@pytest.mark.parametrize('row', [1, 3])
def test_layers(tmp_path, data_dir, files, row):
    name = list(NETWORKS)[1 + row]
    output = _follow(tmp_path, data_dir, _call, always=['--network=' + files[name]])
    assert output.count(f'Network: {ROWS[row][1]} parameters\n') == 2


@pytest.mark.slow
def test_resnet(tmp_path, data_dir):
    """With the recipe that docs/recipes.md recommends. Its record is enough for the evaluation."""
    run, flags = tmp_path / 'run', ['--network=resnet', '--recipe=fast', '--max_steps=3']
    stdout = _call('cifar10_train', *faults.evaluated_job(data_dir, run, *flags))
    assert 'Network: 269722 parameters\n' in stdout
    _assert_moved(run, 3, 76)
    precision = _assert_same_predictions(_call, tmp_path, data_dir, run)
    assert [precision] == re.findall(messages.precision(50), stdout)


@pytest.mark.slow
def test_dropout(tmp_path, data_dir, files):
    """Only the training drops outputs: two evaluations predict the same."""
    always = ['--network=' + files['dropout']]
    _follow(tmp_path, data_dir, _call, always=always)
    tables = [tmp_path / 'predictions.csv', tmp_path / 'again.csv']
    flags = ['--run_once', f'--predictions_file={tables[1]}', *always]
    _call('cifar10_eval', *faults.evaluation(data_dir, tmp_path / 'run', tmp_path / 'eval', *flags))
    assert tables[0].read_text() == tables[1].read_text()
    flags = ['--deterministic', '--seed=1', *always]
    _call('cifar10_train', *faults.job(data_dir, tmp_path / 'other', '--max_steps=2', *flags))
    arguments = faults.job(data_dir, tmp_path / 'other', '--max_steps=3', *flags)
    result = programs.call('cifar10_train', *arguments)
    _assert_one_line(result, 'cannot continue bit for bit: no checkpoint has the state of dropout')


@pytest.mark.slow
def test_another_loss(tmp_path, data_dir, files):
    """The evaluation reports the cross entropy, and the weight decay."""
    output = _follow(tmp_path, data_dir, _call, always=['--network=' + files['another_loss']])
    (wanted,) = re.findall(r'The first loss is (\d\.\d\d) instead', PAGE)
    assert float(messages.log_lines(output)[0][1]) == pytest.approx(float(wanted), abs=0.015)


@pytest.mark.slow
def test_two_devices(tmp_path, data_dir, files):
    _follow(tmp_path, data_dir, _call, always=['--network=' + files['two_devices']])
    tf.train.import_meta_graph(f'{tmp_path}/run/model.ckpt-4.meta')
    operations = [
        op for op in tf.get_default_graph().get_operations() if 'gradients' not in op.name
    ]
    for kind, layer, device in [
        ('Conv2D', '/conv', 0),
        ('MatMul', '/local3/', 1),
        ('MatMul', '/local4/', 1),
        ('MatMul', '/softmax_linear/', 1),
        ('VarHandleOp', '', 0),
    ]:
        devices = [op.device for op in operations if op.type == kind and layer in op.name]
        assert len(devices) >= 2 and set(devices) == {f'/device:CPU:{device}'}, layer


def _checkout(directory, changes):
    """Return a function like `_call` for a checkout with changes."""
    directory.mkdir()

    def call(script, *args):
        status, stdout, stderr = programs.run(script, *args, checkout=checkout)
        assert status == 0, stderr
        return stdout

    checkout = checkouts.copy(directory, changes)
    return call


@pytest.mark.slow
def test_the_residual_network_in_the_file_of_the_book(tmp_path, data_dir):
    _, functions = RESIDUAL.split('import CLASSIC\n')
    changes = {'model.py': [(r'(?s)def inference\(.*?    return logits\n', functions)]}
    output = _follow(tmp_path, data_dir, _checkout(tmp_path / 'checkout', changes))
    assert output.count(f'Network: {_number("A residual network")} parameters\n') == 2
    _assert_moved(tmp_path / 'run', 4)


@pytest.mark.slow
def test_width_as_a_hyperparameter(tmp_path, data_dir):
    """Only the trainers get the number: the others read it in the record."""
    changes = {
        'config.py': [(r'(?<=\n)(?=    crop_range: )', NUM_FILTERS)],
        'model.py': [(f"(?<='conv{i}', )64", 'hparams.num_filters') for i in (1, 2)],
    }
    call = _checkout(tmp_path / 'checkout', changes)
    output = _follow(tmp_path, data_dir, call, ['--num_filters=32'])
    assert output.count(f'Network: {_number("Width as a hyperparameter")} parameters\n') == 2


@pytest.mark.slow
def test_larger_crops(tmp_path, data_dir):
    (line,) = re.findall(r'Larger crops.*? `(IMAGE_SIZE = \d+)`', PAGE)
    changes = {'config.py': [('IMAGE_SIZE = 24', line)]}
    output = _follow(tmp_path, data_dir, _checkout(tmp_path / 'checkout', changes))
    assert output.count(f'Network: {_number("Larger crops")} parameters\n') == 2


@pytest.mark.slow
def test_all_changes_of_the_training(tmp_path, data_dir):
    changes = {
        'config.py': [
            (r"(?<=choices=\['gradient_descent', )", "'adam', "),
            (r"(?<=choices=\['staircase', )", "'cosine', "),
            ('IMAGE_SIZE = 24', 'IMAGE_SIZE = 32'),
        ],
        'optimizer.py': [CREATE, RATE],
        'distortions.py': [SAMPLE, DISTORT],
    }
    flags = re.findall(r'^Then `(.*?)`', PAGE, re.MULTILINE)
    call = _checkout(tmp_path / 'checkout', changes)
    output = _follow(tmp_path, data_dir, call, ' '.join(flags).split())
    (number,) = re.findall(r'then has (\d+) parameters', PAGE)
    assert len(flags) == 2 and output.count(f'Network: {number} parameters\n') == 2


# Slow: clusters


@pytest.mark.slow
@pytest.mark.parametrize(
    'num_ps, flags',
    [
        (1, '--mode=sync'),
        (0, '--mode=allreduce'),
        (1, '--mode=average --average_period=2'),
        (1, '--mode=async'),
        (1, '--mode=async --push_steps=2 --fetch_steps=2'),
    ],
)
def test_clusters(tmp_path, data_dir, files, num_ps, flags):
    """The checkpoint has the statistics of the chief; it evaluates them."""
    given = ['--network=' + files['residual'], '--max_steps=4', *flags.split()]
    cluster = clusters.factory(tmp_path, data_dir, given)(num_ps, 2)
    cluster.start()
    cluster.succeed()
    saved = checkpoint.read_latest(str(tmp_path / 'run'))
    _assert_moved(tmp_path / 'run', saved.path.rsplit('-', 1)[1])
    assert len(re.findall(messages.precision(50), cluster.text('worker 0'))) == 1


@pytest.mark.slow
def test_workers_with_different_sources(tmp_path, data_dir, files):
    cluster = clusters.factory(tmp_path, data_dir, ['--mode=sync'])(1, 2)
    cluster.start('ps 0', 'worker 0', flags=['--network=' + files['residual']])
    cluster.start('worker 1', flags=['--network=' + files['renamed']])
    assert cluster.tasks['worker 1'].end() == 1
    (line,) = cluster.tasks['worker 1'].stderr_lines
    assert 'worker 1 has another network than the chief: give all workers the same' in line
