"""Packaging: the package, and its scripts for the PATH."""
import glob

from setuptools import setup

setup(
    name='cifar10',
    version='1.0.0',
    description='Classic graph-mode TensorFlow on CIFAR-10: queues, towers, average_gradients, TensorBoard',
    packages=['cifar10'],
    scripts=sorted(glob.glob('scripts/*.py')),
    python_requires='>=3.9',
    install_requires=['tensorflow>=2.16', 'tensorboard', 'numpy', 'six', 'absl-py'],
)
