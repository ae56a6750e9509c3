"""THIRD_PARTY_NOTICES.md against the locks, and against what the installed distributions say of themselves."""

import re
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from tests.architecture.checkout import ROOT, pins

NOTICES = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
RUN_TIME, _, OTHERS = NOTICES.partition("### At run time")[2].partition("### For tests")

IN_OLDER_METADATA = {
    "Apache 2.0": {"Apache-2.0"},
    "Apache Software License": {"Apache-2.0"},
    "BSD 2-Clause License": {"BSD-2-Clause"},
    "BSD License": {"BSD-2-Clause", "BSD-3-Clause"},
    "MIT License": {"MIT"},
    "Mozilla Public License 2.0 (MPL 2.0)": {"MPL-2.0"},
}
"""What distributions wrote before licence expressions: spelling → the SPDX expressions it may stand for."""

READ_BY_HAND = {"hyperframe": "MIT", "protobuf": "BSD-3-Clause", "libcst": "MIT AND PSF-2.0 AND Apache-2.0"}
"""Distributions whose metadata holds prose."""


def table(section: str) -> dict[str, str]:
    """Distribution → licence, of one section's table."""
    return dict(re.findall(r"^\| ([a-z0-9-]+) \| (?!-)([^|]+?) \|", section, flags=re.MULTILINE)[1:])


def licences(name: str) -> set[str]:
    """The SPDX expressions that an installed distribution's metadata admits."""
    metadata = distribution(name).metadata.json
    stated = metadata.get("license_expression") or metadata.get("license")
    if stated is None:
        stated = next(line.rpartition(" :: ")[2] for line in metadata["classifier"] if line.startswith("License ::"))
    return IN_OLDER_METADATA.get(str(stated), {str(stated)})


def test_every_pinned_distribution_is_named_in_its_table_and_nothing_else() -> None:
    assert table(RUN_TIME).keys() == pins("runtime").keys()
    assert table(OTHERS).keys() == (pins("test") | pins("lock")).keys() - pins("runtime").keys()


@pytest.mark.parametrize(("name", "licence"), (table(RUN_TIME) | table(OTHERS)).items())
def test_a_named_licence_is_the_one_that_the_distribution_states(name: str, licence: str) -> None:
    try:
        stated = {READ_BY_HAND[name]} if name in READ_BY_HAND else licences(name)
    except PackageNotFoundError:
        return  # Pinned for another platform or Python version.

    assert licence in stated


def test_the_donor_of_the_behaviour_is_named_with_both_copyrights() -> None:
    assert "Copyright (c) 2026 Kilo Code" in NOTICES
    assert "Copyright (c) 2025 opencode" in NOTICES
