#!/usr/bin/env python3
"""Runs the programs that the runner promises to run, other_programs.jsonl; compares the verdicts.

They are those of two books, matroid/dlwithtf and terrytangyuan/tensorflow-in-practice-code, those
of the CIFAR-10 tutorial in all versions, and programs that train on CIFAR-10, of these
repositories:

1622579602/cifar10 adihayat/tf_apl Amano-Ginji/mytensorflow andridns/tf-cifar10
AndyShen105/disAlexNet_cifar10 avBuffer/Cifar10_tensorflow b4dawn75/cifar10-dist
BayesWatch/tf-variational-dropout BIGBALLON/cifar-10-cnn BlackLee68/CIFAR_10
caltong/learn-tensorflow chao-ji/tf-resnet-cifar10 chengyang317/cifar10 chenzhangpku/tf_growingCNN
chmod644/tf_cifar10 chychen/cifar10_NIN_tensorflow conan7882/VGG-cifar dalgu90/wrn-tensorflow
danielkaifeng/tensorflow-cifar-10 Dearbigdog/cifar10_multi_gpu DiamonJoy/TensorFlow
dims12/Cifar10_TF DoctorCotic/MLSamples doody1986/sparsity_analysis dragonasc2/HelloTensorFlow
DungxNguyen/cifar_tutorial eickenberg/cifar10_tensorflow eltonlaw/vgg-cifar10
ethanhe42/context-cifar eugenelet/tensorflow-cifar-10-NiN exelban/tensorflow-cifar-10
fanfuhan/cifar10_tensorflow_image_classification feifeibear/Distributed-ResNet-Tensorflow
Frank1993/tensorflow_cifar10 fvilca/cnn_tensorflow_cifar GaryBigpig/TensorFlow
gauravmm/DL2.0-Accelerated-Introduction-to-Deep-Learning giser-yugang/Learning_TensorFlow
GyuminDev/CIFAR10-CNN-TensorFlow HaowenLai/cifar10 Hezi-Resheff/Oreilly-Learning-TensorFlow
holdenlee/tensorflow_learning houssamzenati/DeepModels-MNIST-CIFAR10-Tensorflow
hwang595/recreate-the-experiment hyenal/curveball-tf ikhlestov/vision_networks
ischlag/tensorflow-input-pipelines iweizime/tensorflow_cifar10 jis1218/CIFAR-10-Using-Tensorflow
jlewi/cifar10 JsFlo/Cifar10-CNN-GAN-TF juxiangwu/ML JWang-AI/HCO_CNN_Cifar10
KeyKy/tensorflow_learn kss0222/DeepCnn kzhang28/Distributed-TensorFlow-Training-Examples
larrysu1115/totem lawlite19/MachineLearning_TensorFlow lchia/demo_tf lhzhong/TFCode
LiAoqi96/CIFAR10 Line290/cifar10_challenge liyingxuan89/deep_learning_applications
lshhhhh/deep-learning-study luong-vinh/Gating-types-for-Residual-Networks
MadryLab/cifar10_challenge mAtthEwwww/cifar_tensorflow mingyue312/CSC411A3
mino-park7/DeepCNNpractice mmanoharahere/block_sparsity mr-kkid/tensorflow MrWonderson/WideResNet
Newcoder-gyf/Machine-Learning pamelaajohnston/cifar10 PayneZ/CodeSync
persistforever/cifar10-tensorflow postBG/CIFAR10-CNN-tensorflow quanee/Note RuanYB/tensorflow
s1syphus/tensorflow_tutorials sarthmit/CIFAR-10-Tensorflow simran098/CIFAR-10
smivv/tensorflow-cifar-10 snat1505027/WeightGrad soulguy/My_Tensorflow strike60/cifar10-NIN
Sunarker/Safeguarded-Dynamic-Label-Regression-for-Noisy-Supervision SwingWillwow/CIFAR10_baseline
taki0112/Densenet-Tensorflow TalkUHulk/Tensorflow_Cifar10 TensorFlowCnn/CNN- TUSSON/tf-study
UESBTC/DenseNet-Tensorflow victor77dev/cifar10 wenxinxu/resnet-in-tensorflow wognl0402/CIFAR_mask
XU-ZHOU/Tensorflow xunhui-huang/Cifar10_tensorflow xzy256/cifar10_xzy yeLer/TF_AlexNet-cifar-10
yhlleo/tensorflow.cifar10 Yonezcy/naive_cnn ZetaRing/Pruning-on-CNN zhulf0804/DenseNet-Tensorflow
ziapple/tensorflow-tutorial-cifar10 zmer007/MyCifar10

What none of them reaches is not in `tf1_runner`. To record it, run them with `coverage` (a file
sitecustomize.py that starts it) with TensorFlow 2.21 and 1.15, and log each name that a program
gets from the tables of tf.contrib and of TensorFlow before 1.0.

It is no test of the suite, because it needs clones of the repositories, their data and an hour:

  python tests/tf1_runner/other_programs.py CLONES DATA [PART OF A NAME]

CLONES has a clone of each repository, OWNER+NAME. DATA has what the programs read: the versions of
CIFAR-10 and CIFAR-100 by their usual names, the archives beside them, `mnist` (four files), `ptb`
(three text files), text8.zip, `deepchem` (Tox21), `packages` (deepchem and rdkit), and the own
formats of three programs in `lia`, `pam` and `tfc`. /tmp/cifar10_data is a link to it, because
programs name this directory. A line of the list is an object with

  repository, commit, program: of github.com
  edits: file -> list of [regular expression, replacement]: only steps, sizes and paths
  files: new file -> file in DATA or CLONES
  directories: new directories
  arguments, options: of the program and of the runner
  first: list of the program that must have ended before, such as a training, and its arguments
  beside: list of the program that must run at the same time, such as a server, and its arguments
  packages: further packages that the program needs
  correct: True if the program is correct for Python 3 and TensorFlow 1; else `why` is the reason
  output: regular expression of the line that shows that the program works
  before: the end of the program with the runner of version 1.4.0 of November 24, 2026
  after: the end with today's runner: "runs", or the last line
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'other_programs.jsonl')
DEADLINE_SECS = 240


def _copy(row, clones, fill, top):
    """Copy a repository, apply the edits, and return the path of the program."""
    owner, name = row['repository'].split('/')
    copy = os.path.join(top, name)
    shutil.copytree(
        os.path.join(clones, f'{owner}+{name}'),
        copy,
        symlinks=True,
        ignore=shutil.ignore_patterns('.git'),
    )
    for path, edits in row.get('edits', {}).items():
        path = os.path.join(copy, path)
        with open(path, encoding='utf-8', errors='surrogateescape', newline='') as file:
            text = file.read()
        for pattern, replacement in edits:
            text = re.sub(pattern, fill(replacement), text)
        with open(path, 'w', encoding='utf-8', errors='surrogateescape', newline='') as file:
            file.write(text)
    for path, source in row.get('files', {}).items():
        os.makedirs(os.path.dirname(os.path.join(copy, path)), exist_ok=True)
        os.symlink(fill(source), os.path.join(copy, path))
    return os.path.join(copy, row['program'])


def run(row, clones, data):
    """Return "runs", or the last line of the program."""
    with tempfile.TemporaryDirectory() as top:

        def fill(text):
            for name, value in [('data', data), ('clones', clones), ('out', top)]:
                text = text.replace('{' + name + '}', value)
            return text

        program = _copy(row, clones, fill, top)
        directory = os.path.dirname(program)
        for name in row.get('directories', []):
            os.makedirs(os.path.join(directory, fill(name)))
        environ = {name: fill(value) for name, value in row.get('env', {}).items()}

        def start(words):
            command = [sys.executable, os.path.join(ROOT, 'scripts', 'cifar10_run.py'), *words]
            return subprocess.Popen(
                [fill(word) for word in command],
                cwd=directory,
                env=dict(os.environ, MPLBACKEND='Agg', PYTHONUNBUFFERED='1', **environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
                errors='replace',
                start_new_session=True,
            )

        if 'first' in row:
            start(row['first']).communicate()
        beside = start(row['beside']) if 'beside' in row else None
        process = start(row.get('options', []) + [program] + row.get('arguments', []))
        timer = threading.Timer(DEADLINE_SECS, os.killpg, [process.pid, signal.SIGKILL])
        timer.start()
        verdict = _verdict(process, row).replace(top + '/', '')
        timer.cancel()
        for one in filter(None, [process, beside]):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.communicate()
        return verdict


def _verdict(process, row):
    """Return "runs" after the line that shows it, or the last line at the end of the process."""
    lines = ['no output']
    for line in process.stdout:
        lines.append(line.strip())
        # A short program is to end without an error.
        if not row.get('whole') and re.search(row['output'], line):
            return 'runs'
    is_shown = re.search(row['output'], '\n'.join(lines), re.DOTALL)
    return 'runs' if process.wait() == 0 and is_shown else [line for line in lines if line][-1]


def main():
    """Run the programs whose repository or path contains the last argument."""
    clones, data = map(os.path.abspath, sys.argv[1:3])
    with open(LIST, encoding='utf-8') as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        name = f'{row["repository"]} {row["program"]}'
        if (sys.argv + [''])[3] in name:
            found = run(row, clones, data)
            is_same = found == row['after'] or {found, row['after']}.isdisjoint({'runs'})
            print('same' if is_same else 'OTHER', name, '|', found, flush=True)


if __name__ == '__main__':
    main()
