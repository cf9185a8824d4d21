"""Diagrams of the documentation: boxes, arrows and lines of text. See draw.py."""

import os

from matplotlib import figure, patches
from matplotlib.text import Text

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 900  # of each figure, in pixels; font sizes are in pixels too

GREY = '#555555'

# The meanings of the colors in all diagrams.
DISK, INPUT, NETWORK, PYTHON = '#fdf1d8', '#e3edf9', '#dcefe2', '#f6e3ee'
LEGEND = [
    (DISK, 'files'),
    (INPUT, 'graph: input, on the CPU'),
    (NETWORK, 'graph: network and update'),
    (PYTHON, 'Python: threads, other programs'),
]


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


def legend(axes, y, colors):
    """Write the meanings of some colors in one line."""
    x = 15
    for color, label in LEGEND:
        if color in colors:
            box(axes, (x, y, 16, 16), color, '')
            text(axes, x + 24, y + 8, label, fontsize=12, ha='left')
            x += 56 + 6.4 * len(label)


def data_flow():
    """Draw the data flow of training, from the files to TensorBoard."""
    axes = canvas(500)
    box(axes, (15, 20, 120, 60), DISK, 'files', 'data_batch_*.bin')
    box(axes, (175, 20, 140, 60), INPUT, 'shuffle queue', 'examples')
    box(axes, (355, 20, 140, 60), INPUT, 'distortions', 'crop, flip, contrast')
    box(axes, (535, 20, 140, 60), INPUT, 'prefetch queue', 'batches')
    box(axes, (345, 104, 160, 44), PYTHON, 'queue runners', 'threads: fill the queues')
    arrow(axes, (345, 126), (245, 126), (245, 80))
    arrow(axes, (505, 126), (605, 126), (605, 80))
    for x in (135, 315, 495):
        arrow(axes, (x, 50), (x + 40, 50))
    axes.add_patch(patches.Rectangle((715, 4), 180, 162, fc='none', ec=GREY, lw=1, ls='--'))
    for i, y in enumerate((10, 62, 114)):
        box(axes, (725, y, 160, 44), NETWORK, f'tower_{i} on GPU {i}' if i < 2 else 'tower_2 …')
        arrow(axes, (675, 42 + 8 * i), (725, y + 22))
    text(axes, 815, 186, 'gradients', fontsize=11.5, ha='left')
    arrow(axes, (805, 166), (805, 235))
    box(axes, (725, 235, 160, 60), NETWORK, 'average_gradients', 'waits for all towers')
    arrow(axes, (725, 265), (675, 265))
    box(axes, (535, 235, 140, 60), NETWORK, 'update', 'apply_gradients')
    arrow(axes, (605, 235), (605, 205))
    box(axes, (535, 155, 140, 50), NETWORK, 'variables', 'shared by all towers')
    arrow(axes, (675, 160), (715, 160))
    text(axes, 682, 176, 'weights to all', fontsize=11.5, ha='left')
    arrow(axes, (535, 180), (245, 180), (245, 235))
    arrow(axes, (535, 265), (495, 265))
    box(axes, (355, 235, 140, 60), NETWORK, 'moving averages', 'of the variables')
    arrow(axes, (355, 265), (315, 265))
    box(axes, (175, 235, 140, 60), PYTHON, 'saver', 'in a hook')
    arrow(axes, (175, 265), (135, 265))
    box(axes, (15, 235, 120, 60), DISK, 'checkpoints', 'model.ckpt-1000')
    arrow(axes, (75, 295), (75, 375), (175, 375))
    box(axes, (175, 345, 140, 60), PYTHON, 'cifar10_eval.py', 'moving averages')
    arrow(axes, (315, 375), (355, 375))
    box(axes, (355, 345, 140, 60), DISK, 'event files')
    arrow(axes, (805, 295), (805, 375), (675, 375))
    text(axes, 815, 330, 'gradients', fontsize=11.5, ha='left')
    text(axes, 797, 330, 'from the towers: images, losses', fontsize=11.5, ha='right')
    box(axes, (535, 345, 140, 60), PYTHON, 'summary writer', 'in a hook')
    arrow(axes, (535, 375), (495, 375))
    arrow(axes, (425, 405), (425, 435))
    box(axes, (355, 435, 140, 32), PYTHON, 'TensorBoard')
    legend(axes, 476, [DISK, INPUT, NETWORK, PYTHON])
    return axes.figure


CHINESE = {  # the words of data_flow
    'files': '文件',
    'shuffle queue': '乱序队列',
    'examples': '单张图片',
    'distortions': '随机变换',
    'crop, flip, contrast': '裁剪、翻转、对比度',
    'prefetch queue': '预取队列',
    'batches': '整批图片',
    'queue runners': 'QueueRunner',
    'threads: fill the queues': '线程：填充队列',
    'tower_0 on GPU 0': '塔 tower_0：GPU 0',
    'tower_1 on GPU 1': '塔 tower_1：GPU 1',
    'tower_2 …': '塔 tower_2 ……',
    'gradients': '梯度',
    'waits for all towers': '等所有的塔',
    'update': '更新',
    'variables': '变量',
    'shared by all towers': '所有的塔共享',
    'weights to all': '权重送到各塔',
    'moving averages': '滑动平均',
    'of the variables': '各变量的平均值',
    'saver': 'Saver（保存）',
    'in a hook': '在钩子里',
    'checkpoints': '检查点',
    'event files': '事件文件',
    'from the towers: images, losses': '来自各塔：图片、损失',
    'summary writer': '写汇总',
    'graph: input, on the CPU': '图：输入（CPU）',
    'graph: network and update': '图：网络和更新',
    'Python: threads, other programs': 'Python：线程、其他程序',
}


def data_flow_zh():
    """Draw data_flow with Chinese words."""
    drawing = data_flow()
    for label in drawing.findobj(Text):
        label.set_text(CHINESE.get(label.get_text(), label.get_text()))
    return drawing


def network():
    """Draw the layers with the shapes of their outputs and their numbers of parameters."""
    axes = canvas(300)
    rows = [
        [
            ('images', '24 x 24 x 3', '', INPUT),
            ('conv1', '24 x 24 x 64', '5 x 5 x 3 x 64 + 64\n= 4,864', NETWORK),
            ('pool1', '12 x 12 x 64', '3 x 3, stride 2', NETWORK),
            ('norm1', '12 x 12 x 64', '', NETWORK),
            ('conv2', '12 x 12 x 64', '5 x 5 x 64 x 64 + 64\n= 102,464', NETWORK),
            ('norm2', '12 x 12 x 64', '', NETWORK),
        ],
        [
            ('pool2', '6 x 6 x 64', '3 x 3, stride 2', NETWORK),
            ('flat', '2304', '', NETWORK),
            ('local3', '384', '2304 x 384 + 384\n= 885,120', NETWORK),
            ('local4', '192', '384 x 192 + 192\n= 73,920', NETWORK),
            ('softmax_linear', '10 logits', '192 x 10 + 10\n= 1,930', NETWORK),
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
    legend(axes, 274, [INPUT, NETWORK])
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
        box(axes, (25, y, 165, 36), PYTHON, call)
        box(axes, (225, y, 155, 36), NETWORK if i else INPUT, operations)
        arrow(axes, (190, y + 18), (225, y + 18))
        if i:
            arrow(axes, (302, y - 12), (302, y))
    text(axes, 107, 308, 'Python calls add', fontsize=12)
    text(axes, 302, 308, 'operations to the graph', fontsize=12)
    box(axes, (430, 75, 170, 60), PYTHON, 'queue runners', 'session.run(enqueue)')
    box(axes, (430, 185, 170, 60), PYTHON, 'training loop', 'session.run(train_op)')
    axes.add_patch(patches.Rectangle((660, 44), 225, 232, fc='none', ec=GREY, lw=1, ls='--'))
    box(axes, (680, 60, 195, 90), INPUT, 'queues', 'images, batches')
    box(
        axes,
        (680, 170, 195, 90),
        NETWORK,
        'network, update',
        'new values of the\nvariables in each run',
    )
    arrow(axes, (600, 105), (680, 105))
    arrow(axes, (600, 215), (680, 215))
    arrow(axes, (777, 150), (777, 170))
    text(axes, 515, 285, 'threads of Python', fontsize=12)
    text(axes, 772, 297, 'session', fontsize=15)
    return axes.figure


def partition():
    """Draw the parts of a small graph on two devices, with their send and receive nodes."""
    with open(os.path.join(HERE, 'measurements', 'partition.txt')) as opened:
        rows = [line.split() for line in opened if not line.startswith('# ')]
    places = {  # of the nodes, from the left: in the order of the data
        'w': (25, 60),
        'w/read': (165, 60),
        'w/read/_0': (305, 60),
        'y/_3': (305, 150),
        'update': (165, 150),
        'w/read/_1': (480, 60),
        'y': (620, 60),
        'y/y': (760, 60),
        'y/_2': (480, 150),
    }
    axes = canvas(230)
    for x, width, device in [(10, 425, 'CPU:0'), (465, 425, 'CPU:1')]:
        axes.add_patch(patches.Rectangle((x, 10), width, 210, fc='none', ec=GREY, lw=1, ls='--'))
        text(axes, x + 15, 32, device, ha='left', fontsize=15, weight='bold')
    shown = [row for row in rows if row[2] in places]
    for _, operation, name, *_ in shown:
        box(axes, (*places[name], 115, 50), NETWORK, operation, name)
    edges = [(source, name) for _, _, name, *inputs in shown for source in inputs]
    for source, target in edges + [('w/read/_0', 'w/read/_1'), ('y/_2', 'y/_3')]:
        (x, y), (to_x, _) = places[source], places[target]
        if (source, target) == ('w', 'update'):
            arrow(axes, (82, 110), (82, 175), (165, 175))
        elif (source, target) == ('y', 'y/_2'):
            arrow(axes, (677, 110), (677, 175), (595, 175))
        else:
            forward = x < to_x
            arrow(axes, (x + 115 * forward, y + 25), (to_x + 115 * (not forward), y + 25))
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
                box(axes, bounds, NETWORK, f'worker {worker}', 'variables, update')
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
        box(axes, (x + 266, y + 72, 160, 178), NETWORK, 'parameter servers', server)
        for worker, note in enumerate(notes):
            top = y + 72 + 63 * worker
            box(axes, (x + 10, top, 155, 52), NETWORK, f'worker {worker}', note)
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
    for i, color in enumerate(('#d55e00', '#f0e442', '#009e73')):  # the buttons of a window
        axes.add_patch(patches.Circle((20 + 20 * i, 18), 6, color=color))
    for i, line in enumerate(lines):
        color = '#ffffff' if line.startswith(('$', '      --')) else '#c8d3dc'
        style = dict(ha='left', color=color, fontsize=11.5, family='DejaVu Sans Mono')
        text(axes, 16, 48 + 17 * i, line.replace(' ', '\u00a0'), **style)
    return axes.figure
