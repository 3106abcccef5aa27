"""Tests of `results`; crates/cli/tests/scripts runs them."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from results import Outcome, Result, Table, Tree, verdict

PASSES, FAILS, NOT_RUN = Outcome.PASSES, Outcome.FAILS, Outcome.NOT_RUN


class Verdict(unittest.TestCase):
    GOOD, BAD = Result("helm", PASSES, "3 charts"), Result("chart", FAILS, "no\nchart")
    MISSING = Result("real", NOT_RUN, "make peers")

    def test_what_is_not_run_is_said_at_the_end_and_fails_if_all_was_asked_for(self):
        code, last = verdict([self.GOOD, self.MISSING], named=False, may_miss=False)
        self.assertEqual((code, last[:2]), (1, ["NOT RUN: 1 of 2 checks. Nothing is known of:", "  real: make peers"]))
        self.assertIn("--may-miss", last[2])

    def test_what_is_not_run_may_be_missing_if_that_was_said_or_checks_were_named(self):
        for options in ({"named": True, "may_miss": False}, {"named": False, "may_miss": True}):
            code, last = verdict([self.GOOD, self.MISSING], **options)
            self.assertEqual((code, len(last)), (0, 2), options)
            self.assertTrue(last[0].startswith("NOT RUN: 1 of 2 checks"))

    def test_what_fails_fails_whatever_may_be_missing(self):
        self.assertEqual(verdict([self.GOOD, self.BAD], named=True, may_miss=True), (1, ["FAILED: 1 of 2 checks: chart"]))
        self.assertEqual(verdict([self.GOOD], named=False, may_miss=False), (0, []))
        self.assertEqual(str(self.BAD), "FAILS: no chart")


class Repository(unittest.TestCase):
    """In a repository of its own."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.root = pathlib.Path(self.place.name)
        self.git("init", "--quiet")
        self.commit("src/lib.rs", "one")

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@example.com", *words], check=True, capture_output=True)

    def write(self, file, text):
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text)

    def commit(self, file, text):
        self.write(file, text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", file)
        return Tree(self.root).commit

    def rows(self, table, *whats):
        lines = table.text([(what, "a judge") for what in whats]).splitlines()
        self.assertEqual(lines[0], "| what | judged by | commit | result |")
        return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines[2:]]

    def add(self, text, **results):
        table = Table(text)
        table.add({(what, "a judge"): result for what, result in results.items()}, Tree(self.root))
        return table

    def test_a_row_has_the_commit_that_was_judged_and_is_marked_once_that_is_another(self):
        first = Tree(self.root).commit
        self.assertRegex(first, "^[0-9a-f]{8}$")
        text = self.add("", one=Result("one", PASSES, "3 charts"), two=Result("two", PASSES, "passes")).text([("one", "a judge"), ("two", "a judge")])
        # What changes no program changes no result.
        self.commit("docs/packaging.md", text)
        self.commit("README.md", "words")
        table = self.add(text)
        self.assertEqual(self.rows(table, "one"), [["one", "a judge", first, "3 charts"]])
        second = self.commit("src/README.md", "part of a program")
        table = self.add(text, two=Result("two", FAILS, "no | chart"))
        marked = ["one", "a judge", f"{first} (another tree)", "3 charts"]
        self.assertEqual(self.rows(table, "one", "two"), [marked, ["two", "a judge", second, "FAILS: no / chart"]])
        # Marked once, and no more if it is so again.
        again = self.add(table.text([("one", "a judge")]))
        self.assertEqual(self.rows(again, "one"), [marked])
        self.git("revert", "--no-edit", "HEAD")
        self.assertEqual(self.rows(self.add(table.text([("one", "a judge")])), "one"), [marked[:2] + [first, "3 charts"]])

    def test_what_was_not_run_now_leaves_the_result_there_is(self):
        missing = Result("one", NOT_RUN, "make peers")
        table = self.add("", one=missing)
        self.assertEqual(self.rows(table, "one")[0][2:], ["", "NOT RUN: make peers"])
        self.assertEqual(self.rows(self.add(table.text([("one", "a judge")])), "one")[0][2:], ["", "NOT RUN"])
        self.assertFalse(table.passes(("one", "a judge")))
        text = self.add("", one=Result("one", PASSES, "3 programs")).text([("one", "a judge")])
        self.assertEqual(self.rows(self.add(text, one=missing), "one")[0][3], "3 programs")

    def test_changes_that_are_in_no_commit_are_of_another_tree_ever_after(self):
        self.write("docs/a.md", "words")
        clean = Tree(self.root).commit
        self.write("src/lib.rs", "two")
        self.assertEqual(Tree(self.root).commit, f"{clean}+changes")
        text = self.add("", one=Result("one", PASSES, "passes")).text([("one", "a judge")])
        self.git("checkout", "src/lib.rs")
        self.assertEqual(self.rows(self.add(text), "one")[0][2], f"{clean}+changes (another tree)")

    def test_rows_without_a_commit_and_rows_of_checks_that_are_gone_are_dropped(self):
        old = "| what | judged by | result |\n|---|---|---|\n| one | a judge | passes |\n| two | another | 0 of 3 |\n"
        self.assertEqual(self.rows(self.add(old), "one", "two"), [["one", "a judge", "", "NOT RUN"], ["two", "a judge", "", "NOT RUN"]])


if __name__ == "__main__":
    unittest.main()
