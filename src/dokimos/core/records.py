"""Results that are tables: a list of records, a pandas frame, and a page in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError

#: How many rows a notebook shows.
_SHOWN = 20


class Table:
    """A base of results that have one record for each of what they hold."""

    @abstractmethod
    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary for each row, with the names of the columns; all have the same names."""

    def to_frame(self) -> Any:
        """The same as a pandas DataFrame. Raises InputError where pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise InputError("A frame needs pandas (pip install pandas); `to_records` does not.") from None
        return DataFrame.from_records(self.to_records())

    def log(self, name: str = "dokimos") -> None:
        """Log the rows as a table of the active MLflow run, with every number of a single row as a metric.

        Raises InputError where mlflow is not installed.
        """
        try:
            mlflow = import_module("mlflow")
        except ImportError:
            raise InputError("A log needs mlflow (pip install mlflow); `to_records` does not.") from None
        records = self.to_records()
        columns = {key: [_shown(each[key]) for each in records] for key in (records[0] if records else ())}
        mlflow.log_table(columns, f"{name}.json")
        if len(records) == 1:
            for key, value in records[0].items():
                if isinstance(value, int | float):
                    mlflow.log_metric(f"{name}.{key}", float(value))

    def _repr_html_(self) -> str:
        """The first rows, under what the result says of itself."""
        records = self.to_records()
        lines = [f"<p><code>{escape(repr(self))}</code></p>"]
        if records:
            cells = "".join(f"<th>{escape(name)}</th>" for name in records[0])
            lines.append(f"<table><thead><tr>{cells}</tr></thead><tbody>")
            for record in records[:_SHOWN]:
                cells = "".join(f"<td>{escape(_shown(value))}</td>" for value in record.values())
                lines.append(f"<tr>{cells}</tr>")
            lines.append("</tbody></table>")
        if len(records) > _SHOWN:
            lines.append(f"<p>{_SHOWN} of {len(records)} rows</p>")
        return "\n".join(lines)


def record_of(source: object, *names: str) -> dict[str, Any]:
    """These attributes by name, in plain types."""
    return {name: _plain(getattr(source, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
