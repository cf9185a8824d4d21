"""Draws the figures of the documentation from the files in measurements/.

python docs/figures/draw.py [DIRECTORY]   default: the directory of this file
"""

import collections
import csv
import glob
import hashlib
import io
import os
import re
import statistics
import sys
import warnings

from diagrams import (
    GREY,
    HERE,
    WIDTH,
    data_flow,
    data_flow_zh,
    distributed_modes,
    first_run,
    graph_and_session,
    network,
    partition,
    text,
)
import matplotlib
from matplotlib import figure, patches

# Other colors than those of the diagrams, where a color means files, input, network or Python.
LAYERS = {
    'conv1': '#9e9ac8',
    'pool': '#dadaeb',
    'norm': '#b0b0b0',
    'conv2': '#54278f',
    'local3': '#8c510a',
    'local4': '#c7a27c',
    'loss': 'black',
}
STYLE = {
    'svg.fonttype': 'none',
    'svg.hashsalt': 'cifar10',
    'font.family': 'DejaVu Sans',
    'font.size': 13,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'path.simplify': False,
}


def measurements(name):
    """Return the rows of a CSV file in measurements/, as dicts."""
    with open(os.path.join(HERE, 'measurements', name)) as opened:
        return list(csv.DictReader(line for line in opened if not line.startswith('#')))


def chart(height, left=130, bottom=50, top=20, right=20):
    """Return axes of a new figure with margins in pixels."""
    drawing = figure.Figure(figsize=(WIDTH / 72, height / 72))
    sides = [left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (bottom + top) / height]
    return drawing.add_axes(sides)


def step_timeline():
    """Draw a step of two towers on a timeline."""
    axes = chart(400, left=150, bottom=95)
    lanes = [
        ('step', 'dequeue'),
        ('tower_0', 'forward'),
        ('tower_0', 'gradients'),
        ('tower_1', 'forward'),
        ('tower_1', 'gradients'),
        ('step', 'average_gradients'),
        ('step', 'update'),
        ('step', 'moving averages'),
    ]
    for row in measurements('step_timeline.csv'):
        layer, _, gradients = row['operation'].partition(' ')
        if row['tower'] == 'step':
            lane, color = lanes.index(('step', row['operation'])), GREY
        else:
            kind = 'gradients' if gradients else 'forward'
            lane, color = lanes.index((row['tower'], kind)), LAYERS[layer]
        start, duration = int(row['start_us']) / 1000, int(row['duration_us']) / 1000
        axes.barh(lane, duration, left=start, height=0.62, color=color, ec=color, lw=0.8)
        if duration > 9:
            ink = 'white' if layer == 'conv2' else 'black'
            text(axes, start + duration / 2, lane, layer, color=ink, fontsize=12)
    text(axes, 95, 5, 'both cores compute convolutions', fontsize=12)
    names = [lane if tower == 'step' else f'{tower}: {lane}' for tower, lane in lanes]
    axes.set_yticks(range(len(lanes)))
    axes.set_yticklabels(names)
    axes.set_xticks(range(0, 151, 25))
    axes.set(xlim=(0, 150), ylim=(7.6, -0.6), xlabel='milliseconds since the start of the step')
    axes.grid(axis='x', alpha=0.3)
    axes.set_axisbelow(True)
    handles = [patches.Patch(color=color, label=layer) for layer, color in LAYERS.items()]
    axes.legend(
        handles=handles, ncol=7, loc='upper center', bbox_to_anchor=(0.44, -0.17), frameon=False
    )
    return axes.figure


def recipes():
    """Draw the precision of each recipe against the epochs of training."""
    axes = chart(420, left=75)
    styles = {
        'classic': ('black', '--', 'classic, two runs'),
        'fast': (GREY, '-', 'fast, five seeds'),
        'best': ('black', ':', 'best, three seeds'),
    }
    curves = collections.defaultdict(list)
    for row in measurements('recipes.csv'):
        curves[row['recipe'], row['seed']].append((float(row['epochs']), float(row['precision'])))
    for recipe, (color, line, name) in styles.items():
        group = [points for (other, _), points in curves.items() if other == recipe]
        precision = statistics.mean(points[-1][1] for points in group)
        label = f'{name}: {precision:.3f} after {group[0][-1][0]:.0f} epochs'
        for i, points in enumerate(group):
            axes.plot(*zip(*points), color=color, ls=line, lw=1.5, label='' if i else label)
            axes.plot(*points[-1], 'o', color=color, ms=6)
    ticks = [2, 5, 10, 20, 50, 100, 200]
    axes.set(xscale='log', xlabel='epochs', ylabel='precision @ 1')
    axes.set(xlim=(2, 300), ylim=(0.58, 0.86))
    axes.set_xticks(ticks)
    axes.set_xticklabels([str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc='lower right', frameon=False, fontsize=14)
    return axes.figure


FIGURES = (
    data_flow,
    data_flow_zh,
    network,
    graph_and_session,
    step_timeline,
    partition,
    distributed_modes,
    recipes,
    first_run,
)


def checksum(name):
    """Return the SHA-256 of the measurements of a figure; of a diagram, '' instead."""
    for path in glob.glob(os.path.join(HERE, 'measurements', name + '.*')):
        with open(path, 'rb') as opened:
            return hashlib.sha256(opened.read()).hexdigest()
    return ''


def svg(drawing, description):
    """Return a figure as SVG, in pixels and with generic fonts; the description is metadata."""
    opened = io.StringIO()
    # The font of the viewer has the Chinese characters that matplotlib's lacks.
    warnings.filterwarnings('ignore', 'Glyph ')
    with matplotlib.rc_context(STYLE):
        drawing.savefig(
            opened,
            format='svg',
            metadata={'Date': None, 'Description': description},
            facecolor='white',
        )
    content = re.sub(r'(\d)pt"', r'\1"', opened.getvalue(), count=2)
    content = content.replace("'DejaVu Sans Mono'", 'monospace').replace(
        "'DejaVu Sans'", 'sans-serif'
    )
    return re.sub(r'[ \t]+\n', '\n', content)


def main(directory=HERE):
    """Draw all figures into a directory."""
    for draw in FIGURES:
        with matplotlib.rc_context(STYLE):
            content = svg(draw(), checksum(draw.__name__))
        with open(os.path.join(directory, draw.__name__ + '.svg'), 'w', encoding='utf-8') as opened:
            opened.write(content)


if __name__ == '__main__':
    main(*sys.argv[1:])
