"""An agent in forty lines: any model that speaks as OpenAI's do calls the skills of a host.

    pip install openai
    bin/openskill serve
    OPENAI_API_KEY=… python examples/python/agent.py "What is the mean of 10.5, 9.9 and 11.2?"

OPENAI_API_BASE and OPENAI_MODEL say which model, OPENSKILL_HTTP_BASE_URL which host, and
OPENSKILL_API_KEY is shown to it. Without a vendor: openskill fakellm.
"""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

from openai import OpenAI

HOST = os.environ.get("OPENSKILL_HTTP_BASE_URL", "http://127.0.0.1:8000")
HEADERS = {"Content-Type": "application/json", "X-API-Key": os.environ.get("OPENSKILL_API_KEY", "")}
ROUNDS = 10
NOT_SKILLS = {"load_skill", "read_skill_resource", "run_skill_script"}  # tools for Agent Skills, with paths of their own


def tools() -> list:
    with urllib.request.urlopen(urllib.request.Request(HOST + "/tools?format=openai", headers=HEADERS)) as answer:
        return [tool for tool in json.load(answer) if tool["function"]["name"] not in NOT_SKILLS]


def invoke(name: str, arguments: str) -> dict:
    """Calls a skill. A failure is a result too: it tells the model what to mend."""
    try:
        body = json.dumps({"input": json.loads(arguments or "{}")}).encode()
        path = f"/skills/{urllib.parse.quote(name, safe='')}:invoke"
        with urllib.request.urlopen(urllib.request.Request(HOST + path, body, HEADERS)) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as refused:
        return {"error": json.load(refused)["error"]}
    except json.JSONDecodeError as wrong:
        return {"error": f"the arguments are not JSON: {wrong}"}


def run(question: str) -> str:
    model = OpenAI(base_url=os.environ.get("OPENAI_API_BASE"))
    offered, messages = tools(), [{"role": "user", "content": question}]
    for _ in range(ROUNDS):
        asked = model.chat.completions.create(model=os.environ.get("OPENAI_MODEL", "gpt-4"), messages=messages, tools=offered)
        reply = asked.choices[0].message
        if not reply.tool_calls:
            return reply.content or ""
        messages.append(reply)
        for call in reply.tool_calls:
            print("calls", call.function.name, call.function.arguments, file=sys.stderr)
            result = invoke(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result, ensure_ascii=False)})
    return f"The model has not finished in {ROUNDS} rounds."


if __name__ == "__main__":
    print(run(" ".join(sys.argv[1:]) or "What can you do?"))
