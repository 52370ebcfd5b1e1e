"""Arize Phoenix's dataframe of spans, as `DataFrame.to_parquet` writes it."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any, Final

from agentguard.errors import IntegrationMissing
from agentguard.traces.container import Binary, FaultyRecord, Items
from agentguard.traces.containers.phoenix import accepts, read_record

_ROWS: Final = 1_000


def magic(head: bytes) -> bool:
    """Whether a file begins as Parquet does."""
    return head.startswith(b"PAR1")


def items(stream: IO[bytes], path: str) -> Items:
    """Yield the span in each row."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise IntegrationMissing("pyarrow", "score") from None
    try:
        table: Any = parquet.ParquetFile(stream)
        columns: list[str] = table.schema_arrow.names
        if not accepts(dict.fromkeys(columns)):
            yield FaultyRecord("unknown format", f"Parquet with the columns {columns[:8]}; known: Phoenix's spans")
            return
        for batch in table.iter_batches(_ROWS):
            for row in _rows(batch):
                yield from read_record(row, path)
    except (arrow.ArrowException, OSError, ValueError) as error:
        yield FaultyRecord("torn file", f"no whole Parquet file ({error})")


def _rows(batch: Any) -> list[dict[str, Any]]:
    return [{column: _value(value) for column, value in row.items()} for row in batch.to_pylist()]


def _value(value: Any) -> Any:
    # times of a dataframe are datetimes, of pandas' own kind where pandas is installed
    return value.isoformat() if hasattr(value, "isoformat") else value


PHOENIX_PARQUET: Final = Binary(name="phoenix-parquet", magic=magic, items=items)
