"""The source distribution and the wheel hold everything."""
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.helpers import programs

TOP = ['cifar10', 'scripts', 'tests', 'docs', 'setup.py', 'MANIFEST.in', 'README.md', 'requirements.txt']


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
    """A copy of the sources, with what setup.py makes of them in dist/."""
    root = tmp_path_factory.mktemp('sources')
    for name in TOP:
        source, target = os.path.join(programs.ROOT, name), str(root / name)
        if os.path.isdir(source):
            shutil.copytree(source, target, ignore=shutil.ignore_patterns('__pycache__', '.*'))
        else:
            shutil.copy(source, target)
    subprocess.run([sys.executable, 'setup.py', '-q', 'sdist', 'bdist_wheel'], cwd=str(root), check=True, timeout=120,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return root


def _files(root, *tops):
    return {os.path.relpath(os.path.join(directory, name), str(root)) for top in tops
            for directory, _, names in os.walk(str(root / top)) for name in names}


def test_sdist(tree):
    path, = (tree / 'dist').glob('cifar10*classic-*.tar.gz')
    with tarfile.open(str(path)) as archive:
        held = {name.split('/', 1)[1] for name in archive.getnames() if '/' in name}
    wanted = _files(tree, 'cifar10', 'scripts', 'tests', 'docs') | {'setup.py', 'README.md', 'requirements.txt'}
    assert len(wanted) > 90 and wanted <= held


def test_wheel(tree):
    path, = (tree / 'dist').glob('cifar10_classic-*.whl')
    with zipfile.ZipFile(str(path)) as archive:
        held = set(archive.namelist())
        metadata, = [archive.read(name).decode() for name in held if name.endswith('/METADATA')]
    assert _files(tree, 'cifar10') <= held
    assert {os.path.basename(name) for name in _files(tree, 'scripts')} == {
        os.path.basename(name) for name in held if '.data/scripts/' in name}
    assert '\nDescription-Content-Type: text/markdown\n' in metadata and '\n# cifar10\n' in metadata
