"""Where schemas come from and go to: files of the user, and the seed schemas by name."""

from __future__ import annotations

import difflib
from pathlib import Path

from hornbeam.errors import SchemaError, UsageError
from hornbeam.schema.formats import read_schema
from hornbeam.schema.model import GraphSchema

_PACKAGE = Path(__file__).resolve().parent.parent
#: In an installed wheel the seeds lie in the package, in a checkout at the repository's root.
_SEED_FOLDERS = (_PACKAGE / "seed_schemas", _PACKAGE.parent.parent / "schemas")


def seed_schemas() -> list[str]:
    """The names of the seed schemas, sorted."""
    return sorted(_seed_files())


def load_schema(name_or_path: str) -> GraphSchema:
    """A seed schema by name, else the file at that path, in any form that `read_schema` knows.

    A seed's name wins over a file of the same name; write `./general` for such a file.

    Raises:
        SchemaError: no such schema, a file that cannot be read or is not UTF-8, an unusable schema.
    """
    seeds = _seed_files()
    path = seeds.get(name_or_path, Path(name_or_path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        near = difflib.get_close_matches(name_or_path, list(seeds), n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        known = ", ".join(sorted(seeds)) or "none (the installation is incomplete)"
        raise SchemaError(
            f"no schema '{name_or_path}': no such file, and the seed schemas are {known}{hint}"
        ) from error
    except UnicodeDecodeError as error:
        raise SchemaError(f"schema file {path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise SchemaError(f"schema file {path}: cannot be read: {error.strerror}") from error
    try:
        return read_schema(text, path.stem)
    except SchemaError as error:
        raise SchemaError(f"schema file {path}: {error}") from error


def check_new_file(path: Path) -> None:
    """
    Raises:
        UsageError: the file exists, or its folder does not.
    """
    if path.exists():
        raise UsageError(f"{path} exists already; it is not overwritten")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}")


def write_schema(schema: GraphSchema, path: Path) -> None:
    """Write a new schema file.

    Raises:
        UsageError: as `check_new_file`, or the file cannot be written.
    """
    check_new_file(path)
    try:
        path.write_text(schema.to_json(), "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _seed_files() -> dict[str, Path]:
    for folder in _SEED_FOLDERS:
        if folder.is_dir():
            return {path.stem: path for path in folder.glob("*.json")}
    return {}
