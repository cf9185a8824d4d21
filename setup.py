"""Packaging: the two packages, and the scripts for the PATH."""

import glob
import os
import re

from setuptools import find_packages, setup

HERE = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(HERE, 'README.md'), encoding='utf-8') as readme:
    long_description = readme.read()

with open(os.path.join(HERE, 'cifar10', '__init__.py')) as package:
    (version,) = re.findall("__version__ = '(.*)'", package.read())

SCRIPTS = sorted(os.path.basename(path) for path in glob.glob('scripts/*.py'))

setup(
    name='cifar10-classic',  # on PyPI, cifar10 is another package; the import is cifar10
    version=version,
    description='Classic graph-mode TensorFlow on CIFAR-10: queues, towers, average_gradients, TensorBoard',
    long_description=long_description,
    long_description_content_type='text/markdown',
    keywords='tensorflow cifar-10 tutorial graph-mode multi-gpu',
    classifiers=[
        'Development Status :: 4 - Beta',
        'Environment :: Console',
        'Intended Audience :: Developers',
        'Intended Audience :: Education',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Programming Language :: Python :: 3 :: Only',
        'Programming Language :: Python :: 3.7',
        'Programming Language :: Python :: 3.8',
        'Programming Language :: Python :: 3.9',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Topic :: Education',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
    packages=find_packages(include=['cifar10', 'cifar10.*', 'tf1_runner']),
    package_dir={'cifar10.scripts': 'scripts'},  # A package `scripts` would collide with others.
    entry_points={
        'console_scripts': [f'{script}=cifar10.cli.program:run_script' for script in SCRIPTS]
    },
    python_requires='>=3.7',
    install_requires=['tensorflow>=1.15', 'tensorboard', 'numpy', 'six', 'absl-py'],
    extras_require={'figures': ['matplotlib', 'Pillow']},
)
