import json

import pytest

from training.licences import DebianCopyright, Verdict, is_permissive, of_npm, of_wheel


@pytest.mark.parametrize(
    "expression",
    [
        *("MIT", "mit license", "The MIT License", "Expat", "MIT/Expat", "MIT-0"),
        *(
            "BSD",
            "BSD-3-Clause",
            "BSD-2-clause",
            "0BSD",
            "New BSD License",
            "3-Clause BSD License",
            "BSD-3-clause~Intel",
        ),
        *("Apache-2.0", "Apache 2", "Apache License, Version 2.0", "Apache Software License", "ISC", "ISCL"),
        *("Apache-2.0 WITH LLVM-exception", "PSF-2.0", "Python Software Foundation License", "Unlicense", "CC0-1.0"),
        *("MIT OR GPL-3.0-only", "GPL-2+ or Expat", "(MIT OR GPL-3.0) AND BSD-3-Clause", "MIT AND (ISC OR LGPL-3.0)"),
        *("MIT || GPL-2.0", "MIT, BSD-3-Clause", "ISC License (ISCL)", "MIT License (see LICENSE)"),
    ],
)
def test_permissive_licences_are_recognised_however_they_are_written(expression: str) -> None:
    assert is_permissive(expression)


@pytest.mark.parametrize(
    "expression",
    [
        *("", "none", "GPL-3.0", "LGPL-2.1+", "MPL-2.0", "AGPL-3.0-only", "Proprietary", "Apache-1.1", "CC-BY-SA-4.0"),
        *("MIT AND GPL-2.0", "(MIT OR Apache-2.0) AND LGPL-3.0", "GPL-2+ or LGPL-3", "MIT, GPL-3", "BSD-4-clause"),
        *(
            "MIT-ish",
            "SEE LICENSE IN LICENSE.txt",
            "GPL-3 (MIT for the docs)",
            "Apache-2.0 and CC-BY-4.0",
        ),
        "MIT AND (GPL-2.0)",
    ],
)
def test_every_other_licence_is_refused(expression: str) -> None:
    assert not is_permissive(expression)


@pytest.mark.parametrize(
    ("metadata", "verdict"),
    [
        ("License-Expression: MIT\nClassifier: License :: OSI Approved :: GNU GPL\n", Verdict("MIT", True)),
        (
            "License: whatever\nClassifier: License :: OSI Approved :: MIT License\nClassifier: Topic :: Software\n",
            Verdict("MIT License", True),
        ),
        (
            "Classifier: License :: OSI Approved :: MIT License\nClassifier: License :: OSI Approved :: GPLv3\n",
            Verdict("MIT License; GPLv3", False),
        ),
        ("License: BSD 3-Clause\n", Verdict("BSD 3-Clause", False)),
        ("License: BSD-3-Clause\n", Verdict("BSD-3-Clause", True)),
        ("License: MIT\n        and more words of what looks like the text of a whole licence, which it is\n", None),
        ("Name: nothing\n", Verdict("none", False)),
    ],
)
def test_a_wheel_is_judged_by_expression_then_classifiers_then_the_short_field(
    metadata: str, verdict: Verdict | None
) -> None:
    found = of_wheel(f"Metadata-Version: 2.4\n{metadata}\nMIT\n")

    assert found == verdict if verdict else not found.permissive


@pytest.mark.parametrize(
    ("package", "verdict"),
    [
        ({"license": "MIT"}, Verdict("MIT", True)),
        ({"license": "(MIT OR GPL-3.0)"}, Verdict("(MIT OR GPL-3.0)", True)),
        ({"license": {"type": "ISC", "url": "x"}}, Verdict("ISC", True)),
        ({"licenses": [{"type": "MIT"}, {"type": "GPL-2.0"}]}, Verdict("MIT; GPL-2.0", False)),
        ({"licenses": []}, Verdict("none", False)),
        ({"license": {"url": "x"}}, Verdict("none", False)),
        ({}, Verdict("none", False)),
    ],
)
def test_an_npm_package_is_judged_by_each_form_of_its_licence_field(package: object, verdict: Verdict) -> None:
    assert of_npm(json.dumps(package)) == verdict


COPYRIGHT = """\
Format: copyright-format/1.0

Files: *
Copyright: someone
License: Expat
 Permission is hereby granted

Files: src/gpl/*
 lib/?.c
Copyright: someone else
License: GPL-2+

Files: src/gpl/free.c
License: BSD-3-clause or GPL-2

Files: debian/*
License: GPL-3+

License: GPL-2+
 text of a licence, no stanza of files
"""


def test_the_last_stanza_that_matches_a_path_decides() -> None:
    rules = DebianCopyright(COPYRIGHT)

    assert rules.of("src/main.c") == Verdict("Expat", True)
    assert rules.of("src/gpl/deep/copy.c") == Verdict("GPL-2+", False)
    assert rules.of("lib/a.c") == Verdict("GPL-2+", False)
    assert rules.of("lib/ab.c") == Verdict("Expat", True)
    assert rules.of("src/gpl/free.c") == Verdict("BSD-3-clause or GPL-2", True)


def test_a_debian_package_as_a_whole_needs_every_upstream_stanza() -> None:
    assert DebianCopyright(COPYRIGHT).upstream() == Verdict("BSD-3-clause or GPL-2; Expat; GPL-2+", False)
    assert DebianCopyright(COPYRIGHT).main() == Verdict("Expat", True)
    assert DebianCopyright(COPYRIGHT.replace("License: GPL-2+", "License: ISC")).upstream().permissive


def test_a_free_form_copyright_file_allows_nothing() -> None:
    free = "This package is under the MIT license.\n\nFiles: *\nLicense: MIT\n"

    assert DebianCopyright(free).upstream() == Verdict("none", False)
    assert DebianCopyright(free).of("any.c") == Verdict("none", False)
