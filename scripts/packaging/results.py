"""What the checks of `scripts/test-packaging` come to: the end of a run, and the table of `docs/packaging.md`, whose rows say of which commit they are."""

import enum
import re
import subprocess

# What no program is made of: a commit that changes nothing else has the results of the one before it.
NOT_JUDGED = [":(top,exclude)docs", ":(top,exclude)bench", ":(top,exclude,glob)*.md"]
OLDER = " (another tree)"


class Outcome(enum.Enum):
    PASSES = ""
    FAILS = "FAILS"
    NOT_RUN = "NOT RUN"


class Result:
    """What a check came to, in one line."""

    def __init__(self, name, outcome, text):
        self.name, self.outcome, self.text = name, outcome, text.replace("\n", " ").replace("|", "/")

    def __str__(self):
        return ": ".join(filter(None, [self.outcome.value, self.text]))


def verdict(results, named, may_miss):
    """The exit code of a run, and what it says at its end. Where all checks were asked for, one that was not run fails, unless it may be missing."""
    failed = [result for result in results if result.outcome is Outcome.FAILS]
    missing = [result for result in results if result.outcome is Outcome.NOT_RUN]
    lines = []
    if missing:
        lines.append(f"NOT RUN: {len(missing)} of {len(results)} checks. Nothing is known of:")
        lines += [f"  {result.name}: {result.text}" for result in missing]
        if not named and not may_miss:
            lines.append("This fails, for all were asked for: build what is missing, name some checks, or say --may-miss.")
    if failed:
        lines.append(f"FAILED: {len(failed)} of {len(results)} checks: {', '.join(result.name for result in failed)}")
    return int(bool(failed) or bool(missing and not named and not may_miss)), lines


class Tree:
    """What is checked out: the sources that are judged."""

    def __init__(self, root):
        self.root = root
        changed = self.git("status", "--porcelain", "--", *NOT_JUDGED).stdout.strip()
        self.commit = self.git("rev-parse", "--short=8", "HEAD").stdout.strip() + ("+changes" if changed else "")

    def git(self, *words):
        return subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True)

    def is_that_of(self, commit):
        """Whether what was judged at a commit is what is checked out. Nobody knows what changes were that are in no commit."""
        if "+" in commit or "+" in self.commit:
            return False
        return self.git("diff", "--quiet", commit, "HEAD", "--", *NOT_JUDGED).returncode == 0


class Table:
    """The table with the results, and the text around it: a row for each check, by what is checked and who judges."""

    HEAD = "| what | judged by | commit | result |\n|---|---|---|---|\n"

    def __init__(self, text):
        """Reads the rows of a text. Those of which nobody knows the commit are left out."""
        rows = re.findall(r"^\| (.*) \|$", text, re.M)
        cells = [row.split(" | ", 3) for row in rows]
        self.rows = {tuple(row[:2]): row[2:] for row in cells if len(row) == 4 and re.match(r"[0-9a-f]{7,40}\b", row[2])}

    def passes(self, key):
        """Whether a check has a result, and not a bad one."""
        return key in self.rows and not self.rows[key][1].startswith((Outcome.FAILS.value, Outcome.NOT_RUN.value))

    def add(self, results, tree):
        """Puts the results of a run in the place of earlier ones, and marks those that are left and are of another tree."""
        for key, (commit, text) in self.rows.items():
            commit = commit.removesuffix(OLDER)
            self.rows[key] = [commit if tree.is_that_of(commit) else commit + OLDER, text]
        for key, result in results.items():
            if result.outcome is not Outcome.NOT_RUN:
                self.rows[key] = [tree.commit, str(result)]
            elif key not in self.rows:
                # Nothing is known of any commit.
                self.rows[key] = ["", str(result)]

    def text(self, keys):
        """The rows of these checks, in this order."""
        lines = [[*key, *self.rows.get(key, ["", Outcome.NOT_RUN.value])] for key in keys]
        return self.HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
