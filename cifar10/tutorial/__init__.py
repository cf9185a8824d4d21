"""The tutorial's modules, for programs that import them; `%load_ext cifar10.tutorial`."""

from cifar10.tf1.ipython import activate, load_ipython_extension  # noqa: F401 (public names)
