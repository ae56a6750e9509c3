"""What every source tree must do: subclass the suite and provide the world that its files are written in."""

from typing import Protocol

import pytest

from semindex.core.eligibility import Standing
from semindex.files.reading import MAX_FILE_BYTES
from semindex.model.errors import TooManyFiles, WorkspaceUnavailable
from semindex.model.ids import file_hash
from semindex.ports import SourceTree


class World(Protocol):
    """The files below a root, and the tree under test that shows them."""

    @property
    def tree(self) -> SourceTree: ...

    def small_tree(self, max_files: int) -> SourceTree:
        """Return a second tree over the same files that may have so many at most."""

    def write(self, path: str, data: bytes | str) -> None: ...

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with all that is in it; the root if the path is empty."""


TEXT = "def f():\n    return 1\n"


class SourceTreeConformance:
    async def test_a_scan_finds_files_of_indexed_types_with_their_signatures(self, world: World) -> None:
        for path in ("main.py", "src/deep/er/ünï 文件.ts", "Makefile", "notes.txt", "LICENSE"):
            world.write(path, TEXT)

        scan = await world.tree.scan()

        assert scan.files.keys() == {"main.py", "src/deep/er/ünï 文件.ts", "Makefile"}
        assert {signature.size for signature in scan.files.values()} == {len(TEXT)}
        assert (scan.skipped, scan.unreadable) == ({}, {})
        assert set(scan.directories) == {"", "src", "src/deep", "src/deep/er"}

    async def test_signatures_stay_until_a_file_changes(self, world: World) -> None:
        world.write("a.py", TEXT)
        world.write("b.py", TEXT)
        first = await world.tree.scan()
        world.write("b.py", TEXT + "# more\n")
        second = await world.tree.scan()

        assert second.files["a.py"] == first.files["a.py"]
        assert second.files["b.py"] != first.files["b.py"]

    async def test_files_come_and_go(self, world: World) -> None:
        world.write("src/a.py", TEXT)
        world.write("other/b.py", TEXT)
        assert (await world.tree.scan()).files.keys() == {"src/a.py", "other/b.py"}

        world.delete("other")
        world.write("src/c.py", TEXT)
        assert (await world.tree.scan()).files.keys() == {"src/a.py", "src/c.py"}

        world.delete("src/a.py")
        world.write("src/a.py/now/a/directory.py", TEXT)
        assert (await world.tree.scan()).files.keys() == {"src/c.py", "src/a.py/now/a/directory.py"}

    async def test_excluded_and_dot_names_are_neither_found_nor_entered(self, world: World) -> None:
        for path in (
            "node_modules/a.py",
            "src/build/deep/a.py",
            ".venv/a.py",
            "src/.a.py",
            "src/tmp/a.py",
            "src/ok.py",
        ):
            world.write(path, TEXT)

        scan = await world.tree.scan()

        assert scan.files.keys() == {"src/ok.py"}
        assert set(scan.directories) == {"", "src"}

    async def test_ignore_files_count_at_every_level(self, world: World) -> None:
        world.write(".gitignore", "*.gen.py\n/out_dir/\n")
        world.write("src/.gitignore", "!keep.gen.py\n")
        world.write("src/.kilocodeignore", "secret.py\n")
        for path in ("a.gen.py", "out_dir/a.py", "src/keep.gen.py", "src/a.gen.py", "src/secret.py", "secret.py"):
            world.write(path, TEXT)

        scan = await world.tree.scan()

        assert scan.files.keys() == {"src/keep.gen.py", "secret.py"}
        assert set(scan.directories) == {"", "src"}

    async def test_an_edited_ignore_file_reevaluates_what_lies_below(self, world: World) -> None:
        world.write(".gitignore", "a.py\n")
        for path in ("a.py", "src/deep/a.py", "src/deep/b.py"):
            world.write(path, TEXT)
        assert (await world.tree.scan()).files.keys() == {"src/deep/b.py"}

        world.write(".gitignore", "b.py\n")
        assert (await world.tree.scan()).files.keys() == {"a.py", "src/deep/a.py"}

        world.delete(".gitignore")
        assert (await world.tree.scan()).files.keys() == {"a.py", "src/deep/a.py", "src/deep/b.py"}

        world.write("src/.kilocodeignore", "deep\n")
        assert (await world.tree.scan()).files.keys() == {"a.py"}

    async def test_a_file_above_the_limit_is_skipped_with_a_reason_while_it_is_above(self, world: World) -> None:
        world.write("exact.py", b"a" * MAX_FILE_BYTES)
        world.write("over.py", b"a" * (MAX_FILE_BYTES + 1))
        world.write("ignored.py", b"a" * (MAX_FILE_BYTES + 1))
        world.write(".gitignore", "ignored.py")
        scan = await world.tree.scan()

        assert scan.files.keys() == {"exact.py"}
        assert dict(scan.skipped) == {"over.py": "The file is larger than 1 MiB."}

        world.write("exact.py", b"a" * (MAX_FILE_BYTES + 1))
        world.write("over.py", b"a")
        scan = await world.tree.scan()

        assert scan.files.keys() == {"over.py"}
        assert scan.skipped.keys() == {"exact.py"}

    async def test_more_files_than_allowed_are_refused(self, world: World) -> None:
        for number in range(3):
            world.write(f"src{number}/a.py", TEXT)

        assert len((await world.small_tree(3).scan()).files) == 3
        with pytest.raises(TooManyFiles, match="more than 2"):
            await world.small_tree(2).scan()

    async def test_a_root_that_is_gone_is_unavailable_and_not_empty(self, world: World) -> None:
        world.write("a.py", TEXT)
        await world.tree.scan()
        world.delete("")

        with pytest.raises(WorkspaceUnavailable):
            await world.tree.scan()
        with pytest.raises(WorkspaceUnavailable):
            await world.tree.look(["a.py"])
        assert await world.tree.hashes(["a.py"]) == {"a.py": None}

    async def test_looking_at_paths_tells_what_a_scan_tells_of_them(self, world: World) -> None:
        world.write(".gitignore", "ignored.py\n")
        for path in ("a.py", "src/b.py", "src/c.py", "ignored.py", "notes.txt", "build/a.py"):
            world.write(path, TEXT)
        world.write("src/over.py", b"a" * (MAX_FILE_BYTES + 1))
        paths = [
            "a.py",
            "src/b.py",
            "ignored.py",
            "notes.txt",
            "build/a.py",
            "src/over.py",
            "gone.py",
            "src",
            "../a.py",
            "",
        ]
        scan, looked = await world.tree.scan(), await world.tree.look(paths)

        assert looked.files == {path: scan.files[path] for path in ("a.py", "src/b.py")}
        assert looked.skipped == scan.skipped
        assert looked.unreadable == {}

    async def test_hashes_are_those_of_the_decoded_text(self, world: World) -> None:
        world.write("a.py", TEXT)
        world.write("src/b.py", b"\xef\xbb\xbfx = '\xff'\r\n")

        assert await world.tree.hashes(["a.py", "src/b.py"]) == {
            "a.py": file_hash(TEXT),
            "src/b.py": file_hash("\ufeffx = '\ufffd'\r\n"),
        }

    async def test_only_readable_eligible_files_have_a_hash(self, world: World) -> None:
        world.write(".gitignore", "ignored.py\n")
        for path in ("ignored.py", "notes.txt", "node_modules/a.py", "src/a.py"):
            world.write(path, TEXT)
        world.write("binary.py", b"a\0b")
        world.write("over.py", b"a" * (MAX_FILE_BYTES + 1))
        paths = ["ignored.py", "notes.txt", "node_modules/a.py", "binary.py", "over.py", "gone.py", "src", "src/"]
        paths += [
            "",
            ".",
            "/src/a.py",
            "../src/a.py",
            "src/../src/a.py",
            "src//a.py",
            "src/a.py/b.py",
            "a\0.py",
            "\ud800.py",
        ]

        assert await world.tree.hashes(paths) == dict.fromkeys(paths)

    async def test_a_hash_is_of_the_content_now(self, world: World) -> None:
        world.write("a.py", TEXT)
        before = await world.tree.hashes(["a.py"])
        world.write("a.py", TEXT.replace("1", "2"))
        after = await world.tree.hashes(["a.py"])
        world.write(".kilocodeignore", "a.py")

        assert before == {"a.py": file_hash(TEXT)}
        assert after == {"a.py": file_hash(TEXT.replace("1", "2"))}
        assert await world.tree.hashes(["a.py"]) == {"a.py": None}

    async def test_many_paths_are_hashed_in_one_call(self, world: World) -> None:
        for number in range(200):
            world.write(f"src{number % 7}/a{number}.py", f"x = {number}\n")
        paths = list((await world.tree.scan()).files)

        assert await world.tree.hashes(paths) == {
            path: file_hash(f"x = {path[path.index('/a') + 2 : -3]}\n") for path in paths
        }

    @pytest.mark.parametrize(
        ("path", "standing", "decided_by"),
        [
            ("src/a.py", Standing.ELIGIBLE, "src/a.py"),
            ("src", Standing.DIRECTORY, "src"),
            ("build/deep/a.py", Standing.EXCLUDED_NAME, "build"),
            ("build", Standing.EXCLUDED_NAME, "build"),
            ("src/.hidden/a.py", Standing.DOT_NAME, "src/.hidden"),
            ("src/.gitignore", Standing.DOT_NAME, "src/.gitignore"),
            ("src/debug.log", Standing.EXCLUDED_NAME, "src/debug.log"),
            ("src/notes.txt", Standing.TYPE, "src/notes.txt"),
            ("src/gen/a.py", Standing.IGNORED, "src/gen"),
            ("src/over.py", Standing.SIZE, "src/over.py"),
            ("src/gone.py", Standing.MISSING, "src/gone.py"),
            ("gone/deep/a.py", Standing.MISSING, "gone"),
            ("src/a.py/b.py", Standing.MISSING, "src/a.py"),
            ("../a.py", Standing.OUTSIDE, "../a.py"),
            ("/src/a.py", Standing.OUTSIDE, "/src/a.py"),
            ("src/\0.py", Standing.OUTSIDE, "src/\0.py"),
        ],
    )
    async def test_a_path_is_explained(self, world: World, path: str, standing: Standing, decided_by: str) -> None:
        world.write("src/.gitignore", "# generated\ngen/\n")
        for each in (
            "src/a.py",
            "build/deep/a.py",
            "src/.hidden/a.py",
            "src/debug.log",
            "src/notes.txt",
            "src/gen/a.py",
        ):
            world.write(each, TEXT)
        world.write("src/over.py", b"a" * (MAX_FILE_BYTES + 1))
        verdict = await world.tree.explain(path)

        assert (verdict.path, verdict.standing, verdict.decided_by) == (path, standing, decided_by)
        assert verdict.eligible == (standing is Standing.ELIGIBLE)
        assert (verdict.signature is not None) == verdict.eligible
        assert verdict.reason.endswith(".") == (standing is not Standing.IGNORED)

    async def test_an_explanation_names_the_rule_that_ignores_a_path_or_keeps_it(self, world: World) -> None:
        world.write(".gitignore", "\n*.py\n")
        world.write("src/.kilocodeignore", "# ours\n!a.py\n")
        world.write("a.py", TEXT)
        world.write("src/a.py", TEXT)
        ignored, kept = await world.tree.explain("a.py"), await world.tree.explain("src/a.py")

        assert ignored.rule is not None
        assert (ignored.rule.source, ignored.rule.line, ignored.rule.pattern) == (".gitignore", 2, "*.py")
        assert ignored.reason == ".gitignore, line 2, ignores it: *.py"
        assert kept.rule is not None
        assert (kept.rule.source, kept.rule.line, kept.rule.negated) == ("src/.kilocodeignore", 2, True)
        assert kept.eligible
