"""Each file of a version against its manifest: there, of this size, with these bytes."""

from __future__ import annotations

from hornbeam.audit.findings import Finding
from hornbeam.store.versions import Version, file_checksum


def check_files(version: Version) -> list[Finding]:
    found = []
    expected = version.manifest["files"]
    for name, said in sorted(expected.items()):
        path = version.directory / name
        try:
            size = path.stat().st_size
            if size != said["bytes"]:
                problem = f"{size} bytes where the manifest says {said['bytes']}"
            elif file_checksum(path) != said["sha256"]:
                problem = "its bytes are not those that were written (SHA-256 differs)"
            else:
                continue
        except FileNotFoundError:
            problem = "missing"
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}"
        found.append(Finding("files", name, problem))
    on_disk = {
        str(path.relative_to(version.directory)) for path in version.directory.rglob("*") if path.is_file()
    }
    for name in sorted(on_disk - set(expected) - {"manifest.json"}):
        found.append(Finding("foreign_files", name, "is not in the manifest"))
    return found
