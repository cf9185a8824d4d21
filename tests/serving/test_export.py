"""Exported models, in a process without this package and in TensorFlow Lite."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.serving import export, prediction, trained_model
from cifar10.system import machine
from tests.helpers import checkpoints, listing, oracle, programs

NAMES = [f'{i} \u00fc' for i in range(10)]
LOADING = """
import sys
import numpy as np
import tensorflow as tf
given = np.load(sys.argv[2])
model = tf.saved_model.load(sys.argv[1])
assert set(model.signatures) == {'serving_default', 'predict_images', 'predict_images_uint8'}
found = {}
for name, value in [('serving_default', given['images'].astype(np.float32)),
                    ('predict_images', given['images'].astype(np.float32)),
                    ('predict_images_uint8', given['images'])]:
    for output, tensor in model.signatures[name](images=tf.constant(value)).items():
        found['%s %s' % (name, output)] = tensor.numpy()
assert not any(name.split('.')[0] == 'cifar10' for name in sys.modules)
np.savez(sys.argv[3], **{name: np.char.decode(value.astype(bytes)) if value.dtype == object else value
                         for name, value in found.items()})
"""


@pytest.fixture(scope='module')
def run(tmp_path_factory, data_dir):
    """A directory with a checkpoint, the test images, and their probabilities in an evaluation."""
    directory = tmp_path_factory.mktemp('run')
    path, _ = checkpoints.save(directory, 12)
    test = dataset.read(data_dir).test
    metrics = evaluation.Evaluator(test).evaluate(checkpoint.read(path)).metrics
    (directory / 'run.json').write_text(json.dumps({'num_towers': 1, 'class_names': NAMES}))
    return SimpleNamespace(
        path=path,
        directory=str(directory),
        images=oracle.read_records(test.paths)[1],
        probabilities=np.exp(metrics.log_probabilities),
        classes=metrics.predicted_classes,
    )


def _export(run, out, *args):
    return programs.call(
        'cifar10_export', '--checkpoint_dir=' + run.directory, f'--export_dir={out}', *args
    )


@pytest.fixture(scope='module')
def exported(run, tmp_path_factory):
    """The directory with the exported model."""
    out = tmp_path_factory.mktemp('exported')
    status, stdout, _ = _export(run, out)
    assert (status, stdout) == (0, f'Exported {run.path} to {out}/1\n')
    return str(out)


@pytest.mark.parametrize('cores', [2, 16])
def test_any_number_of_images(run, monkeypatch, cores):
    """Of the predictions of a checkpoint, which has sub-batches."""
    monkeypatch.setattr(machine, 'num_cores', lambda: cores)
    images = np.tile(run.images.transpose(0, 3, 1, 2), [6, 1, 1, 1])
    expected = np.tile(run.probabilities, [6, 1])
    network = trained_model.read(run.directory)
    for n in (1, 2, 7, 8, 31, 128, 300):
        predict = prediction.checkpoint_predictor(network, n)
        np.testing.assert_allclose(predict(images[:n]), expected[:n], atol=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(tf.__version__ < '2', reason='the process calls functions of TensorFlow 2')
def test_a_process_without_this_package(run, exported, tmp_path):
    np.savez(str(tmp_path / 'given.npz'), images=run.images)
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    files = [exported + '/1', str(tmp_path / 'given.npz'), str(tmp_path / 'found.npz')]
    subprocess.run(
        [sys.executable, '-c', LOADING, *files],
        cwd=str(tmp_path),
        env=environment,
        check=True,
        timeout=120,
        capture_output=True,
    )
    found = np.load(files[2])
    for name in ('serving_default', 'predict_images', 'predict_images_uint8'):
        # The rounding of another formula of the LRN: 1.5e-6 of logits of about 50.
        np.testing.assert_allclose(found[name + ' probabilities'], run.probabilities, atol=1e-4)
        np.testing.assert_array_equal(found[name + ' classes'], run.classes)
        assert found[name + ' names'].tolist() == [NAMES[number] for number in run.classes]


@pytest.mark.slow
@pytest.mark.skipif(tf.__version__ < '2', reason='the converter of TensorFlow 2')
def test_tensorflow_lite(run, exported, tmp_path):
    """TensorFlow's own converter reads the SavedModel, as the page says."""
    program = (
        'import sys, numpy, tensorflow as tf\n'
        'content = tf.lite.TFLiteConverter.from_saved_model(sys.argv[1]).convert()\n'
        "predict = tf.lite.Interpreter(model_content=content).get_signature_runner('predict_images')\n"
        'images = numpy.load(sys.argv[2])\n'
        "rows = [predict(images=image[None])['probabilities'][0] for image in images]\n"
        'numpy.save(sys.argv[3], rows)\n'
    )
    paths = [f'{exported}/1', f'{tmp_path}/images.npy', f'{tmp_path}/found.npy']
    np.save(paths[1], run.images[:3].astype(np.float32))
    command = [sys.executable, '-c', program, *paths]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    np.testing.assert_allclose(np.load(paths[2]), run.probabilities[:3], atol=1e-4)


def test_values(exported):
    with tf.Session() as session:
        model = tf.saved_model.load(session, ['serve'], exported + '/1')

        def run(signature, values):
            found = model.signature_def[signature]
            return session.run(
                found.outputs['probabilities'].name, {found.inputs['images'].name: values}
            )

        for signature in ('predict_images', 'predict_images_uint8'):
            assert run(signature, np.zeros([0, 32, 32, 3])).shape == (0, 10)
        # Values are rounded and clipped.
        image = np.random.RandomState(0).randint(0, 256, [1, 32, 32, 3])
        changed = image + np.where(image == 0, -9, np.where(image == 255, 45, -0.4))
        np.testing.assert_array_equal(*[run('predict_images', x) for x in (image, changed)])


def test_versions(run, tmp_path):
    out = str(tmp_path)
    for name in ('.cifar10-incomplete-1/x', '007', '\u00b2'):  # first: of a killed process
        os.makedirs(os.path.join(out, name))
    assert _export(run, out)[1] == f'Exported {run.path} to {out}/1\n'
    os.rename(out + '/1', out + '/9')
    for path in ('/10', '/11'):
        assert _export(run, out)[1] == f'Exported {run.path} to {out}{path}\n'
    assert listing.names(out) == ['007', '10', '11', '9', '\u00b2']
    assert listing.names(out + '/10') == ['assets.extra', 'saved_model.pb', 'variables']
    with open(out + '/10/assets.extra/class_names.txt', encoding='utf-8') as names:
        assert names.read().split('\n') == NAMES + ['']


def test_whole_or_not_at_all(run, tmp_path, monkeypatch):
    network = trained_model.read(run.directory)

    class Builder(tf.saved_model.Builder):
        def save(self, *args):
            super().save(*args)
            raise OSError(28, 'No space left on device')

    monkeypatch.setattr(tf.saved_model, 'Builder', Builder)
    with pytest.raises(OSError, match='No space left on device'):
        export.write(network, str(tmp_path), progress=print)
    assert listing.names(tmp_path) == []
