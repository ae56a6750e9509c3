"""Command: download packages, keep the permissively licensed ones, and write their pairs.

python -m training.collect download WORK    # wheels, npm tarballs, Debian packages and sources
python -m training.collect extract WORK     # WORK/pairs.jsonl.gz, WORK/heldout.jsonl.gz, WORK/DATA.tsv
"""

import argparse
import csv
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from attrs import frozen

from training.archives import read
from training.licences import Verdict
from training.packages import Request, download, read_requests
from training.pairs import Pair, pairs_of, select, write_pairs

PACKAGES = Path(__file__).with_name("packages.txt")


@frozen
class Package:
    """What was found of a requested package."""

    request: Request
    version: str
    licence: Verdict
    pairs: list[Pair]

    @property
    def use(self) -> str:
        """What the package serves for: a word of DATA.tsv."""
        if not self.licence.permissive:
            return "rejected"
        return "evaluation" if self.request.heldout else "training"


def read_package(request: Request, work: Path) -> Package | None:
    """Judge a downloaded package's licence and read its pairs; None, with a line of output, if it cannot be read."""
    try:
        contents = read(request.ecosystem, request.folder(work))
    except (
        OSError,
        LookupError,
        ValueError,
        tarfile.TarError,
        zipfile.BadZipFile,
        subprocess.SubprocessError,
    ) as error:
        print("unreadable", request.ecosystem, request.name, repr(error)[:120], flush=True)
        return None
    if contents is None:
        return None
    return Package(request, contents.version, contents.licence, list(pairs_of(request, contents.sources)))


def extract(requests: Sequence[Request], work: Path, workers: int) -> None:
    """Write the pairs of the training packages, the declarations of the held-out ones, and the licence table."""
    with get_context("spawn").Pool(workers) as pool:
        found = pool.imap_unordered(partial(read_package, work=work), requests)
        packages = sorted(filter(None, found), key=lambda package: package.request.key)
    chosen = select({package.request: package.pairs for package in packages if not package.request.heldout})
    pairs = [pair for request in sorted(chosen, key=lambda request: request.key) for pair in chosen[request]]
    write_pairs(work / "pairs.jsonl.gz", pairs)
    heldout = sorted((package for package in packages if package.request.heldout), key=lambda p: p.request.name)
    write_pairs(work / "heldout.jsonl.gz", (pair for package in heldout for pair in package.pairs))
    write_table(work / "DATA.tsv", packages, {request: len(kept) for request, kept in chosen.items()})
    print(len(pairs), "pairs:", dict(Counter(pair.language for pair in pairs).most_common()))
    print("packages:", dict(Counter(package.use for package in packages)))


def write_table(path: Path, packages: Sequence[Package], kept: dict[Request, int]) -> None:
    """Write ecosystem, name, version, licence as stated, number of pairs and use of each package, tab-separated."""
    with path.open("w", newline="") as stream:
        table = csv.writer(stream, delimiter="\t", lineterminator="\n")
        table.writerow(["ecosystem", "package", "version", "licence", "pairs", "use"])
        for package in sorted(packages, key=lambda package: (package.request.ecosystem, package.request.name)):
            request = package.request
            pairs = kept.get(request, len(package.pairs))
            row = [request.ecosystem, request.name, package.version, package.licence.stated, pairs, package.use]
            table.writerow(row)


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["download", "extract"])
    parser.add_argument("work", type=Path, help="folder for everything that is downloaded and made")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="the package list")
    parser.add_argument("--workers", type=int, default=2, help="processes that extract")
    options = parser.parse_args()
    requests = read_requests(options.packages)
    if options.step == "download":
        download(requests, options.work)
    else:
        extract(requests, options.work, options.workers)


if __name__ == "__main__":
    main()
