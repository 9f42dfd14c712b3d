"""Download one source package from PyPI and check its sha256:  python fetch_sdist.py NAME VERSION SHA256 TARGET

`pip download` would first run the package's own build to learn its metadata, which for some packages needs half a
machine-learning stack.
"""

import hashlib
import re
import sys
import urllib.request
from pathlib import Path


def main(name: str, version: str, wanted: str, target: str) -> None:
    """Exits with a message when the index has no such file or its bytes are others."""
    page = urllib.request.urlopen(f"https://pypi.org/simple/{name}/", timeout=60).read().decode()
    links = re.findall(rf'href="([^"#]+-{re.escape(version)}\.tar\.gz)#?[^"]*"', page)
    if not links:
        sys.exit(f"PyPI has no source package of {name} {version}")
    data = urllib.request.urlopen(links[0], timeout=300).read()
    found = hashlib.sha256(data).hexdigest()
    if found != wanted:
        sys.exit(f"{links[0]} is not the pinned file: sha256 {found}")
    Path(target).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:5])
