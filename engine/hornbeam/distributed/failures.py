"""What was raised in another process, without what Ray wraps around it."""

from __future__ import annotations

from hornbeam.errors import HornbeamError, ModelError, reason


def explained(error: BaseException, what: str) -> HornbeamError:
    """An error of ours that was raised there, as it was; of another one a line.

    Args:
        what: failed.
    """
    found: BaseException = error
    while (inner := getattr(found, "cause", None) or found.__cause__) is not None and inner is not found:
        found = inner
        if isinstance(found, HornbeamError):
            return found
    return ModelError(f"ray: {what}: {type(found).__name__}: {reason(found)[:300]}")
