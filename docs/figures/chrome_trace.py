"""Reduces a trace of --profile_step to the measurements of step_timeline.csv, and prints them.

python docs/figures/chrome_trace.py TRACE
"""

import collections
import json
import re
import sys

LAYERS = ('conv1', 'conv2', 'norm', 'pool', 'local3', 'local4')
SHARED = {
    'prefetch_queue_Dequeue': 'dequeue',
    'average_gradients': 'average_gradients',
    'update': 'update',
    'moving_averages': 'moving averages',
}
MAX_GAP_US = 300  # smaller gaps between operations of a group are closed
MIN_TOWER_US = 100  # shorter bars of a tower are left out


def load(path):
    """Return the (name, start, duration) of each operation, in order, in microseconds."""
    with open(path) as opened:
        events = [event for event in json.load(opened)['traceEvents'] if event['ph'] == 'X']
    begin = min(event['ts'] for event in events)
    return sorted((e['args']['name'], e['ts'] - begin, e['dur']) for e in events)


def group(name):
    """Return the (tower, operation group) of an operation; the tower can be 'step'."""
    tower = re.match(r'(tower_\d+)/(gradients/tower_\d+/)?([a-z]+\d?)', name)
    if not tower:
        return 'step', SHARED.get(re.sub(r'_\d+$', '', name.split('/')[0]), 'other')
    layer = tower.group(3)
    layer = next((known for known in LAYERS if layer.startswith(known)), layer)
    if layer.startswith(('softmax', 'cross')):
        layer = 'loss'
    elif layer not in LAYERS:
        layer = 'other'
    return tower.group(1), layer + (' gradients' if tower.group(2) else '')


def timeline(path):
    """Return rows (tower, operation, start_us, duration_us), by start."""
    spans = collections.defaultdict(list)
    for name, start, duration in sorted(load(path), key=lambda event: event[1]):
        bars = spans[group(name)]
        if bars and start - bars[-1][1] <= MAX_GAP_US:
            bars[-1][1] = max(bars[-1][1], start + duration)
        else:
            bars.append([start, start + duration])
    rows = [
        (tower, operation, start, end - start)
        for (tower, operation), bars in spans.items()
        for start, end in bars
        if 'other' not in operation and (tower == 'step' or end - start >= MIN_TOWER_US)
    ]
    return sorted(rows, key=lambda row: row[2])


if __name__ == '__main__':
    table = [('tower', 'operation', 'start_us', 'duration_us'), *timeline(sys.argv[1])]
    print('\n'.join(','.join(map(str, row)) for row in table))
