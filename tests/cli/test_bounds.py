"""Every numeric flag has a lower bound; every path in a flag is checked at the start."""

import math
import os
import runpy

from absl import flags
import pytest

from cifar10.cli import data_flags, program
from tests.helpers import programs

CHECKPOINTS = {'train_dir', 'checkpoint_dir', 'checkpoint', 'init_checkpoint'}


# cifar10_run.py passes the flags to its program.
@pytest.fixture(params=sorted(set(programs.SCRIPTS) - {'cifar10_run'}))
def script(request, monkeypatch):
    """The flags of a script, by name."""
    starts = []
    with monkeypatch.context() as patched:
        patched.setattr(program, 'start', lambda *arguments, **others: starts.append(arguments))
        runpy.run_path(programs.path(request.param))
    with programs.own_flags():
        before = set(flags.FLAGS)
        (_, define_flags, *_), *_ = starts
        define_flags()
        yield {name: flags.FLAGS[name] for name in set(flags.FLAGS) - before}


def _parse(**given):
    flags.FLAGS.unparse_flags()
    flags.FLAGS(['script'] + [f'--{name}={value}' for name, value in given.items()])


def _refused(name, value):
    try:
        _parse(**{name: value})
    except flags.IllegalFlagValueError:
        return True
    finally:
        flags.FLAGS[name].using_default_value = True
        flags.FLAGS[name].value = flags.FLAGS[name].default
    return False


def test_every_number_has_a_lower_bound(script):
    numbers = {
        name: flag
        for name, flag in script.items()
        if isinstance(flag.parser, (flags.IntegerParser, flags.FloatParser))
    }
    for name, flag in numbers.items():
        lower, upper = flag.parser.lower_bound, flag.parser.upper_bound
        is_unbounded = upper in (None, math.inf)
        assert lower is not None and 0 <= lower and (is_unbounded or upper < 2**31), name
        assert not _refused(name, lower) and (is_unbounded or not _refused(name, upper)), name
        too_much = [lower - 1, ''] + ([] if is_unbounded else [upper + 1, 'inf'])
        assert [value for value in too_much if not _refused(name, value)] == [], name


def _places(script):
    """Names of the flags of places to write or read: each text that is neither an enum nor a list.

    --network is a file that exists, or a name.
    """
    return [
        name
        for name, flag in script.items()
        if type(flag.parser) is flags.ArgumentParser
        or isinstance(flag.parser, data_flags.PathParser)
        and name != 'network'
    ]


def test_the_network_is_checked(script, tmp_path, monkeypatch):
    """A network of the package, or an existing Python file."""
    if 'network' not in script:
        pytest.skip('the script builds no network')
    monkeypatch.chdir(tmp_path)
    for name in ('text.txt', "gr\u00fcn 'a' {x}.py"):
        (tmp_path / name).write_text('')
        assert _refused('network', name) == (not name.endswith('.py'))
    (tmp_path / 'directory.py').mkdir()
    refused = ('', 'new', 'new.py', 'directory.py', 'gs://bucket/x.py', '__init__', 'model.py')
    assert [value for value in refused if not _refused('network', value)] == []
    assert not _refused('network', 'model') and not _refused('network', 'resnet')


def test_every_place_is_checked(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = _places(script)
    (tmp_path / 'file').write_text('')
    for name in places:
        for value in ('gs://bucket/x', ''):
            assert _refused(name, value), (name, value)
        for value in ('[12]', 'a*', 'a?', 'back\\slash', '/tmp/x[1]/y'):
            assert _refused(name, value) == (name in CHECKPOINTS), (name, value)
        for value in ('new', 'gr\u00fcn', 'two words', '"quoted"', "it's", 'a:b', '{x}', '%s'):
            assert not _refused(name, value), (name, value)
        is_file = name in ('predictions_file', 'checkpoint', 'init_checkpoint')
        assert _refused(name, 'file') != is_file, name
    assert os.listdir(str(tmp_path)) == ['file']
