"""Tables that plan training on many machines, with one GPU each."""

from cifar10.measure import scaling, traffic
from cifar10.measure.scaling import Costs
from cifar10.measure.traffic import ALLREDUCE, ASYNC, AVERAGE, SYNC, Machines, Scheme
from cifar10.parallelism import layers
from cifar10.report import text_report

WORKERS, GIGABITS = (8, 32, 128), (10, 25, 100)
LARGER = (1, 4, 8)  # batches, as multiples of the given one
# `copy` is fitted to measured updates of 2 workers and predicts the others, see
# docs/distributed.md; the rest matters little there.
COSTS = Costs(compute=0, jitter=0.03, message=1e-4, copy=1.45e-9, add=2.5e-10, apply=5e-10)

_LAYOUTS = {  # heading: mode and parameter servers
    'sync, 1 server': (SYNC, dict(num_ps=1)),
    'sync, 2 servers': (SYNC, dict(num_ps=2)),
    'sync, 8 servers, variables cut': (SYNC, dict(num_ps=8, sharded=True)),
    'async, 1 server': (ASYNC, dict(num_ps=1)),
    'average every 10 steps': (AVERAGE, dict(num_ps=1)),
    'allreduce': (ALLREDUCE, dict()),
}


def plan(batch_size, gpu_gflops):
    """All tables and what they assume, in Markdown.

    Args:
      batch_size: examples per worker per step.
      gpu_gflops: 10^9 floating-point operations per second of a GPU in this network.
    """
    seconds_per_image = layers.total(layers.step_products(1)) / (gpu_gflops * 1e9)
    variables = traffic.variable_bytes()

    def images_per_sec(layout, batch, num_workers, gigabits):
        mode, servers = _LAYOUTS[layout]
        return scaling.speed(
            Scheme(mode, variables, batch),
            Machines(num_workers, gigabits=gigabits, **servers),
            COSTS._replace(compute=batch * seconds_per_image),
        ).images_per_sec

    def rows(layouts, batches):
        for num_workers in WORKERS:
            for gigabits in GIGABITS:
                rates = [
                    images_per_sec(layout, batch, num_workers, gigabits)
                    for layout in layouts
                    for batch in batches
                ]
                yield [str(num_workers), str(gigabits)] + [
                    '%.0f (%.2g %%)' % (rate, 100 * rate * seconds_per_image / num_workers)
                    for rate in rates
                ]

    header, batches = ['workers', 'Gb/s'], [times * batch_size for times in LARGER]
    one_server, ring = 'sync, 1 server', 'allreduce'
    return '\n\n'.join(
        [
            _assumptions(batch_size, gpu_gflops, seconds_per_image),
            'Images per second with %d per worker (share of what as many GPUs compute alone):'
            % batch_size,
            text_report.markdown_table(header + list(_LAYOUTS), list(rows(_LAYOUTS, [batch_size]))),
            'The same with larger batches:',
            text_report.markdown_table(
                header
                + [
                    '%s, batch %d' % (name, batch)
                    for name in (one_server, ring)
                    for batch in batches
                ],
                list(rows([one_server, ring], batches)),
            ),
            'Workers for which the card of one server is busy as long as a GPU computes:',
            text_report.markdown_table(
                ['Gb/s'] + ['batch %d' % batch for batch in batches],
                [
                    [str(gigabits)]
                    + [
                        '%.2g' % card_limit(variables, gigabits, batch * seconds_per_image)
                        for batch in batches
                    ]
                    for gigabits in GIGABITS
                ],
            ),
            'MB of an update on paper that a worker sends, and the busiest server (each receives as many; async: for one worker):',
            text_report.markdown_table(
                ['workers'] + list(_LAYOUTS),
                [
                    [str(num_workers)]
                    + [
                        '%.1f, %.1f'
                        % _megabytes(Scheme(mode, variables), Machines(num_workers, **servers))
                        for mode, servers in _LAYOUTS.values()
                    ]
                    for num_workers in WORKERS
                ],
            ),
        ]
    )


def card_limit(variables, gigabits, compute):
    """The workers whose weights and gradients keep the card of a single parameter server busy for
    `compute` seconds."""
    return compute * gigabits * 1e9 / 8 / (2 * sum(variables))


def _megabytes(scheme, machines):
    bytes_sent = traffic.on_paper(scheme, machines)
    return bytes_sent.worker / 1e6, bytes_sent.server / 1e6


def _assumptions(batch_size, gpu_gflops, seconds_per_image):
    return '\n'.join(
        [
            'A simulation, not a measurement. It assumes:',
            '- a GPU that computes %d GFLOP/s in this network: alone %.0f images/sec, or %.2f ms for %d, give or take %.0f %% at random'
            % (
                gpu_gflops,
                1 / seconds_per_image,
                batch_size * seconds_per_image * 1e3,
                batch_size,
                100 * COSTS.jitter,
            ),
            '- machines with %d cores; messages that arrive after %.0f microseconds and what their bytes take'
            % (Machines._field_defaults['cores'], Machines._field_defaults['latency'] * 1e6),
            '- on a core: %.2f ms per MB of a message at each end, as fitted to measured updates; besides, assumed: %.0f microseconds per '
            'message, %.2f ms per MB to add gradients, %.2f to update'
            % (COSTS.copy * 1e9, COSTS.message * 1e6, COSTS.add * 1e9, COSTS.apply * 1e9),
        ]
    )
