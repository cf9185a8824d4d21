"""Every numeric flag has bounds; every path in a flag is checked at the start."""

import glob
import os
import re
import runpy

from absl import flags
import pytest

from cifar10.cli import program
from tests.helpers import programs, special_files
from tests.helpers.special_files import deadline  # noqa: F401

# cifar10_run.py passes the flags to its program.
SCRIPTS = sorted(
    {os.path.basename(path)[: -len('.py')] for path in glob.glob(programs.path('*'))}
    - {'cifar10_run'}
)
UNBOUNDED = {'epochs'}  # inf means no end
NOT_PLACES = {'data_url'}  # string flags that are no paths
FILES = {
    'json_file',
    'trace_file',
    'plot_file',
    'contact_sheet_file',
    'predictions_file',
    'tflite_file',
}
ENDINGS = {'contact_sheet_file': '.PNG'}  # required file extensions
CHECKPOINTS = {'train_dir', 'checkpoint_dir', 'checkpoint'}


@pytest.fixture(params=SCRIPTS)
def script(request, monkeypatch):
    """The flags of a script, by name."""
    loaded = []
    with monkeypatch.context() as patched, programs.own_flags():
        patched.setattr(program, 'parse', lambda *unused, **commands: loaded.append(True))
        patched.setattr(program, 'run', lambda *unused: None)
        patched.setattr('sys.argv', [programs.path(request.param)])
        before = set(flags.FLAGS)
        runpy.run_path(programs.path(request.param), run_name='__main__')
        assert loaded
        yield {name: flags.FLAGS[name] for name in set(flags.FLAGS) - before}


def _parse(**given):
    """Parses flags; adds the required --runs."""
    needed = {'runs': 'a:b:c'} if 'runs' in flags.FLAGS else {}
    flags.FLAGS.unparse_flags()
    flags.FLAGS(['script'] + [f'--{name}={value}' for name, value in dict(needed, **given).items()])


def _refused(name, value):
    try:
        _parse(**{name: value})
    except flags.IllegalFlagValueError:
        return True
    finally:
        flags.FLAGS[name].using_default_value = True
        flags.FLAGS[name].value = flags.FLAGS[name].default
    return False


def test_every_number_has_bounds(script):
    numbers = {
        name: flag
        for name, flag in script.items()
        if isinstance(flag.parser, (flags.IntegerParser, flags.FloatParser))
    }
    for name, flag in numbers.items():
        lower, upper = flag.parser.lower_bound, flag.parser.upper_bound
        assert lower is not None and upper is not None, name
        assert 0 <= lower < upper and (upper < 2**31 or name in UNBOUNDED), name
        assert not _refused(name, lower) and not _refused(name, upper), name
        too_much = [lower - 1, -(2**63), 'nan', '-inf', ''] + (
            [] if name in UNBOUNDED else [upper + 1, 2**63, 'inf', '1e400']
        )
        assert [value for value in too_much if not _refused(name, value)] == [], name


def test_every_place_is_checked(script, tmp_path, monkeypatch):
    """A string flag is a path unless NOT_PLACES lists it."""
    monkeypatch.chdir(tmp_path)
    # exactly this class: enums and lists have other parsers
    places = {
        name for name, flag in script.items() if type(flag.parser) is flags.ArgumentParser
    } - NOT_PLACES
    for name in places:
        for value in (
            'gs://bucket/x',
            's3://bucket/x',
            'hdfs://host/x',
            'file:///x',
            'a\udcff',
            'a\nb',
            'a\x1b[31m',
        ):
            assert _refused(name, value), (name, value)
        ending = ENDINGS.get(name, '')
        for value in (
            '[12]' + ending,
            'a*' + ending,
            'a?' + ending,
            'back\\slash' + ending,
            '/tmp/x[1]/y' + ending,
        ):
            assert _refused(name, value) == (name in CHECKPOINTS), (name, value)
        for value in ('new', 'gr\u00fcn', 'two words', '"quoted"', "it's", 'a:b', '{x}', '%s'):
            assert not _refused(name, value + ending), (name, value)
        assert _refused(name, '/') == (name in FILES) and _refused(name, ''), name
    assert os.listdir(str(tmp_path)) == []


def test_a_file_that_is_written_is_no_device(script, tmp_path):
    """An output file is replaced: not /dev/stdout."""
    (tmp_path / 'file.png').write_text('')
    (tmp_path / 'link.png').symlink_to('file.png')
    for kind in special_files.KINDS:
        special_files.make(tmp_path / (kind + '.png'), kind)
    for name in {name for name in FILES & set(script) if not script[name].boolean}:
        assert not _refused(name, tmp_path / 'file.png')
        assert all(
            _refused(name, tmp_path / (kind + '.png')) for kind in special_files.KINDS + ['link']
        )


def test_a_working_directory_that_has_been_removed(tmp_path, monkeypatch):
    (tmp_path / 'gone').mkdir()
    monkeypatch.chdir(tmp_path / 'gone')
    (tmp_path / 'gone').rmdir()
    status, _, stderr = programs.call('cifar10_train', '--train_dir=x')
    assert status == 2 and re.fullmatch(
        'cifar10_train.py: error: flag --train_dir=x: .*No such file or directory.*\n', stderr
    )
