"""Tables for hints about missing names."""

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
    'dummy_threading': 'replace it by threading',
    'imp': 'replace it by importlib, or pip install zombie-imp',
    'lib2to3': 'pip install fissix, and replace it by fissix',
    'msilib': 'use Python 3.12, which has it',
    'nis': 'use Python 3.12, which has it',
    'ossaudiodev': 'use Python 3.12, which has it',
    'spwd': 'use Python 3.12, which has it',
    'tkinter.tix': 'replace it by tkinter.ttk',
}
MODULES = [  # (pattern of an error message in a program line, remedy)
    *(
        (rf"No module named '{name}['.]", 'Python has removed this module: ' + remedy)
        for name, remedy in _REMOVED_MODULES.items()
    ),
    (r"No module named 'pkg_resources['.]", 'pip install "setuptools<82"'),
    (r"No module named 'PIL'", 'pip install pillow'),
    (
        r'(No module named|cannot import name) .*\bgoogle\b.*\bcolab\b',
        'it exists on Google Colab only: remove the lines that use it, and give local paths',
    ),
]
# Pattern of the names in tf.contrib.layers and tf.contrib.framework of TensorFlow 1.15 that tf_slim
# 1.1.0 lacks.
NOT_IN_TF_SLIM = (
    'column|embed|encoder|feature|FEATURE|_target$|TensorSpec|RecordInput|scalar_int|orthogonal|'
    'deprecated|fuse_op|get_(graph|name|placeholders)|load_|name_scope|py_func|^python$|reduce_sum_n|'
    'remove_squeezable|smart_|with_|zero_init'
)
