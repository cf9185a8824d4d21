"""Names and arguments that NumPy has removed."""

import functools
import sys

import numpy as np

MISSING = {  # removed in NumPy 1.18 to 2.5
    np: {
        'Inf': np.inf,
        'Infinity': np.inf,
        'NAN': np.nan,
        'NINF': -np.inf,
        'NaN': np.nan,
        'PINF': np.inf,
        'alltrue': np.all,
        'asfarray': lambda a, dtype=np.float64: np.asarray(
            a, dtype if np.issubdtype(dtype, np.inexact) else np.float64
        ),
        'asscalar': lambda a: a.item(),
        'bool8': np.bool_,
        'complex': complex,
        'cumproduct': np.cumprod,
        'float': float,
        'float_': np.float64,
        'in1d': lambda ar1, ar2, assume_unique=False, invert=False: np.isin(
            np.ravel(ar1), ar2, assume_unique, invert
        ),
        'infty': np.inf,
        'int': int,
        'mat': np.asmatrix,
        'object': object,
        'product': np.prod,
        'rank': np.ndim,
        'round_': np.round,
        'row_stack': np.vstack,
        'sometrue': np.any,
        'str': str,
        'string_': np.bytes_,
        'trapz': getattr(np, 'trapezoid', None),  # new in NumPy 2.0
        'unicode': str,
        'unicode_': np.str_,
    },
    np.lib: {'pad': np.pad},
}


def accept_removed_arguments():
    """Let functions of NumPy accept what NumPy before 2.3 accepted."""
    from_text, reshape, set_options = np.fromstring, np.reshape, np.set_printoptions

    @functools.wraps(from_text)
    def fromstring(string, dtype=float, count=-1, sep='', **named):
        if sep:
            return from_text(string, dtype, count, sep, **named)
        string = string.encode() if isinstance(string, str) else string
        return np.frombuffer(string, dtype, count, **named).copy()

    @functools.wraps(reshape)
    def reshape_to(a, *positional, **named):
        if 'newshape' in named:
            positional = [named.pop('newshape'), *positional]
        return reshape(a, *positional, **named)

    @functools.wraps(set_options)
    def set_printoptions(precision=None, threshold=None, *positional, **named):
        if threshold is not None and threshold != threshold:  # NaN
            threshold = sys.maxsize  # NumPy before 1.16 printed all values.
        set_options(precision, threshold, *positional, **named)

    np.fromstring, np.reshape, np.set_printoptions = fromstring, reshape_to, set_printoptions
