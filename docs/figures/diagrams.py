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
    axes.add_patch(patches.Rectangle((715, 4), 180, 162, fc='none', ec=GREY, lw=1, ls='--'))
    for i, y in enumerate((10, 62, 114)):
        box(axes, (725, y, 160, 44), DEVICE, f'tower_{i} on GPU {i}' if i < 2 else 'tower_2 …')
        arrow(axes, (675, 50 + 8 * i), (725, y + 22))
    text(axes, 815, 191, 'gradients of all', fontsize=11.5, ha='left')
    arrow(axes, (805, 166), (805, 215))
    box(axes, (725, 215, 160, 60), DEVICE, 'average_gradients', 'waits for all towers')
    arrow(axes, (725, 245), (675, 245))
    box(axes, (535, 215, 140, 60), DEVICE, 'update', 'apply_gradients')
    arrow(axes, (605, 215), (605, 180))
    box(axes, (535, 130, 140, 50), DEVICE, 'variables', 'shared by all towers')
    arrow(axes, (675, 158), (715, 158))
    text(axes, 680, 176, 'weights to all', fontsize=11.5, ha='left')
    arrow(axes, (535, 155), (245, 155), (245, 215))
    arrow(axes, (535, 245), (495, 245))
    box(axes, (355, 215, 140, 60), DEVICE, 'moving averages', 'of the variables')
    arrow(axes, (355, 245), (315, 245))
    box(axes, (175, 215, 140, 60), CPU, 'saver', 'variables, averages')
    arrow(axes, (175, 245), (135, 245))
    box(axes, (15, 215, 120, 60), DISK, 'checkpoints', 'model.ckpt-1000')
    arrow(axes, (75, 275), (75, 355), (175, 355))
    box(
        axes,
        (175, 325, 140, 60),
        PROCESS,
        'evaluation',
        'cifar10_eval.py;\nat the end, the trainer',
    )
    arrow(axes, (315, 355), (355, 355))
    box(axes, (355, 325, 140, 60), DISK, 'event files')
    arrow(axes, (805, 275), (805, 355), (675, 355))
    text(axes, 815, 320, 'summaries', fontsize=11.5, ha='left')
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


def network():
    """Draw the layers with the shapes of their outputs and their numbers of parameters."""
    axes = canvas(300)
    rows = [
        [
            ('images', '24 x 24 x 3', '', DISK),
            ('conv1', '24 x 24 x 64', '5 x 5 x 3 x 64 + 64\n= 4,864', DEVICE),
            ('pool1', '12 x 12 x 64', '3 x 3, stride 2', CPU),
            ('norm1', '12 x 12 x 64', '', CPU),
            ('conv2', '12 x 12 x 64', '5 x 5 x 64 x 64 + 64\n= 102,464', DEVICE),
            ('norm2', '12 x 12 x 64', '', CPU),
        ],
        [
            ('pool2', '6 x 6 x 64', '3 x 3, stride 2', CPU),
            ('reshape', '2304', '', CPU),
            ('local3', '384', '2304 x 384 + 384\n= 885,120', DEVICE),
            ('local4', '192', '384 x 192 + 192\n= 73,920', DEVICE),
            ('softmax_linear', '10 logits', '192 x 10 + 10\n= 1,930', DEVICE),
        ],
    ]
    for row, layers in enumerate(rows):
        for i, (name, shape, note, color) in enumerate(layers):
            x, y = 20 + 148 * i, 20 + 150 * row
            box(axes, (x, y, 120, 56), color, name, shape)
            for j, line in enumerate(note.split('\n')):
                text(axes, x + 60, y + 72 + 17 * j, line, fontsize=12)
            if i:
                arrow(axes, (x - 28, y + 28), (x, y + 28))
    arrow(axes, (880, 48), (890, 48), (890, 140), (8, 140), (8, 198), (20, 198))
    axes.plot([880, 890], [48, 48], color=GREY, lw=1.5)
    for x, color, label in [
        (20, DISK, 'input'),
        (120, DEVICE, 'with weights and biases: 1,068,298 parameters'),
        (520, CPU, 'without variables'),
    ]:
        box(axes, (x, 274, 16, 16), color, '')
        text(axes, x + 26, 282, label, fontsize=12, ha='left')
    return axes.figure


def graph_and_session():
    """Draw the two phases of a program in graph mode."""
    axes = canvas(330)
    for x, width, title in [(10, 385, '1. Build, once'), (415, 475, '2. Run, thousands of times')]:
        axes.add_patch(patches.Rectangle((x, 10), width, 310, fc='none', ec='#bbbbbb', lw=1))
        text(axes, x + 15, 34, title, ha='left', fontsize=15, weight='bold')
    calls = [
        ('distorted_inputs()', 'queue, crop, …'),
        ('inference(images)', 'Conv2D, MatMul, …'),
        ('loss(logits, labels)', 'CrossEntropy, …'),
        ('compute_gradients', 'Conv2DBackprop…'),
        ('apply_gradients', 'ResourceApply…'),
    ]
    for i, (call, operations) in enumerate(calls):
        y = 60 + 48 * i
        box(axes, (25, y, 165, 36), PROCESS, call)
        box(axes, (225, y, 155, 36), CPU, operations)
        arrow(axes, (190, y + 18), (225, y + 18))
        if i:
            arrow(axes, (302, y - 12), (302, y))
    text(axes, 107, 308, 'Python calls add', fontsize=12)
    text(axes, 302, 308, 'operations to the graph', fontsize=12)
    box(axes, (430, 75, 170, 60), PROCESS, 'queue runners', 'session.run(enqueue)')
    box(axes, (430, 185, 170, 60), PROCESS, 'training loop', 'session.run(train_op)')
    axes.add_patch(patches.Rectangle((660, 44), 225, 232, fc='none', ec=GREY, lw=1, ls='--'))
    box(axes, (680, 60, 195, 90), CPU, 'queues', 'images, batches')
    box(
        axes,
        (680, 170, 195, 90),
        DEVICE,
        'network, update',
        'new values of the\nvariables in each run',
    )
    arrow(axes, (600, 105), (680, 105))
    arrow(axes, (600, 215), (680, 215))
    arrow(axes, (777, 150), (777, 170))
    text(axes, 515, 285, 'threads of Python', fontsize=12)
    text(axes, 772, 297, 'session', fontsize=15)
    return axes.figure


def distributed_modes():
    """Draw the four modes of distributed training."""
    axes = canvas(560)
    titles = {
        'allreduce': 'all workers make the same update',
        'sync': 'one update from the average of all gradients',
        'async': 'one update per gradient, without waiting',
        'average': 'every 10 steps: the average of all own variables',
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
            'sync': ['chief: starts the update', '', ''],
            'async': ['', '', ''],
            'average': ['chief, own variables', 'own variables', 'own variables'],
        }[mode]
        up, down = {
            'sync': ('gradients', 'token, weights'),
            'async': ('gradients', 'weights'),
            'average': ('weights', 'token, average'),
        }[mode]
        server = {
            'sync': 'accumulators: average\nvariables: update\nqueue: tokens',
            'async': 'variables:\nupdate per gradient',
            'average': 'weights: differences\naccumulators: average\nshared variables\nqueue: tokens',
        }[mode]
        box(axes, (x + 266, y + 72, 160, 178), CPU, 'parameter servers', server)
        for worker, note in enumerate(notes):
            top = y + 72 + 63 * worker
            box(axes, (x + 10, top, 155, 52), DEVICE, f'worker {worker}', note)
            arrow(axes, (x + 165, top + 20), (x + 266, top + 20))
            arrow(axes, (x + 266, top + 40), (x + 165, top + 40))
            text(axes, x + 215, top + 11, up, fontsize=12)
            text(axes, x + 215, top + 31, down, fontsize=12)
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
