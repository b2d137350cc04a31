"""Files of codes: what ``unweave encode`` writes and ``unweave score`` reads.

An .npz file holds the arrays ``codes``, ``factors``, ``log_variance``, ``rows`` and ``files``. A table (.parquet, .csv)
has a line per image: ``row``, ``file``, ``code_0`` …, ``variance_0`` …; every other column is a factor.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.errors import ArgumentError, DataError, shorten
from unweave.files import check_regular, name_in_csv, replacing

if TYPE_CHECKING:
    import pandas as pd

    from unweave.arrays import AnyArray
    from unweave.data.factors import FactorSpace

SUFFIXES = (".parquet", ".csv", ".npz")
CODES_KEY, FACTORS_KEY = "codes", "factors"
# Names in a table that are not those of factors.
_RESERVED = re.compile(r"row|file|(code|variance)_[0-9]+")
# In the metadata of a Parquet file: the values of factors that are written as text, in their order.
_VALUE_NAMES = "value_names"


def check_suffix(path: Path, argument: str) -> str:
    """The format of a file of codes by the end of its name, or an error that names those that there are.

    Examples
    --------
    >>> check_suffix(Path("codes.CSV"), "--output")
    '.csv'
    >>> check_suffix(Path("codes.txt"), "--output")
    Traceback (most recent call last):
    unweave.errors.ArgumentError: --output = 'codes.txt': needs a name that ends in .parquet, .csv, .npz
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(argument, str(path), f"needs a name that ends in {', '.join(SUFFIXES)}")
    return suffix


def write_codes(path: Path, arrays: Mapping[str, Any], space: FactorSpace | None = None) -> None:
    """Write codes in the format that the name of the file says.

    Parameters
    ----------
    path
        the file, which appears whole or not at all.
    arrays
        ``codes`` (n, D), ``rows`` (n,), and where there are such ``log_variance`` (n, D), ``factors`` (n, K) and
        ``files``, n names.
    space
        what the factors are called, and their values.

    Examples
    --------
    >>> import numpy as np
    >>> write_codes(Path("codes.csv"), {"codes": np.zeros((2, 1)), "rows": np.arange(2)})
    >>> Path("codes.csv").read_text().split()
    ['row,code_0', '0,0.0', '1,0.0']
    """
    import numpy as np

    suffix = check_suffix(path, "path")
    with replacing(path) as temporary:
        if suffix == ".npz":
            plain: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
            np.savez(temporary, **plain)
            return
        frame = _frame(arrays, space)
        if suffix == ".csv":
            if "file" in frame:
                frame["file"] = frame["file"].map(name_in_csv)
            frame.to_csv(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)


def read_codes(path: Path, codes_key: str = CODES_KEY, factors_key: str = FACTORS_KEY) -> dict[str, AnyArray]:
    """The arrays of a file of codes: "codes", and where the file has such "factors" and "log_variance".

    Text in a table is numbered: in the order of the factor's values where a Parquet file has them, else
    alphabetically.

    Parameters
    ----------
    path
        a file that :func:`write_codes` wrote, or one like it.
    codes_key, factors_key
        names of the arrays of an .npz file.

    Examples
    --------
    >>> _ = Path("codes.csv").write_text("code_0,shape\\n0.5,square\\n1.5,heart\\n")
    >>> read_codes(Path("codes.csv"))["factors"].tolist()
    [[1], [0]]
    """
    suffix = check_suffix(path, "file")
    if not path.exists():
        raise ArgumentError("file", str(path), "there is no such file")
    check_regular(path)
    if suffix == ".npz":
        return _read_npz(path, codes_key, factors_key)
    for key, option, default in (
        (codes_key, "--codes-key", CODES_KEY),
        (factors_key, "--factors-key", FACTORS_KEY),
    ):
        if key != default:
            raise ArgumentError(option, key, f"names an array of an .npz file, and {path} is a table")
    return _arrays(_read_table(path, suffix), path)


# --- tables ----------------------------------------------------------------------------------------


def _frame(arrays: Mapping[str, Any], space: FactorSpace | None) -> pd.DataFrame:
    """One line per image."""
    import numpy as np
    import pandas as pd

    columns: dict[str, Any] = {"row": arrays["rows"]}
    if "files" in arrays:
        columns["file"] = arrays["files"]
    columns |= {f"code_{number}": column for number, column in enumerate(arrays["codes"].T)}
    if "log_variance" in arrays:
        columns |= {f"variance_{n}": np.exp(column) for n, column in enumerate(arrays["log_variance"].T)}
    texts: dict[str, list[str]] = {}
    if space is not None and "factors" in arrays:
        for name, values in zip(space.names, arrays["factors"].T, strict=True):
            column = f"factor_{name}" if _RESERVED.fullmatch(name) else name
            columns[column] = values
            if name in space.value_names:
                names = texts[column] = list(space.value_names[name])
                columns[column] = [None if v != v else names[int(v)] for v in values.tolist()]
    frame = pd.DataFrame(columns)
    frame.attrs[_VALUE_NAMES] = texts
    return frame


def _read_table(path: Path, suffix: str) -> pd.DataFrame:
    import pandas as pd
    import pyarrow
    import pyarrow.parquet

    try:
        if suffix == ".csv":
            # A value may be called "None" or "NA": only what is empty is not known.
            return pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False)
        pyarrow.parquet.read_table(path).validate(full=True)
        return pd.read_parquet(path)
    except (
        OSError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RuntimeError,
        MemoryError,
        OverflowError,
        pyarrow.ArrowException,
    ) as error:
        raise DataError(f"{path}: not a table of codes ({shorten(str(error))})") from error


def _arrays(frame: pd.DataFrame, path: Path) -> dict[str, AnyArray]:
    import numpy as np

    frame.columns = frame.columns.map(str)
    codes = _numbered(frame, "code")
    if not codes:
        raise DataError(
            f"{path}: has no columns code_0, code_1, …, only {shorten(str(sorted(frame.columns)))}"
        )
    arrays = {"codes": _numbers(frame, codes, path)}
    variances = _numbered(frame, "variance")
    if variances:
        values = _numbers(frame, variances, path)
        if values.shape != arrays["codes"].shape:
            raise DataError(f"{path}: has {len(codes)} columns of codes, and {len(variances)} of variances")
        if not (values > 0).all():
            raise DataError(f"{path}: a variance is not above 0")
        arrays["log_variance"] = np.log(values)
    factors = [name for name in frame.columns if not _RESERVED.fullmatch(name)]
    if factors:
        texts = frame.attrs.get(_VALUE_NAMES)
        known = texts if isinstance(texts, dict) else {}
        columns = [_factor(frame, name, known.get(name), path) for name in factors]
        arrays["factors"] = np.stack(columns, axis=1)
    return arrays


def _numbered(frame: pd.DataFrame, stem: str) -> list[str]:
    """The columns stem_0, stem_1, …, as far as they go."""
    names: list[str] = []
    while f"{stem}_{len(names)}" in frame.columns:
        names.append(f"{stem}_{len(names)}")
    return names


def _numbers(frame: pd.DataFrame, names: list[str], path: Path) -> AnyArray:
    import numpy as np

    for name in names:
        if frame[name].dtype.kind not in "iuf":
            raise DataError(f"{path}: column {name!r} is not of numbers")
    return np.stack([_plain(frame[name]) for name in names], axis=1)


def _plain(column: pd.Series) -> AnyArray:
    """A column of numbers as an array; NaN where there is none."""
    import numpy as np

    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    return column.to_numpy(np.float64, na_value=np.nan)


def _factor(frame: pd.DataFrame, name: str, order: object, path: Path) -> AnyArray:
    """A column of numbers as it is, and of text as the numbers of its values; NaN where nothing is known."""
    import numpy as np

    column = frame[name]
    if column.dtype.kind in "iufb":
        return _plain(column) if column.dtype.kind != "b" else _plain(column.astype(np.int64))
    texts = [
        None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)
    ]
    different = {value for value in texts if value is not None}
    if not all(isinstance(value, str | bool) for value in different):
        raise DataError(f"{path}: column {name!r} is neither of numbers nor of text")
    listed = order if isinstance(order, list) and different <= set(order) else sorted(different, key=str)
    number_of = {value: number for number, value in enumerate(listed)}
    numbers = np.array([np.nan if value is None else number_of[value] for value in texts])
    return numbers if None in texts else numbers.astype(np.int64)


# --- arrays ----------------------------------------------------------------------------------------


def _read_npz(path: Path, codes_key: str, factors_key: str) -> dict[str, AnyArray]:
    import numpy as np

    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # numpy would take it for a pickle, and say so
                raise DataError(
                    f"{path}: not an .npz file of plain arrays: needs an .npz file with 'codes' and 'factors'"
                )
            file.seek(0)
            arrays = np.load(file, allow_pickle=False)
            for key, option, needed in (
                (codes_key, "--codes-key", True),
                (factors_key, "--factors-key", factors_key != FACTORS_KEY),
            ):
                if needed and key not in arrays:
                    raise DataError(f"{path}: has no array {key!r}, only {sorted(arrays)}; {option} names it")
            _check_headers(path)
            named = {"codes": codes_key, "factors": factors_key, "log_variance": "log_variance"}
            return {name: arrays[key] for name, key in named.items() if key in arrays}
    except (
        OSError,
        ValueError,
        EOFError,
        LookupError,
        MemoryError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise DataError(f"{path}: not an .npz file of plain arrays ({error})") from error


def _check_headers(path: Path) -> None:
    """Refuse arrays with damaged headers, of which NumPy would make what it can."""
    from unweave.data.files.npy import read_npy_header

    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as stream:
                read_npy_header(stream)
