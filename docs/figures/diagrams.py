"""Diagrams of the documentation: boxes, arrows and lines of text. See draw.py."""

import os

from matplotlib import figure, patches

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 900  # of each figure, in pixels; font sizes are in pixels too

# Colors that color-blind readers can distinguish (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, RED = '#0072b2', '#e69f00', '#009e73', '#d55e00'
SKY, PINK, YELLOW, GREY = '#56b4e9', '#cc79a7', '#f0e442', '#555555'
DISK, CPU, DEVICE, PROCESS = '#fdf1d8', '#e3edf9', '#dcefe2', '#f6e3ee'


def canvas(height):
    """Return axes that cover a new figure, in pixels from its upper left corner."""
    axes = figure.Figure(figsize=(WIDTH / 72, height / 72)).add_axes([0, 0, 1, 1])
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    axes.axis('off')
    return axes


def box(axes, bounds, color, title, note=''):
    """Draw a box at (x, y, width, height) with a title and a note in small letters."""
    x, y, width, height = bounds
    style = patches.BoxStyle('round', pad=0, rounding_size=6)
    axes.add_patch(
        patches.FancyBboxPatch((x, y), width, height, boxstyle=style, fc=color, ec=GREY, lw=1)
    )
    lines = [title] + note.split('\n') if note else [title]
    for i, line in enumerate(lines):
        middle = y + height / 2 + 17 * (i - (len(lines) - 1) / 2)
        text(axes, x + width / 2, middle, line, fontsize=11.5 if i else 14)


def text(axes, x, y, words, **kwargs):
    """Write one line, by default centered."""
    axes.text(x, y, words, **dict(dict(ha='center', va='center', color='#222222'), **kwargs))


def arrow(axes, *points):
    """Draw an arrow along the points."""
    if len(points) > 2:
        axes.plot(*zip(*points[:-1]), color=GREY, lw=1.5)
    style = dict(arrowstyle='-|>', color=GREY, lw=1.5, shrinkA=0, shrinkB=0)
    axes.annotate('', points[-1], points[-2], arrowprops=style)


def data_flow():
    """Draw the data flow of training, from the files to TensorBoard."""
    axes = canvas(480)
    box(axes, (15, 30, 120, 60), DISK, 'files', 'data_batch_*.bin')
    box(axes, (175, 30, 140, 60), CPU, 'shuffle queue', 'examples')
    box(axes, (355, 30, 140, 60), CPU, 'distortions', 'crop, flip, contrast')
    box(axes, (535, 30, 140, 60), CPU, 'prefetch queue', 'batches')
    for x in (135, 315, 495):
        arrow(axes, (x, 60), (x + 40, 60))
    for i, y in enumerate((10, 62, 114)):
        box(axes, (725, y, 160, 44), DEVICE, f'tower_{i} on GPU {i}' if i < 2 else 'tower_2 …')
        arrow(axes, (675, 50 + 8 * i), (725, y + 22))
    text(axes, 875, 176, 'loss, gradients', fontsize=11.5, ha='right')
    arrow(axes, (770, 158), (770, 215))
    box(axes, (725, 215, 160, 60), CPU, 'average_gradients', 'waits for all towers')
    arrow(axes, (725, 245), (675, 245))
    box(axes, (535, 215, 140, 60), CPU, 'update', 'apply_gradients')
    arrow(axes, (605, 215), (605, 180))
    box(axes, (535, 130, 140, 50), CPU, 'variables', 'shared by all towers')
    arrow(axes, (675, 146), (725, 146))
    text(axes, 700, 162, 'weights', fontsize=11.5)
    arrow(axes, (535, 245), (495, 245))
    box(axes, (355, 215, 140, 60), CPU, 'moving averages', 'of the variables')
    arrow(axes, (355, 245), (315, 245))
    box(axes, (175, 215, 140, 60), CPU, 'saver')
    arrow(axes, (175, 245), (135, 245))
    box(axes, (15, 215, 120, 60), DISK, 'checkpoints', 'model.ckpt-1000')
    arrow(axes, (75, 275), (75, 355), (175, 355))
    box(axes, (175, 325, 140, 60), PROCESS, 'evaluation', 'cifar10_eval.py')
    arrow(axes, (315, 355), (355, 355))
    box(axes, (355, 325, 140, 60), DISK, 'event files')
    arrow(axes, (605, 275), (605, 325))
    box(axes, (535, 325, 140, 60), CPU, 'summary writer', 'scalars, histograms, …')
    arrow(axes, (535, 355), (495, 355))
    arrow(axes, (425, 385), (425, 415))
    box(axes, (355, 415, 140, 44), PROCESS, 'TensorBoard')
    legend = [
        (DISK, 'on disk'),
        (CPU, 'training process, on the CPU'),
        (DEVICE, 'training process, on a GPU or CPU device'),
        (PROCESS, 'another process'),
    ]
    for i, (color, label) in enumerate(legend):
        x, y = (15, 535)[i // 2], 422 + 28 * (i % 2)
        box(axes, (x, y, 16, 16), color, '')
        text(axes, x + 26, y + 8, label, fontsize=12, ha='left')
    return axes.figure


def distributed_modes():
    """Draw the four modes of distributed training."""
    axes = canvas(560)
    titles = {
        'allreduce': 'all workers make the same update',
        'sync': 'one update from the average of all gradients',
        'async': 'one update per gradient, without waiting',
        'average': 'every 10 steps: the average of all weights',
    }
    for i, (mode, words) in enumerate(titles.items()):
        x, y = 10 + 445 * (i % 2), 10 + 275 * (i // 2)
        axes.add_patch(patches.Rectangle((x, y), 435, 265, fc='none', ec='#bbbbbb', lw=1))
        text(axes, x + 15, y + 22, mode, ha='left', fontsize=15, weight='bold')
        text(axes, x + 15, y + 45, words, ha='left')
        if mode == 'allreduce':
            for worker, (left, top) in enumerate([(15, 75), (290, 75), (152, 195)]):
                bounds = (x + left, y + top, 130, 54)
                box(axes, bounds, DEVICE, f'worker {worker}', 'variables, update')
            arrow(axes, (x + 145, y + 102), (x + 290, y + 102))
            arrow(axes, (x + 355, y + 129), (x + 355, y + 222), (x + 282, y + 222))
            arrow(axes, (x + 152, y + 222), (x + 80, y + 222), (x + 80, y + 129))
            text(axes, x + 217, y + 90, 'gradients', fontsize=12)
            text(axes, x + 347, y + 160, 'gradients', fontsize=12, ha='right')
            text(axes, x + 88, y + 160, 'gradients', fontsize=12, ha='left')
            continue
        notes = {
            'sync': ['chief', '', ''],
            'async': ['copy of the weights'] * 3,
            'average': ['10 steps, own weights'] * 3,
        }[mode]
        up, down = {'average': ('weights', 'average')}.get(mode, ('gradients', 'weights'))
        server = {
            'sync': 'variables\naverage_gradients\nupdate',
            'async': 'variables\nupdate per gradient',
            'average': 'weight averager',
        }[mode]
        box(axes, (x + 280, y + 72, 145, 178), CPU, 'parameter servers', server)
        for worker, note in enumerate(notes):
            top = y + 72 + 63 * worker
            box(axes, (x + 10, top, 160, 52), DEVICE, f'worker {worker}', note)
            arrow(axes, (x + 170, top + 20), (x + 280, top + 20))
            arrow(axes, (x + 280, top + 40), (x + 170, top + 40))
            text(axes, x + 225, top + 11, up, fontsize=12)
            text(axes, x + 225, top + 31, down, fontsize=12)
    return axes.figure


def first_run():
    """Draw a terminal window with the main lines of a first run."""
    with open(os.path.join(HERE, 'measurements', 'first_run.txt')) as opened:
        lines = [line.rstrip('\n') for line in opened if not line.startswith('# ')]
    axes = canvas(48 + 17 * len(lines))
    height = 46 + 17 * len(lines)
    style = patches.BoxStyle('round', pad=0, rounding_size=8)
    axes.add_patch(
        patches.FancyBboxPatch((1, 1), 898, height, boxstyle=style, fc='#1e1e1e', ec=GREY)
    )
    for i, color in enumerate((RED, YELLOW, GREEN)):
        axes.add_patch(patches.Circle((20 + 20 * i, 18), 6, color=color))
    for i, line in enumerate(lines):
        color = '#ffffff' if line.startswith(('$', '      --')) else '#c8d3dc'
        style = dict(ha='left', color=color, fontsize=11.5, family='DejaVu Sans Mono')
        text(axes, 16, 48 + 17 * i, line.replace(' ', '\u00a0'), **style)
    return axes.figure
