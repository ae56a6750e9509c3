"""The file in which the reference engine keeps a workspace's file hashes.

Its name is :func:`semindex.model.ids.reference_cache_file`'s; it holds one JSON object, absolute path → file hash.
"""

import json
from collections.abc import Mapping


def parse_reference_cache(content: str, workspace: str) -> dict[str, str]:
    """Return path (relative to the workspace) → file hash; what is not an entry of a file below it is left out.

    Raises ValueError for what is no JSON object.
    """
    entries = json.loads(content)
    if not isinstance(entries, dict):
        raise ValueError("A cache file of the reference engine holds one JSON object.")
    prefix = workspace.rstrip("/") + "/"
    return {
        path.removeprefix(prefix): digest
        for path, digest in entries.items()
        if path.startswith(prefix) and isinstance(digest, str)
    }


def render_reference_cache(hashes: Mapping[str, str], workspace: str) -> str:
    """Return the content of a cache file for path (relative to the workspace) → file hash, in their order."""
    prefix = workspace.rstrip("/") + "/"
    entries = {prefix + path: digest for path, digest in hashes.items()}
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
