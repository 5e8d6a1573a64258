"""Pack a built site to read offline: python docs/_ext/site/offline.py SITE FOLDER writes FOLDER/torch-field-guide.zip."""

import sys
import zipfile
from pathlib import Path

NAME = "torch-field-guide"
DATE = (1980, 1, 1, 0, 0, 0)  # the same in every build: equal sites give equal archives


def pack(site, folder):
    """Write the archive of `site` into `folder`, all below one folder of its own; return its path."""
    if not Path(site, "index.html").is_file():
        raise SystemExit(f"no site to pack in {site}")
    target = Path(folder, f"{NAME}.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(Path(site).rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(f"{NAME}/{path.relative_to(site).as_posix()}", DATE)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, path.read_bytes())
    return target


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(f"packed: {pack(*sys.argv[1:])}")
