"""Trains and evaluates the same network in PyTorch, for the comparison in results.md.

python docs/pytorch_comparison.py DIRECTORY [--compile] [--bfloat16]

The directory has the binary files of CIFAR-10. --compile: use torch.compile. --bfloat16: compute
convolutions and matrix products in bfloat16.
"""

import argparse
import glob
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

BATCH_SIZE, NUM_STEPS, NUM_MEASURED_STEPS = 128, 500, 300


def read(pattern):
    """Return the images, uint8 [n, 32, 32, 3], and labels of the matching files."""
    records = np.concatenate(
        [np.fromfile(path, np.uint8).reshape(-1, 3073) for path in sorted(glob.glob(pattern))]
    )
    images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return torch.from_numpy(images), torch.from_numpy(records[:, 0].astype(np.int64))


def standardized(images):
    """Return float images [n, h, w, 3] with mean 0 and variance 1, as [n, 3, h, w]."""
    deviation, mean = torch.std_mean(images, (1, 2, 3), correction=0, keepdim=True)
    return ((images - mean) / deviation.clamp(min=images[0].numel() ** -0.5)).permute(0, 3, 1, 2)


def distorted(images):
    """Distort a batch of images as in the TensorFlow tutorial."""
    size = [len(images), 1, 1, 1]
    rows = torch.randint(9, size[:2]) + torch.arange(24)
    columns = torch.randint(9, size[:2]) + torch.arange(24)
    columns = torch.where(torch.rand(size[:2]) < 0.5, columns.flip(1), columns)
    images = images[torch.arange(size[0])[:, None, None], rows[:, :, None], columns[:, None]]
    images = images.float() + torch.empty(size).uniform_(-63, 63)
    mean = images.mean((1, 2), keepdim=True)
    return standardized((images - mean) * torch.empty(size).uniform_(0.2, 1.8) + mean)


class Normalization(nn.Module):
    """Local response normalization, faster than nn.LocalResponseNorm(9, 0.001, 0.75, 1)."""

    def __init__(self):
        super().__init__()
        index = torch.arange(64)
        self.register_buffer('band', ((index[:, None] - index).abs() <= 4) * (0.001 / 9))
        self.register_buffer('bias', torch.ones(64))

    def forward(self, x):
        """Return x (1 + 0.001 / 9 * the sum of the squares of 9 channels)^-0.75."""
        squares = (x * x).permute(0, 2, 3, 1)  # channels last, without a copy
        root = functional.linear(squares, self.band, self.bias).rsqrt().permute(0, 3, 1, 2)
        return x * (root * root.sqrt())


def pool():
    """Return an overlapping max pooling layer, padded as in TensorFlow: at the end only."""
    return nn.MaxPool2d(3, 2, ceil_mode=True)


def initialized(layer, stddev, bias):
    """Return the layer with truncated normal weights and constant biases."""
    nn.init.trunc_normal_(layer.weight, std=stddev, a=-2 * stddev, b=2 * stddev)
    nn.init.constant_(layer.bias, bias)
    return layer


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument('directory')
parser.add_argument('--compile', action='store_true')
parser.add_argument('--bfloat16', action='store_true')
args = parser.parse_args()

model = nn.Sequential(
    initialized(nn.Conv2d(3, 64, 5, padding=2), 0.05, 0.0),
    nn.ReLU(),
    pool(),
    Normalization(),
    initialized(nn.Conv2d(64, 64, 5, padding=2), 0.05, 0.1),
    nn.ReLU(),
    Normalization(),
    pool(),
    nn.Flatten(),
    initialized(nn.Linear(6 * 6 * 64, 384), 0.04, 0.1),
    nn.ReLU(),
    initialized(nn.Linear(384, 192), 0.04, 0.1),
    nn.ReLU(),
    initialized(nn.Linear(192, 10), 1 / 192, 0.0),
).to(memory_format=torch.channels_last)
# SGD adds weight_decay * weights to the gradient, that of 0.004 * l2_loss in TensorFlow.
decayed = [model[9].weight, model[11].weight]
others = [p for p in model.parameters() if all(p is not q for q in decayed)]
optimizer = torch.optim.SGD([{'params': decayed, 'weight_decay': 0.004}, {'params': others}], 0.1)
images, labels = read(os.path.join(args.directory, 'data_batch_*.bin'))
test_images, test_labels = read(os.path.join(args.directory, 'test_batch.bin'))


def loss(images, labels):
    """Return the mean cross entropy."""
    with torch.autocast('cpu', torch.bfloat16, enabled=args.bfloat16):
        logits = model(images)
    return functional.cross_entropy(logits.float(), labels)


if args.compile:
    distorted, loss = torch.compile(distorted), torch.compile(loss)

start = time.time()
num_epochs = 1 + NUM_STEPS * BATCH_SIZE // len(labels)
order = torch.cat([torch.randperm(len(labels)) for _ in range(num_epochs)])
for step, batch in enumerate(order.split(BATCH_SIZE)[:NUM_STEPS], 1):
    optimizer.zero_grad()
    loss(distorted(images[batch]), labels[batch]).backward()
    optimizer.step()
    if step == 1:
        print(f'first step after {time.time() - start:.1f} s')
    if step == NUM_STEPS - NUM_MEASURED_STEPS:
        measured = time.time()
seconds = (time.time() - measured) / NUM_MEASURED_STEPS
print(f'{1000 * seconds:.1f} ms per step, {BATCH_SIZE / seconds:.0f} examples/sec')

with torch.no_grad(), torch.autocast('cpu', torch.bfloat16, enabled=args.bfloat16):
    central = standardized(test_images[:, 4:28, 4:28].float())
    predictions = torch.cat([model(part).argmax(1) for part in central.split(BATCH_SIZE)])
print(f'test precision {(predictions == test_labels).float().mean():.4f}')
