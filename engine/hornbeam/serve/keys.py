"""API keys and what each of them may do: a file of hashes, read again when it changes.

A key is 32 random bytes, so one SHA-256 of it is as good as a slow hash of a password would be.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from hornbeam.errors import UsageError

#: read: ask, search, look at the graph. operate: promote, roll back; it includes read.
Scope = Literal["read", "operate"]
#: In place of an index's name: all of them.
ANY = "*"
_PREFIX = "hb_"


class Key(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    key_id: str
    name: str
    sha256: str
    read: tuple[str, ...]  # names of indexes
    operate: tuple[str, ...]
    created: float  # Unix seconds

    def allows(self, scope: Scope, index: str) -> bool:
        granted = self.operate if scope == "operate" else (*self.read, *self.operate)
        return ANY in granted or index in granted


_KEYS = TypeAdapter(tuple[Key, ...])


class KeyRing:
    """The keys of a file; one that does not exist holds none. Changes by others are seen at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: tuple[int, int] | None = None
        self._keys: tuple[Key, ...] = ()
        self.keys()

    def keys(self) -> tuple[Key, ...]:
        """
        Raises:
            UsageError: the file cannot be read.
        """
        try:
            stat = self.path.stat()
            if (stamp := (stat.st_mtime_ns, stat.st_ino)) != self._read_at:
                self._keys, self._read_at = _KEYS.validate_json(self.path.read_bytes()), stamp
        except FileNotFoundError:
            self._keys, self._read_at = (), None
        except (OSError, ValidationError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no file of keys"
            raise UsageError(f"{self.path}: {reason}") from error
        return self._keys

    def find(self, secret: str) -> Key | None:
        """The key that this secret is; the time does not tell which, nor how much of it was right."""
        digest = _digest(secret)
        found = None
        for key in self.keys():
            if hmac.compare_digest(key.sha256, digest):
                found = key
        return found

    def add(self, name: str, read: Iterable[str], operate: Iterable[str]) -> tuple[Key, str]:
        """A new key and its secret, which is stored nowhere.

        Raises:
            UsageError: a blank name, or one that breaks the line on which `keys list` shows it.
        """
        name = name.strip()
        if not name or not name.isprintable():
            raise UsageError("a key needs a name of printable characters: whose it is")
        secret = _PREFIX + secrets.token_urlsafe(32)
        key = Key(
            key_id=secrets.token_hex(4),
            name=name,
            sha256=_digest(secret),
            read=tuple(read),
            operate=tuple(operate),
            created=time.time(),
        )
        self._write((*self.keys(), key))
        return key, secret

    def remove(self, key_id: str) -> Key:
        """
        Raises:
            UsageError: there is no such key.
        """
        keys = self.keys()
        removed = next((key for key in keys if key.key_id == key_id), None)
        if removed is None:
            raise UsageError(f"{self.path} has no key '{key_id}'; 'hornbeam keys list' lists them")
        self._write(tuple(key for key in keys if key is not removed))
        return removed

    def _write(self, keys: tuple[Key, ...]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        text = json.dumps([key.model_dump() for key in keys], ensure_ascii=False, indent=2) + "\n"
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        temporary.replace(self.path)


def default_keys_path() -> Path:
    from platformdirs import user_config_path

    return user_config_path("hornbeam") / "keys.json"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
