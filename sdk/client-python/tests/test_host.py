"""Every method of the client against a host; examples/client_python_test.go starts one, and
says where."""

import os
import shutil
import tempfile
import unittest

from openskill_client import Client, Error, StoppedError, TimedOut

HOST = os.environ.get("OPENSKILL_TEST_HOST", "")

MANIFEST = """id: %s
version: 0.1.0
description: Waits as long as it is asked to.
type: wasm
runtime: javascript
entry: main.mjs
limits: {timeout_ms: 60000}
"""
PROGRAM = """import * as std from 'std';
const { spin } = JSON.parse(std.in.readAsString()).input;
while (spin) {}
console.log('{"done": true}');
"""


@unittest.skipUnless(HOST, "OPENSKILL_TEST_HOST names no host")
class Host(unittest.TestCase):
    def setUp(self):
        self.c = Client(HOST).with_trace_id("by-python")

    def folder(self, skill_id):
        dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, dir)
        for name, text in (("skill.yaml", MANIFEST % skill_id), ("main.mjs", PROGRAM)):
            with open(os.path.join(dir, name), "w") as f:
                f.write(text)
        return dir

    def test_skills(self):
        r = self.c.invoke("add_numbers", {"num1": 1, "num2": 1})
        self.assertEqual((r.data, r.trace_id, r.skill_id, r.meta["runner"]), ({"sum": 2}, "by-python", "add_numbers", "wasm:javascript"))
        e = self.c.execution(r.meta["execution_id"])
        self.assertEqual((e["status"], e["skill"], e["trace_id"]), ("success", "add_numbers", "by-python"))
        with self.assertRaises(Error) as failed:
            self.c.invoke("add_numbers")
        self.assertEqual((failed.exception.code, failed.exception.status, failed.exception.trace_id), ("INVALID_ARGUMENT", 400, "by-python"))
        self.assertTrue(failed.exception.details["fields"])
        self.assertIs(failed.exception.result["success"], False)
        self.assertIn("add_numbers", [d["id"] for d in self.c.skills()])
        d = self.c.skill("add_numbers")
        self.assertEqual((d["limits"]["timeout_ms"], d["trust"], d["enabled"]), (60000, "trusted", True))
        with self.assertRaises(Error) as failed:
            self.c.skill("nope")
        self.assertEqual((failed.exception.code, failed.exception.status), ("NOT_FOUND", 404))
        self.assertIn("greeter", [s["name"] for s in self.c.agent_skills()])
        self.assertIn("Run scripts/hi.js", self.c.agent_skill("greeter")["content"])
        for format in ("openai", "anthropic", "mcp"):
            self.assertIn("add_numbers", str(self.c.tools(format)))
            self.assertIsInstance(self.c.tools(format), list)

    def test_limits(self):
        with self.assertRaises(Error) as failed:
            self.c.invoke("add_numbers", {"num1": 1, "num2": 1}, limits={"fuel": 1000})
        self.assertEqual((failed.exception.code, failed.exception.status), ("FUEL_EXHAUSTED", 422))

    def test_uploads_and_runs(self):
        dir = self.folder("spinner")
        checked = self.c.upload(dir, dry_run=True)
        self.assertEqual(checked["state"], "dry_run")
        made = self.c.upload(dir)
        self.assertEqual((made["id"], made["version"], made["state"], made["digest"]), ("spinner", "0.1.0", "disabled", checked["digest"]))
        with self.assertRaises(Error) as failed:
            self.c.upload(dir)
        self.assertEqual((failed.exception.code, failed.exception.status), ("CONFLICT", 409))
        with self.assertRaises(Error) as failed:
            self.c.upload(b"no archive")
        self.assertEqual(failed.exception.code, "ARCHIVE_REJECTED")
        self.assertIn("report", failed.exception.details)
        self.assertEqual(self.c.enable("spinner")["state"], "enabled")

        run = self.c.start("spinner")
        self.assertEqual(run.wait(60).data, {"done": True})
        self.assertTrue(run.done())

        run = self.c.start("spinner", {"spin": True})
        self.assertFalse(run.done())
        with self.assertRaises(TimedOut):
            run.wait(0)
        run.cancel()
        with self.assertRaises(Error) as failed:
            run.wait(60)
        self.assertEqual(failed.exception.code, "CANCELLED")
        self.assertEqual(run.cancel()["status"], "terminated")

        run = self.c.start("spinner", {"spin": True}, limits={"timeout_ms": 200})
        with self.assertRaises(Error) as failed:
            run.wait(60)
        self.assertEqual((failed.exception.code, failed.exception.status), ("TIMEOUT", 408))

        self.assertEqual(self.c.disable("spinner")["state"], "disabled")
        with self.assertRaises(Error) as failed:
            self.c.start("spinner")
        self.assertEqual(failed.exception.status, 404)
        self.assertEqual(self.c.delete_version("spinner", "0.1.0")["state"], "deleted")

    def test_the_agent(self):
        a = self.c.new_agent()
        self.assertEqual(a.run("add them"), "It is 8.")
        self.assertTrue(a.last["tool_calls"][0]["success"])
        shown = []
        a.hear = lambda event: shown.append(event.result + event.text)
        self.assertEqual(a.run("add again"), "It is 8.")
        self.assertEqual("".join(shown), '{"sum":8}It is 8.')
        for yes, want in ((True, "It said hi."), (False, "I may not.")):
            with self.assertRaises(StoppedError) as stopped:
                a.run("greet me")
            waits = stopped.exception.answer["approvals"][0]
            w = self.c.approval(waits["approval_id"])
            self.assertEqual((w["state"], w["script"]), ("pending", "scripts/hi.js"))
            v = self.c.conversation(a.conversation)
            self.assertEqual((v["pending"], v["messages"][0]["role"]), ([waits], "user"))
            if yes:
                answer = self.c.approve(a.conversation, True, waits["approval_id"])
                with self.assertRaises(Error):  # it was decided already
                    list(self.c.approve_stream(a.conversation, True, waits["approval_id"]))
            else:
                answer = list(self.c.approve_stream(a.conversation, False))[-1].answer
            self.assertEqual((answer["answer"], answer["stop_reason"]), (want, "completed"))
        self.assertEqual(len(self.c.session(a.conversation)["iterations"]), 3)
        self.assertIn((a.conversation, "add them"), [(s["id"], s["title"]) for s in self.c.conversations()])
        self.c.delete_conversation(a.conversation)
        with self.assertRaises(Error) as failed:
            a.run("add")
        self.assertEqual(failed.exception.code, "NOT_FOUND")

    def test_a_stream_that_is_left(self):
        for event in self.c.chat_stream("add them"):
            self.assertEqual(event.kind, "start")
            break
        self.assertEqual(self.c.invoke("add_numbers", {"num1": 1, "num2": 2}).data, {"sum": 3})

    def test_tasks(self):
        o = self.c.execute("Add 1 and 2.", {"for": "a test"}, {"max_iterations": 3})
        self.assertEqual((o["status"], o["iterations"]), ("completed", 1))
        self.assertIn("It is 3.", str(o["result"]))
        s = self.c.session(o["session_id"])
        self.assertEqual((s["status"], len(s["iterations"])), ("completed", 1))
        with self.assertRaises(Error) as failed:
            self.c.execute("")
        self.assertEqual(failed.exception.code, "AGENT_INVALID_TASK")


if __name__ == "__main__":
    unittest.main()
