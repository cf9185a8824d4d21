"""tf.contrib.training.HParams; on TensorFlow 1.15 also the original."""

import json

import numpy as np
import pytest
import tensorflow

from tf1_runner import contrib_names

MODULES = [contrib_names.MODULES['contrib.training']] + (
    [vars(tensorflow.contrib.training)] if hasattr(tensorflow, 'contrib') else []
)


@pytest.fixture(params=MODULES)
def module(request):
    return request.param


@pytest.fixture
def hparams(module):
    return module['HParams'](rate=0.1, layers=[64, 32], name='net', is_deep=False, steps=10)


def test_values(hparams):
    hparams.add_hparam('decay', 0.5)
    assert (hparams.rate, hparams.get('decay'), hparams.get('nix', 3)) == (0.1, 0.5, 3)
    assert str(hparams).startswith('rate=0.1,layers=[64, 32],name=net')
    assert repr(hparams).startswith("HParams([('decay', 0.5), ('is_deep', False)")
    assert 'rate' in hparams and 'nix' not in hparams
    assert hparams.values()['layers'] == [64, 32]
    assert json.loads(hparams.to_json())['name'] == 'net'
    hparams.del_hparam('decay')
    assert sorted(hparams.values()) == ['is_deep', 'layers', 'name', 'rate', 'steps']
    for name in ('values', 'rate'):
        with pytest.raises(ValueError, match='reserved'):
            hparams.add_hparam(name, 3)
    with pytest.raises(ValueError, match='empty'):
        hparams.add_hparam('sizes', [])
    hparams.rate = 'any type'
    hparams.other = 3  # an attribute, but no hyperparameter
    assert hparams.values()['rate'] == 'any type' and 'other' not in hparams.values()
    hparams.set_hparam('rate', 0.5)  # The type is that of the first value.


def test_a_text_restores_the_values(hparams, module):
    hparams.parse('rate=0.25,layers=[1],is_deep=1')
    copy = module['HParams'](rate=0.0, layers=(7,), name='', is_deep=False, steps=0)
    assert copy.parse(str(hparams)).values() == hparams.values()
    assert str(copy.parse('layers=[]')).startswith('rate=0.25,layers=[],')


def test_other_types(module):
    """A function, an object, None, a tuple and a name with a period."""

    class Schedule:
        def __init__(self, rate):
            self.rate = rate

    hparams = module['HParams'](activation=len, schedule=Schedule(1), nothing=None, sizes=(1, 2))
    hparams.set_hparam('activation', max)
    hparams.set_hparam('schedule', Schedule(2))
    with pytest.raises(ValueError, match='nothing'):
        hparams.set_hparam('nothing', [1])
    hparams.set_hparam('nothing', 'something')
    hparams.add_hparam('decay.rate', 0.0)
    hparams.parse('sizes=[3],decay.rate=1')
    assert hparams.activation(3, 4) == 4 and hparams.schedule.rate == 2
    assert (hparams.nothing, hparams.sizes) == ('something', [3])
    assert getattr(hparams, 'decay.rate') == 1.0


@pytest.mark.parametrize(
    'name, default',
    [('rate', 'a'), ('layers', 1), ('layers', ['a']), ('name', [1]), ('steps', 0.5)],
)
def test_a_default_of_another_type(hparams, name, default):
    assert hparams.get('rate', 1) == 0.1 and hparams.get('layers', [3, 4, 5]) == [64, 32]
    with pytest.raises(ValueError, match=name):
        hparams.get(name, default)


def test_parsed_indices(module):
    parse = module['parse_values']
    types = {'rate': float, 'sizes': int, 'is_deep': bool}
    assert parse('sizes[1]=10,rate=2, sizes[ 5 ] = 20,is_deep[0]=True', types) == {
        'sizes': {1: 10, 5: 20},
        'rate': 2.0,
        'is_deep': {0: True},
    }
    assert parse('a=[1],sizes=[],b[2]=3', types, ignore_unknown=True) == {'sizes': []}
    for text, message in [
        ('sizes[1]=[1,2]', 'Assignment of a list to a list index'),
        ('a[1]=5', 'Unknown hyperparameter type for a'),
        ('sizes=[1],sizes[0]=1', "Multiple assignments to variable 'sizes'"),
        ('sizes[0]=1,sizes=1', "Multiple assignments to variable 'sizes'"),
        ('sizes[0]=1,sizes[0]=2', r"Multiple assignments to variable 'sizes\[0\]'"),
        ('is_deep=yes', "Could not parse hparam 'is_deep'"),
        ('rate', 'Malformed'),
    ]:
        with pytest.raises(ValueError, match=message):
            parse(text, types)


def test_arguments_that_are_gone():
    for name in ('hparam_def', 'model_structure'):
        with pytest.raises(ValueError, match=name):
            contrib_names.MODULES['contrib.training']['HParams'](**{name: 'definition'})


def test_parse(hparams):
    found = hparams.parse('rate=2,name=my net,is_deep=true,layers=[1,2 3], steps=20, ')
    assert found is hparams
    expected = {'rate': 2.0, 'name': 'my net', 'is_deep': True, 'layers': [1, 2, 3], 'steps': 20}
    assert hparams.values() == expected
    assert isinstance(hparams.rate, float)
    assert hparams.parse('rate=inf').rate == float('inf')
    hparams.parse_json('{"rate": 0.5}')
    hparams.override_from_dict({'steps': 5})
    hparams.set_hparam('rate', 3)
    assert (hparams.rate, hparams.steps) == (3.0, 5)
    hparams.override_from_dict({'rate': np.float32(0.5), 'steps': np.int64(6)})
    assert (type(hparams.rate), type(hparams.steps)) == (float, int)


@pytest.mark.parametrize(
    'text',
    ['nix=3', 'steps=0.5', 'steps=a', 'layers=3', 'rate=[1,2]', 'rate', 'a b=3', 'steps=1,steps=2'],
)
def test_mistakes(hparams, text):
    with pytest.raises(ValueError):
        hparams.parse(text)
    assert hparams.values()['rate'] == 0.1 and hparams.steps == 10


@pytest.mark.parametrize(
    'name, value', [('name', 5), ('steps', 0.5), ('steps', True), ('rate', 'a'), ('nix', 3)]
)
def test_a_wrong_name_or_type(hparams, name, value):
    with pytest.raises((KeyError, ValueError), match=name):
        hparams.set_hparam(name, value)
