"""Which module a program imports: its own, the tutorial's, or a substitute for a former one."""

import re

import pytest
import tensorflow

from tests.helpers import programs
from tf1_runner import modules

pytestmark = pytest.mark.slow

NAME = 'print("own", __name__)\n'
# A package of the environment: the old interface of gym stands in for it.
GYMNASIUM = """
class Wrapper:
    def __init__(self, env):
        self.env = env
class _Env:
    def reset(self, seed=None):
        self.seed, self.steps = seed, 0
        return 'first', {}
    def step(self, action):
        self.steps += 1
        return self.steps, 1.0, action == 'fall', self.steps == 3, {}
def make(id, **options):
    assert id == 'CartPole-v0'
    return _Env()
"""


def _run(directory, files, *options):
    """Write the files, run the one that is named program.py, and return its output."""
    for path, text in files.items():
        path = directory / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.name == 'program.py':
            program = str(path)
    return programs.run('cifar10_run', *options, program)


CASES = [  # what the program prints, its text, and other files
    # The tutorial's modules, without copies and with a directory of data.
    ('10', 'import cifar10, cifar10_input\nprint(cifar10.NUM_CLASSES)', {'cifar10/data': ''}),
    # One copy imports the tutorial's other module.
    (
        '25',
        'import cifar10\nprint(cifar10.SIZE)',
        {'cifar10.py': 'import cifar10_input\nSIZE = cifar10_input.IMAGE_SIZE + 1'},
    ),
    # A package of the program, with names of modules in this package.
    (
        '8 8',
        'from cifar10 import model, data\nprint(model.X, data.X)',
        {
            'cifar10/__init__.py': '',
            'cifar10/model.py': 'from .data import X',
            'cifar10/data.py': 'X = 8',
        },
    ),
    (
        '6 7',
        'from cifar10 import model\nimport cifar10.data\nprint(model.X, cifar10.data.X)',
        {'cifar10/model.py': 'X = 6', 'cifar10/data.py': 'X = 7'},
    ),
    # Packages of the program have the names of former places of the tutorial.
    (
        '1 2 40',
        'import models\nfrom models import net\n'
        'from models.tutorials.image.cifar10 import cifar10_input\n'
        'print(models.OWN, net.SIZE, cifar10_input.IMAGE_SIZE)',
        {
            'models/__init__.py': 'OWN = 1',
            'models/net.py': 'SIZE = 2',
            'models/tutorials/image/cifar10/cifar10_input.py': 'IMAGE_SIZE = 40',
        },
    ),
    # The directory has another name now.
    ('7', 'import CNN.net\nfrom CNN import net\nprint(net.X)', {'net.py': 'X = 7'}),
    ('8', 'from models.nets import net as loss\nprint(loss.X)', {'nets/net.py': 'X = 8'}),
    # Gym, over a package that stands for Gymnasium; the program's own gym comes first.
    (
        'first (1, 1.0, False, {}) True True',
        'import gym\nfrom gym.envs.registration import X\nenv = gym.make("CartPole-v0")\n'
        'env.render(mode="human")\n'
        'print(env.reset(), env.step(1), env.step("fall")[2], env.step(1)[2])',
        {
            'gymnasium/__init__.py': GYMNASIUM,
            'gymnasium/envs/__init__.py': '',
            'gymnasium/envs/registration.py': 'X = 1',
        },
    ),
    ('own gym', 'import gym', {'gym.py': NAME, 'gymnasium.py': ''}),
    # The program's directory as a package, also with data that have the names of modules here.
    (
        'own cifar10\n3 4 True 4',
        'from cifar10 import util, cifar10\nimport cifar10 as same\n'
        'print(util.X, cifar10.X, same.util is util, same.X)',
        {
            'cifar10/program.py': '',
            'cifar10/util.py': 'X = 3',
            'cifar10/cifar10.py': NAME + 'X = 4',
        },
    ),
    (
        'own cifar10_input\n4',
        'from cifar10 import (\n  cifar10_input, net\n)\nprint(net.X)',
        {
            'cifar10/program.py': '',
            'cifar10/net.py': 'from cifar10 import cifar10_input\nX = cifar10_input.X',
            'cifar10/cifar10_input.py': NAME + 'X = 4',
        },
    ),
    (
        '128',
        'import cifar10\nprint(cifar10.FLAGS.batch_size)',
        {'cifar10/program.py': '', 'cifar10/data/old.py/x.bin': '', 'cifar10/old.py/x.bin': ''},
    ),
    # The package's modules instead of the directory's.
    (
        '10 True',
        'from net import cifar10\nimport cifar10 as same\n'
        'print(cifar10.NUM_CLASSES, same is cifar10)',
        {'net/program.py': '', 'net/cifar10.py': 'NUM_CLASSES = 5'},
    ),
]


@pytest.mark.parametrize('printed, program, files', CASES)
def test_what_is_printed(tmp_path, printed, program, files):
    path = 'program.py'
    files = {**files, next((path for path in files if path.endswith('program.py')), path): program}
    options = ['--package_modules'] if 'net/cifar10.py' in files else []
    status, stdout, stderr = _run(tmp_path, files, *options)
    assert (status, stdout) == (0, printed + '\n'), stderr
    assert 'Error' not in stderr


def test_names_that_python_and_packages_removed(tmp_path):
    text = (
        'import inspect, collections, threading\nfrom collections import Sequence\n'
        'def f(a, b=2, *c, **d): pass\n'
        'found = inspect.getargspec(f)\n'
        'thread = threading.Thread(target=print)\n'
        'print(found.args, found.varargs, found.keywords, found.defaults, thread.isAlive(), '
        'isinstance([], Sequence), collections.Mapping.__name__)\n'
        'from PIL import Image\nimport PIL.Image\nprint(Image.ANTIALIAS == Image.LANCZOS)\n'
        'from tensorflow.examples.tutorials.mnist import input_data\n'
        'import tensorflow.examples.tutorials.mnist.input_data as same\n'
        'import numpy as np\n'
        'print(same is input_data, np.int(2.5), np.float(2), np.lib.pad([1], 1, "constant"))'
    )
    _, stdout, _ = _run(tmp_path, {'program.py': text})
    assert stdout == "['a', 'b'] c d (2,) False True Mapping\nTrue\nTrue 2 2.0 [0 1 0]\n"


def test_files_with_the_names_of_modules(tmp_path):
    """Copies of the tutorial's modules have its former names; no other file hides a module."""
    names = sorted(modules._ALIASES)
    files = {name.rpartition('.')[2] + '.py': NAME + 'OWN = True' for name in names}
    files['program.py'] = (
        f'import importlib\nfor name in {names}:\n'
        '    module = importlib.import_module(name)\n'
        '    print(name, module.__name__, hasattr(module, "OWN"))\n'
    )
    status, stdout, stderr = _run(tmp_path, files)
    assert status == 0, stderr
    lines = stdout.splitlines()
    for name in names:
        last = name.rpartition('.')[2]
        if last in ('cifar10', 'cifar10_input'):
            assert f'{name} {last} True' in lines
        else:
            assert re.search(f'(?m)^{name} .* False$', stdout)
    copies = [line for line in lines if line.startswith('own')]
    assert sorted(copies) == ['own cifar10', 'own cifar10_input']


@pytest.mark.parametrize(
    'files, hint, repair',
    [
        (
            {'program.py': 'from models import net', 'models.md': ''},
            "cannot import name 'net' from 'models'; put this module beside the program, or",
            {'net.py': NAME},
        ),
        (
            {'program.py': 'from nets.big import net, loss', 'net.py': 'X = 1', 'loss.py': ''},
            "No module named 'nets'; put this module beside the program, or install its package",
            {'nets/big/net.py': NAME, 'nets/big/loss.py': ''},
        ),
        (
            {'program.py': 'from nets import net, loss', 'net.py': 'X = 1', 'nets/a.py': ''},
            "cannot import name 'net' from 'nets'; put this module beside the program, or",
            {'nets/net.py': NAME, 'nets/loss.py': ''},
        ),
        (
            {'program.py': 'from tflearn import net', 'net.py': NAME},
            "No module named 'tflearn'; pip install tflearn",
            None,
        ),
    ],
)
def test_packages_that_are_elsewhere(tmp_path, files, hint, repair):
    """The program's directory is not taken for them. The remedy works."""
    status, stdout, stderr = _run(tmp_path, files)
    assert (status, stdout) == (1, '')
    assert hint.format(directory=tmp_path) in stderr
    if repair:
        status, stdout, stderr = _run(tmp_path, {**files, **repair})
        assert status == 0 and stdout.startswith('own '), stderr


def test_the_remedy_for_copies(tmp_path):
    """It is the last line, if the error has to do with them and has no other hint."""
    files = {'program.py': 'import cifar10\ncifar10.f()', 'cifar10.py': 'def f():\n  return 1 / 0'}
    status, _, stderr = _run(tmp_path, files)
    path = re.escape(str(tmp_path / 'cifar10.py'))
    assert status == 1
    assert re.fullmatch(
        rf"cifar10_run.py: using {path} \(--package_modules uses this package's, which are faster\)\n"
        rf'Traceback (.*\n)+ZeroDivisionError: .*\n'
        rf"program.py: if {path} is the cause: --package_modules uses this package's modules\n",
        stderr,
    ), stderr
    files['program.py'] = 'import cifar10\ncifar10.loss(1, 2, 3, 4)'
    stderr = _run(tmp_path, {**files, 'cifar10.py': 'loss = max\nloss.a'})[2]
    assert 'is the cause' in stderr
    stderr = _run(tmp_path, files, '--package_modules')[2]
    assert stderr.startswith(f"cifar10_run.py: using this package's modules, not {tmp_path}")
    assert stderr.endswith(
        f"program.py: this package's modules may differ from {tmp_path / 'cifar10.py'}: leave out --package_modules\n"
    )


@pytest.mark.skipif(tensorflow.__version__ < '2', reason='1.15 has them')
def test_modules_of_contrib_keras_are_those_of_keras(tmp_path):
    text = (
        'from tensorflow.contrib.keras.api.keras.datasets.cifar10 import load_data\n'
        'from tensorflow.contrib.keras.python.keras import layers\n'
        'from tensorflow.contrib.keras.layers import Dense\n'
        'import tensorflow as tf\n'
        'print(load_data is tf.keras.datasets.cifar10.load_data, Dense is tf.keras.layers.Dense is layers.Dense)\n'
    )
    assert _run(tmp_path, {'program.py': text})[1] == 'True True\n'


def test_the_directory_of_the_program_as_a_package_that_others_have_too(tmp_path):
    """Only a directory above that has the module is the package. The remedy works."""
    text = 'from gan.ops import number\nimport gan.ops\nprint(number)\n'
    files = {'new/program.py': text, 'new/ops.py': 'number = 7', 'gan/readme.py': ''}
    assert _run(tmp_path, files)[1] == '7\n'
    status, _, stderr = _run(tmp_path, {**files, 'gan/ops.py': 'number = 8'})
    assert f'it is in {tmp_path}: set PYTHONPATH={tmp_path}' in stderr
    program = str(tmp_path / 'new' / 'program.py')
    assert programs.run('cifar10_run', program, PYTHONPATH=str(tmp_path))[1] == '8\n'
