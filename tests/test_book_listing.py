"""Complete listing of docs/listings.md, with few examples and steps."""

import os
import re

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, programs


def test_the_listing_trains_and_evaluates(tmp_path, data_dir, capsys):
    """The listing and the package find the same precision, for the checkpoints of both."""
    with open(os.path.join(programs.ROOT, 'docs', 'listings.md')) as page:
        (listing,) = re.findall('```python\n(import numpy.*?)```', page.read(), re.DOTALL)
    given = f'DATA_DIR, TRAIN_DIR, NUM_GPUS, BATCH_SIZE, MAX_STEPS = {(data_dir, str(tmp_path), 2, 16, 10)!r}'
    listing = re.sub('DATA_DIR, TRAIN_DIR = .*\n.*', given, listing)
    names = {}
    exec(listing, names)
    output = capsys.readouterr().out
    assert re.match(r'step 10, loss = [3-5]\.', output)
    evaluator = evaluation.Evaluator(dataset.read(data_dir).test)
    result = evaluator.evaluate(checkpoint.read(str(tmp_path / 'model.ckpt-10')))
    assert result.step == 10 and f'({result.metrics.num_correct} of 50)' in output

    _, variables = checkpoints.save(tmp_path / 'ours', 1)
    names['TRAIN_DIR'] = str(tmp_path / 'ours')
    names['evaluate']()
    correct, _ = checkpoints.expected_result(data_dir, variables)
    assert f'({correct} of 50)' in capsys.readouterr().out
