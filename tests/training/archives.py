"""Small packages of each ecosystem, written as the real ones are."""

import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

CODE = '''
def parse_header(line):
    """Split a header line into its name and value."""
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
'''
COPYRIGHT = """\
Format: copyright-format/1.0

Files: *
License: Expat

Files: gpl/*
License: GPL-2+
"""
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")


def wheel(folder: Path, licence: str, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "demo-1.2-py3-none-any.whl", "w") as archive:
        archive.writestr("demo-1.2.dist-info/METADATA", f"Name: demo\nLicense-Expression: {licence}\n\n")
        archive.writestr("demo/_vendor/other-3.dist-info/METADATA", "License-Expression: GPL-3.0\n\n")
        for name, text in files.items():
            archive.writestr(name, text)


def npm(folder: Path, licence: str, files: Mapping[str, str]) -> None:
    manifest = json.dumps({"name": "demo", "version": "2.0.1", "license": licence})
    inner = json.dumps({"version": "9", "license": "GPL-3.0"})
    tarball(folder / "demo-2.0.1.tgz", {"package.json": manifest, "lib/package.json": inner, **files}, "package/")


def deb(folder: Path, licence: str, files: Mapping[str, str]) -> None:
    root = folder.parent / "root"
    control = root / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.write_text(
        "Package: demo\nVersion: 1.0-1\nArchitecture: all\nMaintainer: a <a@example.invalid>\nDescription: demo\n"
    )
    stated = COPYRIGHT.replace("GPL-2+", licence)
    for name, text in {"usr/share/doc/demo/copyright": stated, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    folder.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, folder / "demo_1.0-1_all.deb"], check=True)


def debian_source(
    folder: Path, files: Mapping[str, str], copyright_text: str = COPYRIGHT, *, native: bool = False
) -> None:
    folder.mkdir(parents=True)
    if native:
        (folder / "demo_1.0.dsc").write_text("Format: 3.0 (native)\n")
        tarball(folder / "demo_1.0.tar.xz", {**files, "debian/copyright": copyright_text}, "demo-1.0/")
    else:
        (folder / "demo_1.0-3.dsc").write_text("Format: 3.0 (quilt)\n")
        tarball(folder / "demo_1.0.orig.tar.gz", files, "demo-1.0/")
        tarball(folder / "demo_1.0-3.debian.tar.xz", {"debian/copyright": copyright_text}, "")


def tarball(path: Path, files: Mapping[str, str], top: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:xz") if path.suffix == ".xz" else tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
