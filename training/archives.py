"""Downloaded packages: their version, their licence, and the source files that it allows."""

import io
import json
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

from training import licences
from training.languages import LANGUAGE_OF_SUFFIX
from training.packages import Ecosystem

_SIZES = range(101, 600_000)
_SKIPPED = re.compile(
    r"(^|/)(tests?|testing|testdata|spec|specs|fixtures?|benchmarks?|_?vendor(ed)?|third_?party|3rdparty|external|extern|deps|"
    r"node_modules|generated|_generated|examples?|contrib|locale|docs?|site-packages)/|(^|/)(test_[^/]*|conftest)\.py$|_test\.go$|"
    r"\.(min|bundle|umd|pb|pb2|test|spec)\.\w+$|_pb2(_grpc)?\.py$",
)
_DEBIAN_PREFIX = re.compile(
    r"^\./usr/(?:share|lib)/(?:gocode/src|cargo/registry|ruby/vendor_ruby|php|rubygems-integration/[^/]+/gems|[^/]+)/"
)


@frozen
class Contents:
    """What a package holds."""

    version: str
    licence: licences.Verdict
    sources: dict[str, bytes]
    """Path → content; empty if the licence is refused."""


def read(ecosystem: Ecosystem, folder: Path) -> Contents | None:
    """Read the package in a download folder, None if it was not downloaded; raises what its archive format raises."""
    files = sorted(path for path in folder.glob("*") if path.is_file())
    return _READERS[ecosystem](files) if files else None


def wanted(path: str, size: int) -> bool:
    """Say whether a file is source code that people wrote: not vendored, generated, a test or an example."""
    return PurePosixPath(path).suffix in LANGUAGE_OF_SUFFIX and size in _SIZES and not _SKIPPED.search(path)


def _read_wheel(files: list[Path]) -> Contents:
    with zipfile.ZipFile(files[0]) as archive:
        [metadata] = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        licence = licences.of_wheel(archive.read(metadata).decode(errors="replace"))
        chosen = [entry for entry in archive.infolist() if wanted(entry.filename, entry.file_size)]
        sources = {entry.filename: archive.read(entry) for entry in chosen if licence.permissive}
    return Contents(files[0].name.split("-")[1], licence, sources)


def _read_npm(files: list[Path]) -> Contents:
    with tarfile.open(files[0]) as archive:
        members = {_below_top(member.name): member for member in archive if member.isfile()}
        manifest = _content(archive, members["package.json"]).decode(errors="replace")
        licence = licences.of_npm(manifest)
        chosen = {path: member for path, member in members.items() if licence.permissive and wanted(path, member.size)}
        sources = {path: _content(archive, member) for path, member in chosen.items()}
    return Contents(str(json.loads(manifest)["version"]), licence, sources)


def _read_deb(files: list[Path]) -> Contents:
    data = subprocess.run(["dpkg-deb", "--fsys-tarfile", files[0]], capture_output=True, check=True).stdout
    stated = ""
    sources: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            path = _DEBIAN_PREFIX.sub("", member.name)
            if member.isfile() and re.fullmatch(r"\./usr/share/doc/(.*/)?copyright", member.name):
                stated = _content(archive, member).decode(errors="replace")
            elif member.isfile() and wanted(path, member.size):
                sources[path] = _content(archive, member)
    licence = licences.DebianCopyright(stated).upstream()
    return Contents(files[0].name.split("_")[1], licence, sources if licence.permissive else {})


def _read_debian_source(files: list[Path]) -> Contents:
    """Read a source package: a tarball from upstream, and ``debian/`` in one of its own or, if native, in the same."""
    [description] = [file for file in files if file.suffix == ".dsc"]
    tarballs = [file for file in files if re.search(r"\.tar\.\w+$", file.name)]
    upstream = next(file for file in tarballs if re.search(r"\.orig\.tar\.|_[^-]+\.tar\.", file.name))
    packaging = next((file for file in tarballs if ".debian.tar." in file.name), upstream)
    rules = licences.DebianCopyright(_debian_copyright(packaging))
    sources: dict[str, bytes] = {}
    if rules.main().permissive:
        with tarfile.open(upstream) as archive:
            for member in archive:
                path = _below_top(member.name)
                if member.isfile() and wanted(path, member.size) and rules.of(path).permissive:
                    sources[path] = _content(archive, member)
    return Contents(description.stem.split("_")[1], rules.main(), sources)


def _debian_copyright(packaging: Path) -> str:
    with tarfile.open(packaging) as archive:
        for member in archive:
            if re.fullmatch(r"(?:\./)?(?:[^/]+/)?debian/copyright", member.name):
                return _content(archive, member).decode(errors="replace")
    return ""


def _below_top(name: str) -> str:
    """Return a member's path without the archive's top folder."""
    return name.removeprefix("./").partition("/")[2]


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return stream.read() if stream else b""


_READERS: Final[dict[Ecosystem, Callable[[list[Path]], Contents]]] = {
    Ecosystem.PYPI: _read_wheel,
    Ecosystem.NPM: _read_npm,
    Ecosystem.DEB: _read_deb,
    Ecosystem.DEBSRC: _read_debian_source,
}
