"""Holds an MCP server of openskill to the official SDK for Python, which others wrote.

    client.py SKILLS stdio COMMAND…    starts the server and talks to it over its streams
    client.py SKILLS http URL          talks to one that runs

SKILLS is the folder of the server's skills: echoes, which gives back n; sleeps, which
does not end; and the Agent Skill unit-converter with a script that does not end, in
which this client writes a file.
PYTHON=no in the environment says that the host has no Python runtime. Each thing that
holds is a line "ok …"; the first that does not ends the program.
"""

import base64
import hashlib
import os
import pathlib
import re
import sys

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
TOOLS = ["load_skill", "read_skill_resource", "run_skill_script"]
FILE = "skill://unit-converter/SKILL.md"


class Params(types.RequestParams):
    uri: str | None = None


class Skill(BaseModel):
    uri: str
    frontmatter: dict
    resources: list[dict] | str


class Skills(types.Result):
    skills: list[Skill]


class OneSkill(types.Result):
    skill: Skill


class Directory(types.Result):
    resources: list[types.Resource]


def ask(method: str, **params):
    return types.Request[Params, str](method=method, params=Params(**params))


def text(result) -> str:
    return "".join(c.text for c in result.content if c.type == "text")


async def refused(coroutine, code: int) -> str:
    try:
        await coroutine
    except MCPError as e:
        assert e.code == code, (e.code, e)
        return str(e)
    raise AssertionError("it was not refused")


async def lists(c: Client, revision: str) -> None:
    assert c.protocol_version == revision, c.protocol_version
    assert c.server_info is not None and c.server_info.name == "openskill", c.server_info
    assert "unit-converter" in (c.instructions or ""), c.instructions
    assert "io.modelcontextprotocol/skills" in (c.server_capabilities.extensions or {}), c.server_capabilities
    tools = {t.name: t for t in (await c.list_tools()).tools}
    # A server takes skills; a program of the client's own does not.
    assert [n for n in tools if n != "propose_skill"] == [*TOOLS, "echoes", "run_code", "sleeps"], list(tools)
    assert tools["echoes"].input_schema["required"] == ["n"], tools["echoes"]
    assert tools["echoes"].output_schema["properties"], tools["echoes"]
    assert tools["load_skill"].annotations.read_only_hint, tools["load_skill"]


async def calls(c: Client) -> None:
    good = await c.call_tool("echoes", {"n": 7}, meta={"openskill/trace_id": "python-1"})
    assert not good.is_error and good.structured_content == {"n": 7}, good
    assert '"n"' in text(good), good
    assert good.meta["openskill/result"]["trace_id"] == "python-1", good.meta
    bad = await c.call_tool("echoes", {"n": "seven", "m": 1})
    assert bad.is_error and text(bad).startswith("INVALID_ARGUMENT: "), bad
    await refused(c.call_tool("nosuch", {}), types.INVALID_PARAMS)


async def code(c: Client) -> None:
    """A file goes into code, and one comes out by its link."""
    if os.environ.get("PYTHON") == "no":
        return
    program = "n = len(open('in/a.txt').read())\nopen('out.bin', 'wb').write(bytes(range(256)))\nopen('out.txt', 'w').write('é' * n)\nn"
    ran = await c.call_tool("run_code", {"language": "python", "code": program, "files": [{"name": "in/a.txt", "text": "hay"}]})
    assert not ran.is_error and ran.structured_content == {"stdout": "", "value": 3}, ran
    links = {block.name: block for block in ran.content if block.type == "resource_link"}
    assert sorted(links) == ["out.bin", "out.txt"], ran.content
    assert links["out.bin"].size == 256, links
    binary = (await c.read_resource(links["out.bin"].uri)).contents[0]
    assert base64.b64decode(binary.blob) == bytes(range(256)), binary
    plain = (await c.read_resource(links["out.txt"].uri)).contents[0]
    assert plain.text == "ééé" and plain.mime_type.startswith("text/plain"), plain
    again = {"name": "b.bin", "execution_id": str(links["out.bin"].uri).split("/")[3], "artifact": "out.bin"}
    ran = await c.call_tool("run_code", {"language": "shell", "code": "wc -c < b.bin", "files": [again]})
    assert not ran.is_error and ran.structured_content["stdout"].strip() == "256", ran
    failed = await c.call_tool("run_code", {"language": "python", "code": "1 / 0"})
    assert failed.is_error and "line 1" in text(failed), failed
    await refused(c.read_resource(str(links["out.bin"].uri) + "x"), types.INVALID_PARAMS)


async def agent_skills(c: Client) -> None:
    loaded = await c.call_tool("load_skill", {"skill_name": "unit-converter"})
    assert not loaded.is_error and loaded.content[0].text.startswith("---\nname: unit-converter"), loaded
    read = await c.call_tool("read_skill_resource", {"skill_name": "unit-converter", "resource_name": "references/conversion-table.md"})
    assert not read.is_error and "1.60934" in text(read), read
    gone = await c.call_tool("read_skill_resource", {"skill_name": "unit-converter", "resource_name": "../../etc/passwd"})
    assert gone.is_error and "root:" not in text(gone), gone
    if os.environ.get("PYTHON") != "no":
        ran = await c.call_tool(
            "run_skill_script",
            {"skill_name": "unit-converter", "script_file": "scripts/convert.py", "args": ["--value", "26.2", "--factor", "1.60934"]},
        )
        assert not ran.is_error and "42.1647" in text(ran), ran


async def sleep(c: Client, **options) -> None:
    await c.call_tool("sleeps", {}, **options)


async def progress(c: Client) -> None:
    told: list[float] = []
    enough = anyio.Event()

    async def on_progress(value: float, total: float | None, message: str | None) -> None:
        assert message and message.startswith("running for "), message
        told.append(value)
        if len(told) == 2:
            enough.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: sleep(c, progress_callback=on_progress))
            await enough.wait()
            group.cancel_scope.cancel()
    assert 0 < told[0] < told[1], told


async def cancel(c: Client) -> None:
    """The log of the server tells that the guest ended; whoever runs this looks there."""
    with anyio.move_on_after(2) as scope:
        await sleep(c)
    assert scope.cancelled_caught
    with anyio.fail_after(30):
        assert not (await c.call_tool("echoes", {"n": 1})).is_error


async def cancel_script(c: Client) -> None:
    if os.environ.get("PYTHON") == "no":
        return
    with anyio.move_on_after(4) as scope:
        await c.call_tool("run_skill_script", {"skill_name": "unit-converter", "script_file": "scripts/forever.py"})
    assert scope.cancelled_caught


async def resources(c: Client) -> None:
    uris = [str(r.uri) for r in (await c.list_resources()).resources]
    assert uris[0] == FILE and "skill://unit-converter/scripts/convert.py" in uris, uris
    templates = (await c.list_resource_templates()).resource_templates
    assert [t.uri_template for t in templates] == ["skill://{skill}/{+path}"], templates
    contents = (await c.read_resource(FILE)).contents
    assert contents[0].mime_type == "text/markdown" and contents[0].text.startswith("---\n"), contents
    for uri in ["skill://unit-converter/../../etc/passwd", "skill://nosuch/SKILL.md", "file:///etc/passwd"]:
        await refused(c.read_resource(uri), types.INVALID_PARAMS)


async def prompts(c: Client) -> None:
    assert [p.name for p in (await c.list_prompts()).prompts] == ["unit-converter"]
    got = await c.get_prompt("unit-converter", {"task": "26.2 miles"})
    assert got.messages[0].content.type == "resource" and "26.2 miles" in got.messages[1].content.text, got


async def extension(c: Client) -> None:
    """The Skills extension: what the manifest says is what is read."""
    listed = (await c.session.send_request(ask("skills/list"), Skills)).skills
    one = (await c.session.send_request(ask("skills/get", uri=FILE), OneSkill)).skill
    assert listed == [one] and one.frontmatter["name"] == "unit-converter", (listed, one)
    assert len(one.resources) == 4, one.resources
    for r in one.resources:
        data = (await c.read_resource(r["uri"])).contents[0].text.encode()
        assert r["size"] == len(data) and r["digest"] == "sha256:" + hashlib.sha256(data).hexdigest(), r
    found = (await c.session.send_request(ask("resources/directory/read", uri="skill://unit-converter"), Directory)).resources
    assert {r.name for r in found} == {"unit-converter", "references", "scripts"}, found
    await refused(c.session.send_request(ask("skills/get", uri="skill://nosuch/SKILL.md"), OneSkill), types.INVALID_PARAMS)


async def changes(c: Client, skills: pathlib.Path, revision: str, heard: anyio.Event) -> None:
    table = skills / "unit-converter" / "references" / "conversion-table.md"
    before = table.read_text()
    try:
        with anyio.fail_after(30):
            if revision == MODERN:
                async with c.listen(resources_list_changed=True) as events:
                    table.write_text(before + f"{revision}\n")
                    async for _ in events:
                        break
            else:
                table.write_text(before + f"{revision}\n")
                await heard.wait()
    finally:
        table.write_text(before)


async def main() -> None:
    skills, how, *server = sys.argv[1:]
    for revision in [MODERN, HANDSHAKE]:
        heard = anyio.Event()

        async def on_message(message, heard=heard) -> None:
            if re.search("resources/list_changed", str(message)):
                heard.set()

        target = StdioServerParameters(command=server[0], args=server[1:], env=dict(os.environ)) if how == "stdio" else server[0]
        mode = "auto" if revision == MODERN else "legacy"
        async with Client(target, mode=mode, message_handler=on_message) as c:
            for name, check in {
                "lists": lambda: lists(c, revision),
                "calls": lambda: calls(c),
                "code": lambda: code(c),
                "agent_skills": lambda: agent_skills(c),
                "progress": lambda: progress(c),
                "cancel": lambda: cancel(c),
                "cancel_script": lambda: cancel_script(c),
                "resources": lambda: resources(c),
                "prompts": lambda: prompts(c),
                "extension": lambda: extension(c),
                "changes": lambda: changes(c, pathlib.Path(skills), revision, heard),
            }.items():
                await check()
                print("ok", how, revision, name, flush=True)


anyio.run(main)
