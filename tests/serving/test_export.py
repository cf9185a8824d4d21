"""Exported models, in a process without this package and in TensorFlow Lite."""

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
from PIL import Image
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import dataset, synthetic
from cifar10.errors import UserError
from cifar10.runs import checkpoint
from cifar10.serving import export, trained_model
from tests.helpers import checkpoints, oracle, programs, special_files
from tests.helpers.image_files import SCALED, SMALL, decode, photograph

LOADING = """
import sys
import numpy as np
import tensorflow as tf
given = np.load(sys.argv[2], allow_pickle=True)
model = tf.saved_model.load(sys.argv[1])
assert set(model.signatures) == {'serving_default', 'predict_images', 'predict_images_uint8', 'predict_bytes'}
found = {}
for name, key, value in [('serving_default', 'images', given['images'].astype(np.float32)),
                         ('predict_images', 'images', given['images'].astype(np.float32)),
                         ('predict_images_uint8', 'images', given['images']),
                         ('predict_bytes', 'contents', given['contents'].tolist())]:
    for output, tensor in model.signatures[name](**{key: tf.constant(value)}).items():
        found['%s %s' % (name, output)] = tensor.numpy()
assert not any(name.split('.')[0] == 'cifar10' for name in sys.modules)
np.savez(sys.argv[3], **{name: np.char.decode(value.astype(bytes)) if value.dtype == object else value
                         for name, value in found.items()})
"""


@pytest.fixture
def run(tmp_path, data_dir):
    """A directory with a checkpoint, the test images, and their probabilities in an evaluation."""
    path, _ = checkpoints.save(tmp_path / 'run', 12)
    (tmp_path / 'run' / 'run.json').write_text(
        json.dumps({'num_towers': 1, 'class_names': synthetic.CLASS_NAMES})
    )
    test = dataset.read(data_dir).test
    metrics = evaluation.Evaluator(test).evaluate(checkpoint.read(path)).metrics
    return SimpleNamespace(
        path=path,
        directory=str(tmp_path / 'run'),
        out=str(tmp_path / 'exported'),
        images=oracle.read_records(test.paths)[1],
        probabilities=np.exp(metrics.log_probabilities),
        classes=metrics.predicted_classes,
    )


def _export(run, *args):
    return programs.call(
        'cifar10_export', '--checkpoint_dir=' + run.directory, '--export_dir=' + run.out, *args
    )


def _png(image):
    content = io.BytesIO()
    Image.fromarray(image).save(content, 'PNG')
    return content.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(
    tf.__version__ < '2',
    reason='the TensorFlow 2 loader in TensorFlow 1.15 does not know the op Case',
)
def test_a_process_without_this_package(run, tmp_path):
    status, stdout, stderr = _export(run)
    assert (status, stdout, stderr) == (0, f'Exported {run.path} to {run.out}/1\n', '')
    np.savez(
        str(tmp_path / 'given.npz'),
        images=run.images,
        contents=np.array([_png(image) for image in run.images], object),
    )
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    subprocess.run(
        [
            sys.executable,
            '-c',
            LOADING,
            run.out + '/1',
            str(tmp_path / 'given.npz'),
            str(tmp_path / 'found.npz'),
        ],
        cwd=str(tmp_path),
        env=environment,
        check=True,
        timeout=120,
        capture_output=True,
    )
    found = np.load(str(tmp_path / 'found.npz'))
    for name in ('serving_default', 'predict_images', 'predict_images_uint8', 'predict_bytes'):
        # The rounding of another formula of the LRN: 1.5e-6 of logits of about 50.
        np.testing.assert_allclose(found[name + ' probabilities'], run.probabilities, atol=1e-4)
        np.testing.assert_array_equal(found[name + ' classes'], run.classes)
        assert found[name + ' names'].tolist() == [
            synthetic.CLASS_NAMES[number] for number in run.classes
        ]


@pytest.mark.slow
def test_tensorflow_lite(run, tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', '/usr/bin:/bin')  # TensorFlow 1.15 starts its converter
    status, stdout, _ = _export(run, f'--tflite_file={tmp_path / "model.tflite"}')
    assert status == 0 and stdout.endswith(
        f'Converted the network to {tmp_path / "model.tflite"}\n'
    )
    interpreter = tf.lite.Interpreter(str(tmp_path / 'model.tflite'))
    (given,) = interpreter.get_input_details()
    interpreter.resize_tensor_input(given['index'], [len(run.images), 32, 32, 3])
    interpreter.allocate_tensors()
    interpreter.set_tensor(given['index'], run.images.astype(np.float32))
    interpreter.invoke()
    (found,) = interpreter.get_output_details()
    probabilities = interpreter.get_tensor(found['index'])
    np.testing.assert_allclose(probabilities, run.probabilities, atol=1e-4)
    np.testing.assert_array_equal(probabilities.argmax(1), run.classes)
    interpreter.set_tensor(given['index'], np.full([len(run.images), 32, 32, 3], 7, np.float32))
    interpreter.invoke()
    # of an image of one colour
    np.testing.assert_allclose(interpreter.get_tensor(found['index']).sum(1), 1, atol=1e-5)


def _load(path, signature, values):
    """Return the probabilities, and the types of all operations."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        model = tf.saved_model.load(session, ['serve'], path)
        found = model.signature_def[signature]
        ((_, given),) = found.inputs.items()
        operations = [operation.type for operation in graph.get_operations()]
        return session.run(found.outputs['probabilities'].name, {given.name: values}), operations


def test_files_and_other_sizes(run, tmp_path):
    """Files and larger images get the pixels of a converted data set, without EXIF orientation."""
    _export(run)
    contents = dict(SMALL, **SCALED)
    small = decode(tmp_path, dict(contents, upright=photograph(1))).images.transpose(0, 2, 3, 1)
    expected, operations = _load(run.out + '/1', 'predict_images', small)
    # Each of the three signatures has one LRN per convolution, and three products.
    kinds = ['LRN', 'Conv2D', 'MatMul', 'VarHandleOp', 'PyFunc', 'IdentityN']
    assert [operations.count(kind) for kind in kinds] == [6, 6, 9, 0, 0, 0]
    values = list(contents.values()) + [photograph(6)]
    found, _ = _load(run.out + '/1', 'predict_bytes', values)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(_load(run.out + '/1', 'predict_bytes', [])[0]) == 0
    with pytest.raises(tf.errors.InvalidArgumentError):
        _load(run.out + '/1', 'predict_bytes', [SMALL['png'], b'text'])
    pixels = np.asarray(Image.open(io.BytesIO(SCALED['wide'])))[None]
    found, _ = _load(run.out + '/1', 'predict_images_uint8', pixels)
    np.testing.assert_allclose(found[0], expected[list(contents).index('wide')], atol=1e-5)
    # Values are rounded and clipped, also where TensorFlow does not use a vectorized cast, which
    # clips too.
    found = []
    for pixels in ([0, 255, 7], [-9, 300, 6.6]):
        found.append(_load(run.out + '/1', 'predict_images', np.reshape(pixels, [1, 1, 1, 3]))[0])
    np.testing.assert_array_equal(*found)


def test_versions(run):
    for name in (
        f'.cifar10-incomplete-{special_files.ABANDONED}x/7',
        '007',
        '\u00b2',
    ):  # the first is a leftover of a killed process
        os.makedirs(run.out + '/' + name)
    for args, path in [([], '/1'), ([], '/2'), (['--model_version=9'], '/9'), ([], '/10')]:
        assert _export(run, *args)[1] == f'Exported {run.path} to {run.out}{path}\n'
    assert sorted(os.listdir(run.out)) == ['007', '1', '10', '2', '9', '\u00b2']
    assert sorted(os.listdir(run.out + '/10')) == ['assets.extra', 'saved_model.pb', 'variables']
    with open(run.out + '/10/assets.extra/class_names.txt') as names:
        assert names.read().split('\n') == synthetic.CLASS_NAMES + ['']
    status, _, stderr = _export(run, f'--tflite_file={run.out}/no_such_directory/x.tflite')
    assert (
        status == 1
        and f'Cannot write {run.out}/no_such_directory/x.tflite (No such file or directory): name'
        in stderr
    )
    with open(run.out + '/9/assets.extra/class_names.txt', 'w') as names:
        names.write('one\n')
    status, _, stderr = programs.call('cifar10_predict', f'--saved_model_dir={run.out}/9', 'x.png')
    assert status == 1 and 'the number of class names is 1, not 10' in stderr
    status, stdout, stderr = _export(run, '--model_version=9')
    assert (status, stdout) == (1, '') and '/9 exists: give another --model_version' in stderr


def test_whole_or_not_at_all(run, monkeypatch):
    network = trained_model.read(run.directory, 'latest')

    class Builder(tf.saved_model.Builder):
        def save(self, *args):
            super().save(*args)
            raise OSError(28, 'No space left on device')

    monkeypatch.setattr(tf.saved_model, 'Builder', Builder)
    with pytest.raises(
        UserError,
        match='Cannot write the model to .*/1 .*No space left on device.*: make room there',
    ):
        export.export(network, run.out)
    assert os.listdir(run.out) == []


def test_predictions_of_an_exported_model(run, tmp_path):
    names = [f'{i} \u00fc' for i in range(10)]
    (tmp_path / 'run' / 'run.json').write_text(json.dumps({'num_towers': 1, 'class_names': names}))
    _export(run)
    image = str(tmp_path / 'image.png')
    Image.fromarray(run.images[4]).save(image)
    for path in (run.out, run.out + '/1'):
        _, stdout, _ = programs.call(
            'cifar10_predict', '--saved_model_dir=' + path, '--json', image
        )
        (predicted, *_) = json.loads(stdout)['predictions']
        assert (predicted['class'], predicted['name']) == (run.classes[4], names[run.classes[4]])
        assert predicted['probability'] == pytest.approx(run.probabilities[4].max(), abs=1e-5)
