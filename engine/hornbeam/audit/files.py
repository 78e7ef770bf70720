"""Each file of a version against its manifest: there, of this size, with these bytes."""

from __future__ import annotations

from hornbeam.audit.findings import Finding
from hornbeam.store.damage import damaged_files
from hornbeam.store.versions import Version


def check_files(version: Version) -> list[Finding]:
    found = [Finding("files", name, problem) for name, problem in damaged_files(version)]
    on_disk = {
        str(path.relative_to(version.directory)) for path in version.directory.rglob("*") if path.is_file()
    }
    for name in sorted(on_disk - set(version.manifest["files"]) - {"manifest.json"}):
        found.append(Finding("foreign_files", name, "is not in the manifest"))
    return found
