"""Where ignore rules come from on disk; git says which rule decides."""

import os
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings

from semindex.core.eligibility import FileTypes, Standing, Verdict
from semindex.core.judge import Unreadable
from semindex.files.reading import MAX_FILE_BYTES
from semindex.files.rules import IgnoreRules
from semindex.files.tree import WorkingTree
from semindex.model.errors import WorkspaceUnavailable
from semindex.ports import TreeScan
from tests.core.ignore_trees import Repository, Tree, trees
from tests.files.repositories import commit_all, git, write


class AllTypes(FileTypes):
    """Every file is of an indexed type: the ignore rules alone decide."""

    def includes(self, name: str) -> bool:
        return True


def tree_at(root: Path, types: FileTypes | None = None) -> WorkingTree:
    return WorkingTree(os.path.realpath(root), trio.CapacityLimiter(2), types=types)


async def found(root: Path) -> set[str]:
    return set((await tree_at(root).scan()).files)


async def agrees_with_git(root: Path, *paths: str) -> list[str]:
    """Check that git names the same file, line and pattern for each path; return these as git writes them."""
    top = Path(git(root, "rev-parse", "--show-toplevel").strip())
    tree, lines = tree_at(root), []
    for path in paths:
        line = git(root, "check-ignore", "--verbose", "--non-matching", "--no-index", path).partition("\t")[0]
        rule = (await tree.explain(path)).rule
        ours = "::" if rule is None else f"{same_file(root, rule.source)}:{rule.line}:{rule.pattern}"
        source, rest = line.split(":", 1)
        assert ours == (line if line == "::" else f"{same_file(top, source)}:{rest}"), path
        lines.append(line)
    return lines


def same_file(directory: Path, name: str) -> str:
    """Return one name for a file that can be named in several ways."""
    return os.path.realpath(directory / name)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tree=trees())
def test_a_scan_finds_exactly_what_git_does_not_ignore_and_explains_it_by_the_same_rule(
    git_repository: Path, tree: Tree
) -> None:
    repository = Repository(git_repository)
    repository.become(tree)
    decided = repository.decisions(sorted(tree.files))

    async def look() -> tuple[TreeScan, dict[bytes, Verdict]]:
        ours = tree_at(git_repository, AllTypes())
        return await ours.scan(), {path: await ours.explain(os.fsdecode(path)) for path in tree.files}

    scan, verdicts = trio.run(look)

    assert scan.files.keys() == {verdict.path for verdict in verdicts.values() if verdict.eligible}
    for path, verdict in verdicts.items():
        if verdict.standing in (Standing.ELIGIBLE, Standing.IGNORED):
            gits = decided[path]
            assert (gits and (gits.source, gits.line, gits.pattern)) == (
                verdict.rule and (verdict.rule.source, verdict.rule.line, verdict.rule.pattern)
            )
            assert (verdict.standing is Standing.IGNORED) == (gits is not None and not gits.pattern.startswith("!"))
        else:
            assert b"/." in b"/" + path or verdict.standing in (Standing.NAME, Standing.EXCLUDED_NAME)


async def test_info_exclude_is_weaker_than_ignore_files_and_global_excludes_are_weaker_still(
    git_repository: Path,
) -> None:
    home = Path(os.environ["XDG_CONFIG_HOME"])
    write(home, "git/ignore", text="global.py\nboth.py\nthree.py\n")
    write(git_repository, ".git/info/exclude", text="# local\ninfo.py\n!both.py\nthree.py\n")
    write(git_repository, ".gitignore", text="!three.py\n")
    write(git_repository, "global.py", "info.py", "both.py", "three.py", "src/info.py", "ok.py")

    assert await found(git_repository) == {"both.py", "three.py", "ok.py"}
    lines = await agrees_with_git(git_repository, "global.py", "info.py", "both.py", "three.py", "src/info.py", "ok.py")
    assert lines == [
        f"{home}/git/ignore:1:global.py",
        ".git/info/exclude:2:info.py",
        ".git/info/exclude:3:!both.py",
        ".gitignore:1:!three.py",
        ".git/info/exclude:2:info.py",
        "::",
    ]


async def test_the_global_excludes_file_is_the_one_that_the_configuration_names(
    git_repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    home = Path(os.environ["HOME"])
    write(home, "config/git/ignore", text="default.py\n")
    write(home, "my ignores", text="mine.py\n")
    write(git_repository, "default.py", "mine.py", "local.py")
    assert await found(git_repository) == {"mine.py", "local.py"}

    write(home, ".gitconfig", text='[core]\n\texcludesFile = "~/my ignores" ; mine\n')
    assert await found(git_repository) == {"default.py", "local.py"}
    await agrees_with_git(git_repository, "default.py", "mine.py", "local.py")

    write(git_repository, "local-ignores", text="local.py\n")
    git(git_repository, "config", "core.excludesFile", "local-ignores")
    assert await found(git_repository) == {"default.py", "mine.py"}
    await agrees_with_git(git_repository, "default.py", "mine.py", "local.py")


async def test_a_tracked_file_that_a_rule_matches_is_ignored(git_repository: Path) -> None:
    write(git_repository, "a.py", "b.py")
    commit_all(git_repository)
    write(git_repository, ".gitignore", text="a.py\n")

    assert await found(git_repository) == {"b.py"}


async def test_below_the_top_of_a_repository_the_rules_of_the_directories_above_apply(git_repository: Path) -> None:
    write(git_repository, ".git/info/exclude", text="/packages/app/info.py\n")
    write(git_repository, ".gitignore", text="*.gen.py\n/anchored.py\n/packages/app/exact.py\nlib/\n")
    write(git_repository, "packages/.kilocodeignore", text="!keep.gen.py\n/app/kilo.py\n")
    root = git_repository / "packages/app"
    write(root, ".gitignore", text="!own.gen.py\n")
    paths = ["a.gen.py", "keep.gen.py", "own.gen.py", "anchored.py", "exact.py", "info.py", "lib/a.py", "src/lib/a.py"]
    write(root, *paths, "kilo.py")

    assert await found(root) == {"keep.gen.py", "own.gen.py", "anchored.py"}
    await agrees_with_git(root, "a.gen.py", "own.gen.py", "anchored.py", "exact.py", "info.py", "lib/a.py")


async def test_a_root_that_its_repository_ignores_follows_its_own_rules_alone(git_repository: Path) -> None:
    write(git_repository, ".gitignore", text="scratch/\n*.gen.py\n")
    root = git_repository / "scratch/project"
    write(root, "a.py", "b.gen.py", "c.py")
    write(root, ".gitignore", text="c.py\n")

    assert await found(root) == {"a.py", "b.gen.py"}


async def test_a_linked_worktree_shares_info_exclude_with_its_primary_checkout(
    git_repository: Path, tmp_path: Path
) -> None:
    commit_all(git_repository)
    git(git_repository, "worktree", "add", "--quiet", str(tmp_path / "linked"), "-b", "work")
    write(git_repository, ".git/info/exclude", text="info.py\n")
    write(tmp_path / "linked", "info.py", "ok.py")

    assert await found(tmp_path / "linked") == {"ok.py"}
    await agrees_with_git(tmp_path / "linked", "info.py", "ok.py")


async def test_an_edit_of_rules_outside_of_the_tree_reevaluates_it(git_repository: Path) -> None:
    write(git_repository, "src/a.py", "src/b.py")
    tree = tree_at(git_repository)
    assert (await tree.scan()).files.keys() == {"src/a.py", "src/b.py"}

    write(git_repository, ".git/info/exclude", text="a.py\n")
    assert (await tree.scan()).files.keys() == {"src/b.py"}

    write(Path(os.environ["XDG_CONFIG_HOME"]), "git/ignore", text="b.py\n")
    assert (await tree.scan()).files.keys() == set()


async def test_what_unreadable_rules_might_ignore_is_not_indexed(git_repository: Path) -> None:
    write(git_repository, "a.py", "src/b.py", "src/deep/c.py")
    write(git_repository, "src/.gitignore", text="#" * (MAX_FILE_BYTES + 1))
    tree = tree_at(git_repository)
    scan = await tree.scan()

    assert scan.files.keys() == {"a.py"}
    assert scan.unreadable == {"src": "src/.gitignore cannot be read: The file is larger than 1 MiB."}
    assert (await tree.explain("src/deep/c.py")).standing is Standing.UNREADABLE
    assert await tree.hashes(["src/b.py"]) == {"src/b.py": None}

    write(git_repository, ".gitignore", text="#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(WorkspaceUnavailable, match=r"\.gitignore cannot be read"):
        await tree.scan()
    with pytest.raises(WorkspaceUnavailable, match=r"\.gitignore cannot be read"):
        await tree.look(["a.py"])


def test_rules_are_the_same_object_until_their_text_changes(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", text="a.py\n")
    rules = IgnoreRules(str(tmp_path), [], {})
    first, base = rules.of_directory(""), rules.base()
    write(tmp_path, ".gitignore", text="a.py\n")

    assert rules.of_directory("") == first
    assert rules.base() is base

    write(tmp_path, ".gitignore", text="b.py\n")
    assert rules.of_directory("") != first

    (tmp_path / ".gitignore").unlink()
    assert rules.of_directory("") == {}


def test_rules_that_cannot_be_read_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    write(tmp_path, "src/.kilocodeignore", text="#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(Unreadable, match=r"^src/\.kilocodeignore cannot be read: The file is larger"):
        IgnoreRules(str(tmp_path), [], {}).of_directory("src")
