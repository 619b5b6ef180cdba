# Runs one module of CPython's own regression tests and prints what became of each
# test. Standard input: {"module": NAME, "leave": {ID: reason}}. The last line of
# standard output: MARK and a JSON object. A line in standard error names each test
# before it begins, for tests that end the interpreter.
import json
import os
import sys
import unittest

sys.path.insert(0, "/data")
from test import support

MARK = "@@result "

task = json.loads(sys.stdin.readline())
os.chdir("/work")
# Nothing that needs a network, a minute of CPU or gigabytes.
support.use_resources = {}
support.verbose = False
# Some modules read the file of the interpreter when they are imported. There is none
# in the sandbox, and any file will do.
sys.executable = __file__


def last(error):
    """The last line of a traceback, short enough for the reader."""
    kind, value, _ = error
    try:
        lines = str(value).strip().split("\n")
        # A module that could not be imported comes with a traceback in the message.
        text = lines[-1 if len(lines) > 2 and lines[1].startswith("Traceback") else 0]
    except Exception:
        text = "?"
    return f"{kind.__name__}: {text}"[:160].rstrip(": ")


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.outcomes = {}
        self.reasons = {}

    def note(self, test, outcome, reason=""):
        name = test.id()
        # A failure of a part is a failure of the test, whatever follows.
        if self.outcomes.get(name) in ("failed", "error"):
            return
        self.outcomes[name] = outcome
        if reason:
            self.reasons[name] = reason

    def startTest(self, test):
        super().startTest(test)
        os.write(2, ("@@ " + test.id() + "\n").encode("utf-8", "backslashreplace"))

    def addSuccess(self, test):
        self.note(test, "passed")

    def addError(self, test, err):
        self.note(test, "error", last(err))

    def addFailure(self, test, err):
        self.note(test, "failed", last(err))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failed" if issubclass(err[0], test.failureException) else "error", last(err))

    def addSkip(self, test, reason):
        test = getattr(test, "test_case", test)  # a part that is skipped
        if self.outcomes.get(test.id()) is None:
            self.note(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "unexpected success")


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def leave(suite):
    """Takes the tests out that are to be left, and keeps the suites, whose classes
    have set-ups."""
    kept = unittest.TestSuite()
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            kept.addTest(leave(test))
        elif test.id() not in task["leave"]:
            kept.addTest(test)
    return kept


result = Result()
whole = ""
out = 1
try:
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromName("test." + task["module"])
    suite = leave(suite)
    suite.run(result)
except unittest.SkipTest as e:
    whole = f"skipped: {e}"
except BaseException as e:
    whole = f"error: {last((type(e), e, None))}"
sys.stdout = sys.__stdout__
sys.stdout.flush()
rest = ("\n" + MARK + json.dumps({"whole": whole, "outcomes": result.outcomes, "reasons": result.reasons}) + "\n").encode()
while rest:
    rest = rest[os.write(out, rest):]
