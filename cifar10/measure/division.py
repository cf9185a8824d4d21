"""Tables that plan towers, divided towers and both on one machine with several GPUs: an estimate on
paper."""

from typing import NamedTuple

from cifar10.data import dataset
from cifar10.hparams import CLASSIC, VARIABLE_STRATEGIES
from cifar10.parallelism import layers, layout
from cifar10.report import text_report
from cifar10.training import Job

GPUS, BATCHES = (1, 2, 4, 8), (8, 128, 1024)
# GB/s of each GPU in each direction: PCIe 3 with 8 lanes, PCIe 4 with 16, NVLink of an A100
LINKS = (8, 25, 300)
_GPU_MEMORY = 500e9  # bytes per second, for average and update on a GPU: assumed
# seconds of average and update on the CPU, and for each tower more: measured, see docs/speed.md
_CPU_UPDATE = 0.22e-3, 0.23e-3
# the weights and their moving averages are read and written in an update, besides the gradients
_PASSES = 4


class Estimate(NamedTuple):
    """What a step takes on paper."""

    # that the busiest GPU sends and receives: weights before it computes, gradients afterwards
    link_bytes: int
    compute: float  # seconds of a tower: its devices wait for each other
    update: float  # seconds of average and update where the most weights are
    examples: int  # of all towers

    def seconds(self, gigabytes):
        """Of a step, with links of so many 10^9 bytes per second; nothing overlaps."""
        return self.compute + self.link_bytes / (gigabytes * 1e9) + self.update

    def images_per_sec(self, gigabytes):
        """With such links."""
        return self.examples / self.seconds(gigabytes)


def estimate(num_gpus, devices_per_tower, strategy, batch_size, seconds_per_image):
    """The Estimate for GPUs that need so many seconds for the operations of an image."""
    job = Job(
        dataset.read(''),
        50000,
        CLASSIC._replace(batch_size=batch_size),
        ['/gpu:%d' % i for i in range(num_gpus)],
        devices_per_tower=devices_per_tower,
        variable_strategy=strategy,
    )
    placed = layout.of_step(job)
    link_bytes = max(
        sum(size for arrow, size in placed.sent.items() if gpu in arrow) for gpu in job.devices
    )
    if strategy == 'cpu':
        update = _CPU_UPDATE[0] + _CPU_UPDATE[1] * job.num_towers
    else:
        update = max(placed.held.values()) * (job.num_towers + _PASSES) / _GPU_MEMORY
    return Estimate(link_bytes, batch_size * seconds_per_image, update, job.num_towers * batch_size)


def plan(batch_size, gpu_gflops):
    """Both tables and what they assume, in Markdown; for the arguments see scaling_tables.plan."""
    seconds_per_image = layers.total(layers.step_products(1)) / (gpu_gflops * 1e9)
    found = {
        (gpus, per_tower, strategy): estimate(
            gpus, per_tower, strategy, batch_size, seconds_per_image
        )
        for gpus in GPUS
        for per_tower in (1, 2, 4)
        if per_tower <= gpus
        for strategy in VARIABLE_STRATEGIES
    }
    rows = [
        [
            str(gpus),
            '%d x %d' % (gpus // per_tower, per_tower),
            strategy,
            '%.1f' % (paper.link_bytes / 1e6),
        ]
        + ['%.0f' % paper.images_per_sec(link) for link in LINKS]
        for (gpus, per_tower, strategy), paper in found.items()
    ]
    return '\n\n'.join(
        [
            'One machine with several GPUs, an estimate on paper. Nothing overlaps, and the devices of a tower wait for each other. It '
            'assumes:\n- GPUs as above, each with a link of its own, also to the other GPUs\n- average and update: %.2f ms on the CPU and '
            '%.2f for each tower, or %.0f GB/s on a GPU'
            % (_CPU_UPDATE[0] * 1e3, _CPU_UPDATE[1] * 1e3, _GPU_MEMORY / 1e9),
            'Images per second with %d per tower (towers x devices of each; MB that the busiest GPU sends and receives in a step):'
            % batch_size,
            text_report.markdown_table(
                ['GPUs', 'towers', 'variables', 'MB'] + ['%d GB/s' % link for link in LINKS], rows
            ),
            'One tower on two GPUs over two towers, both with their best variables: the ratio of images per second:',
            text_report.markdown_table(
                ['examples per tower'] + ['%d GB/s' % link for link in LINKS],
                list(_ratios(seconds_per_image)),
            ),
        ]
    )


def _ratios(seconds_per_image):
    for batch_size in BATCHES:
        divided, towers = [
            [
                estimate(2, per_tower, strategy, batch_size, seconds_per_image)
                for strategy in VARIABLE_STRATEGIES
            ]
            for per_tower in (2, 1)
        ]
        yield [str(batch_size)] + [
            '%.2f'
            % (
                max(paper.images_per_sec(link) for paper in divided)
                / max(paper.images_per_sec(link) for paper in towers)
            )
            for link in LINKS
        ]
