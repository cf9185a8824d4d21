"""Source distribution and wheel are complete; scripts run from a checkout and installed."""

import glob
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.helpers import programs

SCRIPTS = sorted(
    os.path.basename(path) for path in glob.glob(os.path.join(programs.ROOT, 'scripts', '*.py'))
)
TOP = [
    'cifar10',
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
    wanted = _files(tree, 'cifar10', 'scripts', 'tests', 'docs') | {
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
    assert _files(tree, 'cifar10') <= held
    assert {os.path.basename(name) for name in _files(tree, 'scripts')} == {
        os.path.basename(name) for name in held if '.data/scripts/' in name
    }
    assert '\nDescription-Content-Type: text/markdown\n' in metadata and '\n# cifar10\n' in metadata


def _help(script, cwd, pythonpath):
    """Return the output of a script with --help."""
    return subprocess.run(
        [sys.executable, str(script), '--help'],
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
        assert script in _help(path, tmp_path, tmp_path)


@pytest.mark.slow
def test_installed_scripts(tree, tmp_path):
    """The wheel adds nothing else to the PATH."""
    (wheel,) = glob.glob(str(tree / 'dist' / '*.whl'))
    subprocess.run(
        [
            sys.executable,
            '-m',
            'pip',
            'install',
            '-q',
            '--no-deps',
            '--no-index',
            '--no-compile',
            f'--prefix={tmp_path}',
            wheel,
        ],
        check=True,
        timeout=programs.DEADLINE_SECS,
    )
    (package,) = tmp_path.glob('lib*/python*/site-packages/cifar10')
    assert sorted(path.name for path in (tmp_path / 'bin').iterdir()) == SCRIPTS
    assert SCRIPTS[0] in _help(tmp_path / 'bin' / SCRIPTS[0], tmp_path, package.parent)


def test_the_continuous_integration_fails_without_a_python():
    """.ci/versions leaves out this status, .ci/run fails."""
    command = ['bash', os.path.join(programs.ROOT, '.ci', 'quick'), '3.99 3.98']
    found = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    assert found.returncode == 77 and 'No Python 3.99 3.98 on the PATH ' in found.stderr
