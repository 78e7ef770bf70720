"""Settings and models as a manifest may hold them: everybody who has the index may read it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from hornbeam.llm.opening import server_urls
from hornbeam.llm.protocol import ModelIdentity


def without_secrets(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as a manifest may hold them: without keys, and URLs without user, password and query."""
    public: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            public[name] = without_secrets(value)
        elif name != "api_key":
            public[name] = _without_credentials(value) if isinstance(value, str) else value
    return public


def model_record(identity: ModelIdentity) -> dict[str, Any]:
    """A model as a manifest may hold it."""
    return {
        "name": _without_credentials(identity.name),
        "fingerprint": identity.fingerprint,
        "backend": identity.backend,
    }


#: In place of `model_record` where no model has read anything.
NO_MODEL: dict[str, Any] = {"name": "none", "fingerprint": "", "backend": "none"}


def _without_credentials(text: str) -> str:
    if "://" not in text:
        return text
    if len(urls := server_urls(text)) > 1:
        return ",".join(map(_without_credentials, urls))
    parts = urlsplit(text)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
