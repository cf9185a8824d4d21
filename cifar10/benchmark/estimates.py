"""Tables of `cifar10_benchmark.py estimate`: clusters and multi-GPU machines, by formulas."""

import itertools

import numpy as np

from cifar10 import training
from cifar10.benchmark import cluster_estimate, measurements
from cifar10.benchmark.cluster_estimate import ALLREDUCE, ASYNC, AVERAGE, AVERAGE_PERIOD, SYNC
from cifar10.config import CLASSIC, VARIABLE_STRATEGIES
from cifar10.data import dataset
from cifar10.report import text_report

NUM_WORKERS, NETWORK_GIGABITS_PER_SEC = (8, 32, 128), (10, 25, 100)
CPU_GFLOPS = 316  # GFLOP/s of a training step on two cores: see docs/results.md
NUM_GPUS, BATCH_SIZES = (1, 2, 4, 8), (8, 128, 1024)
# GB/s per GPU and direction: PCIe 3 with 8 lanes, PCIe 4 with 16 lanes, NVLink of an A100
LINK_GIGABYTES_PER_SEC = (8, 25, 300)
_GPU_MEMORY_BANDWIDTH = 500e9  # bytes per second, assumed
# seconds of average and update on the CPU: constant part, part per tower; see docs/results.md
_CPU_UPDATE_SECONDS = 0.22e-3, 0.23e-3
_PASSES = 4  # an update reads and writes the weights and their moving averages


def cluster_tables(batch_size, gpu_gflops):
    """Return Markdown tables for clusters of machines with one GPU each, and the assumptions.

    Args:
      batch_size: examples per worker per step.
      gpu_gflops: GFLOP/s of a GPU in this network.
    """
    flops = measurements.step_flops(1)
    gpu_images_per_sec = gpu_gflops * 1e9 / flops
    one, two = cluster_estimate.server_bytes(1), cluster_estimate.server_bytes(2)
    configurations = {  # mode, bytes per parameter server, batch size
        'sync, 1 server': (SYNC, one, batch_size),
        'sync, 2 servers': (SYNC, two, batch_size),
        'sync, 8 servers, partitioned variables': (SYNC, [one[0] / 8] * 8, batch_size),
        'async, 1 server': (ASYNC, one, batch_size),
        f'average every {AVERAGE_PERIOD} steps': (AVERAGE, one, batch_size),
        'allreduce': (ALLREDUCE, one, batch_size),
        f'sync, batch {8 * batch_size}': (SYNC, one, 8 * batch_size),
        f'allreduce, batch {8 * batch_size}': (ALLREDUCE, one, 8 * batch_size),
    }

    sent = []
    for num_workers in NUM_WORKERS:
        sent.append([num_workers])
        for mode, bytes_per_server, _ in configurations.values():
            worker, server = cluster_estimate.traffic(mode, num_workers, bytes_per_server)
            sent[-1].append(f'{worker / 1e6:.1f}, {server / 1e6:.1f}')
    return '\n\n'.join(
        [
            _assumptions(batch_size, gpu_gflops, gpu_images_per_sec),
            f'Images per second (ratio to one GPU). The batch per worker is {batch_size}, unless the column names another:',
            _rates(configurations, gpu_images_per_sec, gpu_images_per_sec),
            f'The same for machines without a GPU ({CPU_GFLOPS} GFLOP/s):',
            _rates(configurations, CPU_GFLOPS * 1e9 / flops, gpu_images_per_sec),
            'MB sent per update: by a worker, by the busiest server. Each receives as much. async: an update of one worker:',
            text_report.markdown_table(['workers'] + list(configurations), sent),
        ]
    )


def _assumptions(batch_size, gpu_gflops, gpu_images_per_sec):
    (size,) = cluster_estimate.server_bytes(1)
    compute_seconds, copy_seconds_per_byte = cluster_estimate.fit(size)
    checks = []
    for mode, times in cluster_estimate.MEASURED_MS.items():
        for num_workers, ms in zip((2, 4), times):
            seconds = cluster_estimate.shared_cores_seconds(
                mode, num_workers, size, compute_seconds, copy_seconds_per_byte
            )
            checks.append([mode, num_workers, ms, f'{seconds * 1e3 / ms:.2f}'])
    text = (
        'Closed formulas, not a measurement. Assumptions:\n'
        f'- GPU: {gpu_gflops} GFLOP/s in this network, {gpu_images_per_sec:.0f} images/sec, '
        f'{batch_size / gpu_images_per_sec * 1e3:.2f} ms per batch of {batch_size}, '
        f'standard deviation {100 * cluster_estimate.JITTER:.0f} %\n'
        f'- messages: {cluster_estimate.CORES_PER_MACHINE} cores per machine, latency {cluster_estimate.LATENCY * 1e6:.0f} '
        'microseconds\n'
        f'- copies: {copy_seconds_per_byte * 1e9:.2f} ms per MB on a core of the sender, and as much on a core of the receiver\n\n'
        'The formulas are fitted to local and sync with 2 workers. The table compares them with measurements '
        f'on {cluster_estimate.MEASURED_CORES} cores, with batches of 64:\n\n'
    )
    header = ['mode', 'workers', 'measured ms per update', 'formula / measured']
    return text + text_report.markdown_table(header, checks)


def _rates(configurations, images_per_sec, gpu_images_per_sec):
    """Return a table of the images per second of clusters and the ratios to one GPU."""
    rows = []
    for num_workers, gigabits_per_sec in itertools.product(NUM_WORKERS, NETWORK_GIGABITS_PER_SEC):
        rows.append([num_workers, gigabits_per_sec])
        for mode, bytes_per_server, batch in configurations.values():
            seconds = cluster_estimate.seconds_per_batch(
                mode, num_workers, bytes_per_server, gigabits_per_sec, batch / images_per_sec
            )
            rate = num_workers * batch / seconds
            rows[-1].append(f'{rate:.0f} ({rate / gpu_images_per_sec:.2g})')
    return text_report.markdown_table(['workers', 'Gb/s'] + list(configurations), rows)


def multi_gpu_estimate(
    num_gpus, devices_per_tower, variable_strategy, batch_size, seconds_per_image
):
    """Estimate a step on several GPUs from the seconds per image of one GPU.

    Returns:
      The bytes that the busiest GPU sends and receives per step, and an array of the images per
      second with each of LINK_GIGABYTES_PER_SEC.
    """
    job = training.Job(
        dataset.read(''),
        CLASSIC._replace(batch_size=batch_size),
        [f'/gpu:{i}' for i in range(num_gpus)],
        devices_per_tower=devices_per_tower,
        variable_strategy=variable_strategy,
    )
    stats = training.placement_stats(job)
    link_bytes = max(
        sum(size for arrow, size in stats.transfer_bytes.items() if gpu in arrow)
        for gpu in job.devices
    )
    if variable_strategy == 'cpu':
        update = _CPU_UPDATE_SECONDS[0] + _CPU_UPDATE_SECONDS[1] * job.num_towers
    else:  # the device with the most weights is the slowest
        update = (
            max(stats.variable_bytes.values()) * (job.num_towers + _PASSES) / _GPU_MEMORY_BANDWIDTH
        )
    seconds = (
        batch_size * seconds_per_image
        + link_bytes / (np.array(LINK_GIGABYTES_PER_SEC) * 1e9)
        + update
    )
    return link_bytes, job.num_towers * batch_size / seconds


def multi_gpu_tables(batch_size, gpu_gflops):
    """Return Markdown tables for one machine with several GPUs; see `cluster_tables`."""
    seconds_per_image = measurements.step_flops(1) / (gpu_gflops * 1e9)
    rows, ratios = [], []
    for gpus, devices_per_tower, variable_strategy in itertools.product(
        NUM_GPUS, (1, 2, 4), VARIABLE_STRATEGIES
    ):
        if devices_per_tower <= gpus:
            link_bytes, rates = multi_gpu_estimate(
                gpus, devices_per_tower, variable_strategy, batch_size, seconds_per_image
            )
            towers = f'{gpus // devices_per_tower} x {devices_per_tower}'
            row = [gpus, towers, variable_strategy, f'{link_bytes / 1e6:.1f}']
            rows.append(row + [f'{rate:.0f}' for rate in rates])
    for batch in BATCH_SIZES:
        towers, divided = [
            np.max(
                [
                    multi_gpu_estimate(2, n, x, batch, seconds_per_image)[1]
                    for x in VARIABLE_STRATEGIES
                ],
                0,
            )
            for n in (1, 2)
        ]
        ratios.append([batch] + [f'{ratio:.2f}' for ratio in divided / towers])
    speeds = [f'{link} GB/s' for link in LINK_GIGABYTES_PER_SEC]
    return '\n\n'.join(
        [
            'One machine with several GPUs. Assumptions:\n'
            '- computation and communication do not overlap; the devices of a tower work in turn\n'
            '- GPUs as above, each with its own link to the CPU and to the other GPUs\n'
            f'- average and update: {_CPU_UPDATE_SECONDS[0] * 1e3:.2f} ms plus {_CPU_UPDATE_SECONDS[1] * 1e3:.2f} ms per tower '
            f'on the CPU; {_GPU_MEMORY_BANDWIDTH / 1e9:.0f} GB/s on a GPU',
            f'Images per second with a batch of {batch_size} per tower. MB: sent and received by the busiest GPU per step:',
            text_report.markdown_table(
                ['GPUs', 'towers x devices per tower', 'variables', 'MB'] + speeds, rows
            ),
            'Images per second of one tower on two GPUs / of two towers, each with its best --variable_strategy:',
            text_report.markdown_table(['examples per tower'] + speeds, ratios),
        ]
    )
