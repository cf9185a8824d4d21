"""tf.contrib.training.HParams; on TensorFlow 1.15 also the original."""

import pytest
import tensorflow

from tf1_runner import contrib_names

MODULES = [contrib_names.MODULES['contrib.training']] + (
    [vars(tensorflow.contrib.training)] if hasattr(tensorflow, 'contrib') else []
)


@pytest.fixture(params=MODULES)
def hparams(request):
    return request.param['HParams'](rate=0.1, layers=[64, 32], name='net', is_deep=False, steps=10)


def test_values(hparams):
    hparams.add_hparam('decay', 0.5)
    assert (hparams.rate, hparams.decay, hparams.layers) == (0.1, 0.5, [64, 32])
    with pytest.raises(ValueError, match='reserved'):
        hparams.add_hparam('rate', 3)
    with pytest.raises(ValueError, match='empty'):
        hparams.add_hparam('sizes', [])
    hparams.rate = 'any type'
    assert hparams.parse('rate=0.5').rate == 0.5  # The type is that of the first value.


def test_parse(hparams):
    assert hparams.parse('') is hparams
    found = hparams.parse('rate=2,name=my net,is_deep=true,layers=[1,2 3], steps=20, ')
    assert found is hparams
    assert (hparams.rate, hparams.name, hparams.is_deep) == (2.0, 'my net', True)
    assert (hparams.layers, hparams.steps) == ([1, 2, 3], 20)
    assert isinstance(hparams.rate, float)
    assert hparams.parse('rate=inf,is_deep=0').rate == float('inf') and not hparams.is_deep


@pytest.mark.parametrize(
    'text',
    ['nix=3', 'steps=0.5', 'steps=a', 'layers=3', 'rate=[1,2]', 'rate', 'a b=3', 'is_deep=yes'],
)
def test_mistakes(hparams, text):
    with pytest.raises(ValueError):
        hparams.parse(text)
    assert hparams.rate == 0.1 and hparams.steps == 10
