"""The page's modules as one script: a page of 25 modules asks for them in six rounds, this one in one.

It reads the few forms in which the page's own modules import and export; any other is an error, not a guess:

    import { a, b } from "./other.js";
    export function …    export async function …    export async function* …
    export class …       export const …

Every module becomes a function that is called once, in the order of the imports, and returns what it exports.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

_IMPORT = re.compile(r'^import \{ ([\w$]+(?:, [\w$]+)*) \} from "(\.{1,2}/[\w./-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function\*? |class |const )", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|class|const) ([\w$]+)", re.MULTILINE)
#: What the above leaves of a form that it does not know.
_LEFT = re.compile(r"^\s*(?:import|export)\b.*|\bimport\s*[.(].*|^await\b.*", re.MULTILINE)


class BundleError(ValueError):
    """A module uses a form that cannot be bundled or imports what another one does not export, or the modules
    import each other in a ring."""


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """One module that does what `entry` does.

    Args:
        entry: path of a module.
        read: the text of a module by its path.

    Raises:
        BundleError: see there.
    """
    numbers: dict[str, int] = {}
    exports: dict[int, list[str]] = {}
    parts: list[str] = []

    def take(path: str, within: tuple[str, ...]) -> int:
        if path in within:
            raise BundleError(f"{' → '.join((*within, path))}: modules import each other")
        if path in numbers:
            return numbers[path]
        text = read(path)
        taken = []
        for names, other in _IMPORT.findall(text):
            number = take(posixpath.normpath(posixpath.join(posixpath.dirname(path), other)), (*within, path))
            if missing := set(names.split(", ")).difference(exports[number]):
                raise BundleError(f"{path}: {other} does not export {', '.join(sorted(missing))}")
            taken.append(f"const {{ {names} }} = m{number};")
        exported = _EXPORTED.findall(text)
        body = _EXPORT.sub("", _IMPORT.sub("", text)).strip()
        if left := _LEFT.search(body):
            raise BundleError(f"{path}: {left.group().strip()!r} cannot be bundled")
        numbers[path] = len(numbers)
        exports[numbers[path]] = exported
        lines = [f"// {path}", f"const m{numbers[path]} = (() => {{", *taken, body]
        parts.append(
            "\n".join([*lines, f"return {{ {', '.join(exported)} }};" if exported else "return {};", "})();"])
        )
        return numbers[path]

    take(entry, ())
    return "\n".join(parts) + "\n"
