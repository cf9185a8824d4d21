"""tf.contrib.training.HParams; on TensorFlow 1.15 also the original."""

import json

import numpy as np
import pytest
import tensorflow

from cifar10.tf1.contrib_hparams import ContribHParams

CLASSES = [ContribHParams] + (
    [tensorflow.contrib.training.HParams] if hasattr(tensorflow, 'contrib') else []
)


@pytest.fixture(params=CLASSES)
def hparams(request):
    return request.param(rate=0.1, layers=[64, 32], name='net', is_deep=False, steps=10)


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
    with pytest.raises(ValueError, match='reserved'):
        hparams.add_hparam('values', 3)


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
