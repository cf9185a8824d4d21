"""Source distribution and wheel are complete; scripts run from a checkout and installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile

import pytest

from tests.helpers import programs

SCRIPTS = [name + '.py' for name in programs.SCRIPTS]
TOP = [
    'cifar10',
    'tf1_runner',
    'scripts',
    'tests',
    'docs',
    'setup.py',
    'MANIFEST.in',
    'README.md',
    'requirements.txt',
]


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
    """A copy of the sources, with the output of setup.py in dist/."""
    root = tmp_path_factory.mktemp('sources')
    for name in TOP:
        source, target = os.path.join(programs.ROOT, name), str(root / name)
        if os.path.isdir(source):
            shutil.copytree(source, target, ignore=shutil.ignore_patterns('__pycache__', '.*'))
        else:
            shutil.copy(source, target)
    subprocess.run(
        [sys.executable, 'setup.py', '-q', 'sdist', 'bdist_wheel'],
        cwd=str(root),
        check=True,
        timeout=120,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return root


def _files(root, *tops):
    return {
        os.path.relpath(os.path.join(directory, name), str(root))
        for top in tops
        for directory, _, names in os.walk(str(root / top))
        for name in names
    }


def test_sdist(tree):
    (path,) = (tree / 'dist').glob('cifar10*classic-*.tar.gz')
    with tarfile.open(str(path)) as archive:
        held = {name.split('/', 1)[1] for name in archive.getnames() if '/' in name}
    wanted = _files(tree, 'cifar10', 'tf1_runner', 'scripts', 'tests', 'docs') | {
        'setup.py',
        'README.md',
        'requirements.txt',
    }
    assert len(wanted) > 90 and wanted <= held


def test_wheel(tree):
    (path,) = (tree / 'dist').glob('cifar10_classic-*.whl')
    with zipfile.ZipFile(str(path)) as archive:
        held = set(archive.namelist())
        (metadata,) = [archive.read(name).decode() for name in held if name.endswith('/METADATA')]
    modules = _files(tree, 'cifar10', 'tf1_runner') | {
        f'cifar10/scripts/{name}' for name in SCRIPTS
    }
    modules.remove('cifar10/scripts/__init__.py')  # It leads to the scripts of a checkout.
    assert modules == {name for name in held if '.dist-info/' not in name}
    assert '\nDescription-Content-Type: text/markdown\n' in metadata and '\n# cifar10\n' in metadata


def _help(command, cwd, pythonpath):
    """Return the output of a command with --help."""
    return subprocess.run(
        [*command, '--help'],
        cwd=str(cwd),
        env=dict(os.environ, PYTHONPATH=str(pythonpath)),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=programs.DEADLINE_SECS,
    ).stdout


def test_a_checkout_needs_no_installation(tmp_path):
    """Another package of this name comes first on the path."""
    (tmp_path / 'cifar10').mkdir()
    (tmp_path / 'cifar10' / '__init__.py').write_text('raise ImportError("another")\n')
    for script in SCRIPTS:
        path = os.path.join(programs.ROOT, 'scripts', script)
        assert script in _help([sys.executable, path], tmp_path, tmp_path)


@pytest.fixture(scope='module', params=[False, True])
def installation(request, tree, tmp_path_factory):
    """The directory of venv/ and sources/, that of the packages, and True if it is editable.

    The virtual environment also sees the packages of this one.
    """
    root = tmp_path_factory.mktemp('installation')
    venv.create(str(root / 'venv'), with_pip=True)
    python = str(root / 'venv' / 'bin' / 'python')
    code = 'import sysconfig; print(sysconfig.get_path("purelib"))'
    site = subprocess.check_output([python, '-c', code], text=True, timeout=60).strip()
    with open(os.path.join(site, 'packages.pth'), 'w') as packages:
        packages.write(sysconfig.get_path('purelib'))
    shutil.copytree(str(tree), str(root / 'sources'))
    options = ['-qI', '--no-deps', '--no-index', '--no-build-isolation']
    subprocess.run(
        [
            *[python, '-m', 'pip', 'install', *options, *(['-e'] if request.param else [])],
            str(root / 'sources'),
        ],
        check=True,
        timeout=programs.DEADLINE_SECS,
    )
    return root, site, request.param


@pytest.mark.slow
def test_installed_scripts(installation, tmp_path):
    """The scripts of an installation.

    They are those of the installed package, or of the sources if the installation is editable. A
    script puts neither its package nor the parent of bin/ into sys.path.
    """
    root, site, is_editable = installation
    path = root / 'sources' / 'scripts' / 'cifar10_run.py'
    path.write_text(path.read_text().replace('"""Runs ', '"""Edited: runs '))
    bin_dir = root / 'venv' / 'bin'
    assert set(SCRIPTS) <= {found.name for found in bin_dir.iterdir()}
    printed = _help([str(bin_dir / 'cifar10_run.py')], tmp_path, '')
    assert printed.startswith('Edited: runs ' if is_editable else 'Runs ')
    (tmp_path / 'program.py').write_text('import sys\nfor entry in sys.path: print(entry)\n')
    entries = subprocess.check_output(
        [str(bin_dir / 'cifar10_run.py'), str(tmp_path / 'program.py')],
        text=True,
        timeout=programs.DEADLINE_SECS,
    ).splitlines()
    assert entries[0] == str(tmp_path)
    assert not {str(bin_dir.parent), str(bin_dir), os.path.join(site, 'cifar10')} & set(entries)


@pytest.mark.slow
def test_the_installed_train(installation, tmp_path, data_dir):
    """The command and the import from Python have the same function."""
    flags = [f'--data_dir={data_dir}', f'--train_dir={tmp_path / "run"}', '--batch_size=8']
    for name, *arguments in [
        ('cifar10_train.py', '--max_steps=2', '--eval_every=0', *flags),
        ('python', '-c', 'from cifar10.scripts.cifar10_multi_gpu_train import train'),
    ]:
        subprocess.run(
            [str(installation[0] / 'venv' / 'bin' / name), *arguments],
            cwd=str(tmp_path),
            env=dict(os.environ, PYTHONPATH=''),
            check=True,
            timeout=programs.DEADLINE_SECS,
        )
    assert (tmp_path / 'run' / 'model.ckpt-2.index').exists()


@pytest.mark.slow
def test_installed_runner_beside_another_cifar10(installation, tmp_path):
    """The cells of a notebook with its own cifar10.py."""
    pytest.importorskip('IPython')
    python = str(installation[0] / 'venv' / 'bin' / 'python')
    (tmp_path / 'cifar10.py').write_text('NUM_CLASSES = 7\n')
    cells = (
        '%load_ext tf1_runner\n'
        'import cifar10, cifar10_input, tensorflow as tf\n'
        'print(cifar10.NUM_CLASSES, cifar10_input.NUM_CLASSES, tf.VERSION)'
    )
    printed = subprocess.check_output(
        [python, '-m', 'IPython', '-c', cells],
        cwd=str(tmp_path),
        env=dict(os.environ, IPYTHONDIR=str(tmp_path / 'ipython'), PYTHONPATH=''),
        text=True,
        timeout=programs.DEADLINE_SECS,
    )
    assert printed == '7 10 1.15.5\n'
