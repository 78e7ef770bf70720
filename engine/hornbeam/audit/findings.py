"""What an audit found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    where: str  # a file, or a table of the version
    problem: str
    examples: tuple[str, ...] = ()

    def line(self) -> str:
        named = f" ({', '.join(self.examples)})" if self.examples else ""
        return f"{self.where}: {self.problem}{named}"


@dataclass(slots=True)
class Audit:
    index: str
    version: str | None
    checks: dict[str, str] = field(default_factory=dict)  # name → passed, failed, or why it was skipped
    findings: list[Finding] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.findings

    def take(self, check: str, findings: list[Finding]) -> None:
        self.checks[check] = "failed" if findings else "passed"
        self.findings += findings

    def damaged(self) -> set[str]:
        """Files of the version that cannot be relied on, by their path in it."""
        return {finding.where for finding in self.findings if finding.check in ("files", "stores")}

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"sound": self.sound}
