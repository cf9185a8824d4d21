"""Tables for hints about missing names and modules, and a search for a module."""

import glob
import os
import pathlib

_STANDARD_MODULES = (  # `standard-NAME` of PyPI brings each one back.
    'aifc asynchat asyncore chunk crypt imghdr mailcap nntplib pipes smtpd sndhdr sunau telnetlib '
    'uu xdrlib'
)
_REMOVED_MODULES = {  # Source: What's New in Python 3.9 to 3.13.
    **{name: f'pip install standard-{name}' for name in _STANDARD_MODULES.split()},
    'audioop': 'pip install audioop-lts',
    'binhex': 'use Python 3.10, which has it',
    'cgi': 'pip install legacy-cgi',
    'cgitb': 'pip install legacy-cgi',
    'distutils': 'pip install setuptools',
    'dummy_thread': 'replace it by _thread',
    'dummy_threading': 'replace it by threading',
    'imp': 'replace it by importlib, or pip install zombie-imp',
    'lib2to3': 'pip install fissix, and replace it by fissix',
    'msilib': 'use Python 3.12, which has it',
    'nis': 'use Python 3.12, which has it',
    'ossaudiodev': 'use Python 3.12, which has it',
    'spwd': 'use Python 3.12, which has it',
    'tkinter.tix': 'replace it by tkinter.ttk',
}
_IN_2_15 = 'with Python 3.11, pip install "tensorflow<2.16"'
MODULES = [  # (pattern of 'Class: message in program line', remedy)
    *(
        (rf"No module named '{name}['.]", 'Python has removed this module: ' + remedy)
        for name, remedy in _REMOVED_MODULES.items()
    ),
    (r"No module named 'pkg_resources['.]", 'pip install "setuptools<82"'),
    (
        r'(No module named|cannot import name) .*\bgoogle\b.*\bcolab\b',
        'it exists on Google Colab only: remove the lines that use it, and give local paths',
    ),
    (  # If it is installed, the message names a module of Keras.
        r'No module named .*\btensorflow_addons\b',
        f'tensorflow_addons imports with TensorFlow up to 2.15: {_IN_2_15} tensorflow_addons',
    ),
    (  # Version 2 is for TensorFlow 2.
        r"No module named 'tensorlayer\b|Error: .* in (import|from) tensorlayer\b",
        'its version for TensorFlow 1 needs docs/requirements-1.15.txt: there, pip install '
        'tensorlayer==1.11.1',
    ),
]
# Module -> what `pip install` needs. Each was imported on Python 3.13 with TensorFlow 2.21.
PACKAGES = {
    'Bio': 'biopython',
    'Crypto': 'pycryptodome',
    'MeCab': 'mecab-python3',
    'PIL': 'pillow',
    'attr': 'attrs',
    'bs4': 'beautifulsoup4',
    'community': 'python-louvain',
    'cv2': 'opencv-python-headless (or opencv-python, which also opens windows)',
    'dateutil': 'python-dateutil',
    'dotenv': 'python-dotenv',
    'faiss': 'faiss-cpu',
    'git': 'gitpython',
    'gym': 'gymnasium',
    'magic': 'python-magic',
    'progressbar': 'progressbar2',
    'pywt': 'pywavelets',
    'serial': 'pyserial',
    'skimage': 'scikit-image',
    'sklearn': 'scikit-learn',
    'snappy': 'python-snappy',
    'telegram': 'python-telegram-bot',
    'tensorflow_hub': 'tensorflow_hub "setuptools<82"',
    'tensorflow_probability': 'tensorflow_probability tf_keras',
    'umap': 'umap-learn',
    'websocket': 'websocket-client',
    'yaml': 'pyyaml',
    'zmq': 'pyzmq',
    **{
        name: name
        for name in (
            'gensim h5py imageio imutils jieba joblib keras librosa lmdb networkx nltk pandas plotly '
            'psutil requests scipy seaborn tensorboardX tensorflow_datasets tensorflow_text '
            'tensorpack tf_keras tf_slim tflearn tqdm'
        ).split()
    },
}
LAST = 'TensorFlow 1.15 (docs/requirements-1.15.txt) is the last with '
GONE = [  # (pattern of the begin of a dotted name, sentence, in which \1 is a group of the pattern)
    (
        r'tf\.models\.rnn',
        'write `from tensorflow.python.ops import rnn, rnn_cell, seq2seq`; put another module of it beside '
        'the program, and import it without the name of a package',
    ),
    (r'tf\.(python\.)?estimator', f'TensorFlow has it up to 2.15: {_IN_2_15}'),
    (
        r'tf\.contrib\.eager',
        'write tf.train.Checkpoint for Saver, tf.keras.metrics for metrics, tf.keras.Model for '
        f'Network; {LAST}other names of contrib.eager',
    ),
    (
        r'tf\.contrib\.learn\.(python\.learn\.)?datasets',
        f'sklearn.datasets.load_iris() has the irises; {LAST}its other data sets',
    ),
    (
        r'tf\.contrib\.learn\.(python\.learn\.)?preprocessing',
        'write tf.keras.preprocessing.text.Tokenizer, and tf.keras.preprocessing.sequence.'
        "pad_sequences(..., padding='post', truncating='post')",
    ),
    (
        r'tf\.contrib\.(learn(?!\.(python\.learn\.)?datasets)|factorization)',
        f'{LAST}these models; tf.estimator has such models with other arguments: {_IN_2_15}',
    ),
    (
        r'tf\.contrib\.seq2seq',
        f'{LAST}tf.contrib.seq2seq; tensorflow_addons.seq2seq has attention and decoders with other '
        f'arguments: {_IN_2_15} tensorflow_addons',
    ),
    (
        r'tf\.contrib\.crf',
        f'tensorflow_addons.text has its functions: {_IN_2_15} tensorflow_addons',
    ),
    (
        r'tf\.contrib\.training\.(batch_sequences_with_states|NextQueuedSequenceBatch)',
        LAST + 'such batches of sequences',
    ),
    (
        r'tf\.contrib\.(distributions|bayesflow)',
        'write `import tensorflow_probability as tfp` (pip install tensorflow_probability tf_keras): '
        'tfp.distributions, tfp.bijectors and tfp.stats have most of these names',
    ),
    (
        r'tf\.contrib\.(layers|slim)\.(\w+_column(s|_with_\w+)?|feature_column|input_from_\w+)',
        'write tf.feature_column.numeric_column for real_valued_column, categorical_column_with_... '
        'for sparse_column_with_..., input_layer for input_from_feature_columns',
    ),
    (
        r'tf\.contrib\.tpu\.\w*(Estimator|Config)\w*',
        f'tf.estimator.tpu has it up to TensorFlow 2.15: {_IN_2_15}',
    ),
    (
        r'tf\.models',
        'put its module beside the program, and import it without the name of a package',
    ),
    (
        r'tensorflow_gan',
        f'it needs tf.estimator: {_IN_2_15} tensorflow_gan "tensorflow_probability<0.24"',
    ),
    (r'tensorflow_estimator', f'TensorFlow has it up to 2.15: {_IN_2_15}'),
    (
        r'keras\.(layers|utils)\.(core|convolutional|normalization|advanced_activations|recurrent|'
        r'embeddings|pooling|wrappers|noise|(np|vis|data|generic)_utils)',
        r'import its names from keras.\1',
    ),
    (
        r'prettytensor',
        'its last version does not import with TensorFlow 1.15 and newer: use tf.layers instead',
    ),
    (r'sklearn\.cross_validation', 'replace it by sklearn.model_selection'),
    (r'sklearn\.externals\.(\w+)', r'write `import \1`'),
    (r'Image', 'this is Python 2: write `from PIL import Image`'),
    (r'dicom', 'pip install "pydicom<3", and write `import pydicom as dicom`'),
    (r'MySQLdb', 'pip install pymysql, and write `import pymysql as MySQLdb`'),
]


def find_above(directory, name):
    """Return the directory above a program's that has a module or package; None if there is none.

    Args:
      directory: of the program, an absolute path.
      name: dotted, of the module; a package has Python files, or its subdirectories have.
    """
    package, *rest = name.split('.')
    for parent in list(pathlib.Path(directory).parents)[:-1]:  # without the root, which has `lib`
        place = os.path.join(str(parent), package, *rest)
        files = [glob.escape(place) + end for end in ('.py', '/*.py', '/*/*.py')]
        if os.path.join(str(parent), package) != directory and any(map(glob.glob, files)):
            return str(parent)
    return None
