"""Holds the scripted model to the official SDKs of OpenAI and Anthropic, which others wrote.

    checks.py URL

URL is the server's, whose script is in host/agent/llm/llmtest/clients_test.go. Each thing that
holds is a line "ok …"; the first that does not ends the program.
"""

import json
import sys

import anthropic
import openai

url = sys.argv[1]
ours = {"max_retries": 0, "timeout": 30}
O = openai.OpenAI(base_url=url + "/v1", api_key="scripted", **ours)
A = anthropic.Anthropic(base_url=url, api_key="scripted", **ours)

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS_O = [{"type": "function", "function": {"name": "weather", "description": "Of a city.", "parameters": PLACE}}]
TOOLS_A = [{"name": "weather", "description": "Of a city.", "input_schema": PLACE}]


def user(text):
    return {"role": "user", "content": text}


def ask_o(*messages, **more):
    return O.chat.completions.create(model="scripted", messages=list(messages), tools=TOOLS_O, **more)


def ask_a(*messages, **more):
    return A.messages.create(model="scripted", max_tokens=500, messages=list(messages), tools=TOOLS_A, **more)


def refused(kind, call):
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(f"it was not {kind.__name__}")


def openai_text():
    r = O.chat.completions.create(model="some-model", messages=[{"role": "system", "content": "Be brief."}, user("hello")])
    m = r.choices[0]
    assert (m.message.content, m.finish_reason, m.message.tool_calls, r.model) == ("Hello, 世界!", "stop", None, "some-model"), r
    assert r.usage.prompt_tokens == 11 and r.usage.completion_tokens == 7 and r.usage.total_tokens == 18, r.usage


def openai_tools():
    r = ask_o(user("weather in Paris"))
    call = r.choices[0].message.tool_calls[0]
    assert r.choices[0].finish_reason == "tool_calls" and r.choices[0].message.content is None, r
    assert (call.type, call.function.name, json.loads(call.function.arguments)) == ("function", "weather", {"city": "Paris"}), call
    r = ask_o(user("weather in Paris"), r.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": '{"degrees": 21}'})
    assert r.choices[0].message.content == "It has 21 degrees.", r


def openai_parallel():
    r = ask_o(user("weather everywhere"))
    calls = r.choices[0].message.tool_calls
    assert [json.loads(c.function.arguments)["city"] for c in calls] == ["Oslo", "Rome", "Rome"], calls
    assert len({c.id for c in calls}) == 3, calls
    answers = [{"role": "tool", "tool_call_id": c.id, "content": '{"degrees": %d}' % i} for i, c in enumerate(calls)]
    r = ask_o(user("weather everywhere"), r.choices[0].message, *answers)
    assert r.choices[0].message.content == "It has 2 degrees.", r
    e = refused(openai.BadRequestError, lambda: ask_o(user("x"), {"role": "assistant", "tool_calls": [c.model_dump() for c in calls]}, answers[0], user("y")))
    assert "must be followed by tool messages" in e.message, e
    refused(openai.BadRequestError, lambda: ask_o(user("x"), answers[0]))


def openai_stream():
    text, usage, finish = "", None, None
    for chunk in O.chat.completions.create(model="m", messages=[user("hello")], stream=True, stream_options={"include_usage": True}):
        if chunk.usage:
            assert chunk.choices == [], chunk
            usage = chunk.usage.total_tokens
        for c in chunk.choices:
            text += c.delta.content or ""
            finish = c.finish_reason or finish
    assert (text, finish, usage) == ("Hello, 世界!", "stop", 18), (text, finish, usage)
    assert all(c.usage is None for c in O.chat.completions.create(model="m", messages=[user("hello")], stream=True))


def openai_stream_tools():
    with O.chat.completions.stream(model="m", messages=[user("weather everywhere")], tools=TOOLS_O) as s:
        parts = [e for e in s if e.type == "tool_calls.function.arguments.delta"]
        m = s.get_final_completion().choices[0]
    assert len(parts) >= 3 and m.finish_reason == "tool_calls", (parts, m)
    assert [json.loads(c.function.arguments)["city"] for c in m.message.tool_calls] == ["Oslo", "Rome", "Rome"], m


def openai_errors():
    e = refused(openai.RateLimitError, lambda: ask_o(user("too many")))
    assert e.status_code == 429 and e.response.headers["retry-after"] == "7" and "slow down" in e.message, e
    for how in [False, True]:
        e = refused(openai.InternalServerError, lambda: ask_o(user("always down"), stream=how))
        assert e.status_code == 503, e
    refused(openai.BadRequestError, lambda: ask_o(user("nobody knows")))
    refused(openai.BadRequestError, lambda: ask_o(user("hello"), temperature=9))
    refused(openai.NotFoundError, lambda: O.embeddings.create(model="m", input="x"))
    refused(openai.AuthenticationError, lambda: openai.OpenAI(base_url=url + "/v1", api_key="wrong", **ours).models.list())
    refused(openai.APIError, lambda: ask_o(user("cut it off")))
    refused(Exception, lambda: list(ask_o(user("cut it off"), stream=True)))
    refused(openai.APIConnectionError, lambda: ask_o(user("say nothing")))
    # The SDK asks again by itself.
    again = O.with_options(max_retries=2).chat.completions.create(model="m", messages=[user("busy for openai")])
    assert again.choices[0].message.content == "Now I have time.", again
    assert ask_o(user("at great length")).choices[0].finish_reason == "length"
    assert [m.id for m in O.models.list()] == ["scripted"]


def anthropic_text():
    r = A.messages.create(model="m", max_tokens=9, system="Be brief.", messages=[user("hello")])
    assert [b.text for b in r.content] == ["Hello, 世界!"] and r.stop_reason == "end_turn", r
    assert (r.usage.input_tokens, r.usage.output_tokens) == (11, 7), r.usage


def anthropic_tools():
    r = ask_a(user("weather in Paris"))
    call = r.content[0]
    assert (r.stop_reason, call.type, call.name, call.input) == ("tool_use", "tool_use", "weather", {"city": "Paris"}), r
    result = {"type": "tool_result", "tool_use_id": call.id, "content": '{"degrees": 21}'}
    r = ask_a(user("weather in Paris"), {"role": "assistant", "content": r.content}, user([result]))
    assert r.content[0].text == "It has 21 degrees.", r


def anthropic_parallel():
    first = ask_a(user("weather everywhere"))
    assert [b.input["city"] for b in first.content] == ["Oslo", "Rome", "Rome"], first
    results = [{"type": "tool_result", "tool_use_id": b.id, "content": '{"degrees": %d}' % i, "is_error": i == 1} for i, b in enumerate(first.content)]
    said = {"role": "assistant", "content": first.content}
    r = ask_a(user("weather everywhere"), said, user([*results, {"type": "text", "text": "hello"}]))
    assert r.content[0].text == "Hello, 世界!", r
    e = refused(anthropic.BadRequestError, lambda: ask_a(user("x"), said, user(results[:2])))
    assert "without `tool_result` blocks" in e.message, e
    refused(anthropic.BadRequestError, lambda: ask_a(user("x"), user(results)))
    refused(anthropic.BadRequestError, lambda: ask_a(user([{"type": "text", "text": ""}])))


def anthropic_stream():
    with A.messages.stream(model="m", max_tokens=9, messages=[user("hello")]) as s:
        text = "".join(s.text_stream)
        r = s.get_final_message()
    assert text == "Hello, 世界!" and r.stop_reason == "end_turn", r
    assert (r.usage.input_tokens, r.usage.output_tokens) == (11, 7), r.usage


def anthropic_stream_tools():
    with A.messages.stream(model="m", max_tokens=9, messages=[user("weather everywhere")], tools=TOOLS_A) as s:
        kinds = [e.type for e in s]
        r = s.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop" and kinds.count("content_block_start") == 3, kinds
    assert [b.input["city"] for b in r.content] == ["Oslo", "Rome", "Rome"] and r.stop_reason == "tool_use", r


def anthropic_errors():
    e = refused(anthropic.RateLimitError, lambda: ask_a(user("too many")))
    assert e.response.headers["retry-after"] == "7" and "slow down" in e.message, e
    for how in [False, True]:
        e = refused(anthropic.InternalServerError, lambda: ask_a(user("always down"), stream=how))
        assert e.status_code == 503 and e.body["error"]["type"] == "api_error", e.body
    e = refused(anthropic.APIStatusError, lambda: ask_a(user("overloaded")))
    assert e.status_code == 529 and e.body["error"]["type"] == "overloaded_error", e.body
    refused(anthropic.BadRequestError, lambda: ask_a(user("nobody knows")))
    refused(anthropic.AuthenticationError, lambda: anthropic.Anthropic(base_url=url, api_key="wrong", **ours).models.list())
    refused(Exception, lambda: ask_a(user("cut it off")))
    refused(anthropic.APIConnectionError, lambda: ask_a(user("say nothing")))
    again = A.with_options(max_retries=2).messages.create(model="m", max_tokens=9, messages=[user("busy for anthropic")])
    assert again.content[0].text == "Now I have time.", again
    assert ask_a(user("at great length")).stop_reason == "max_tokens"
    assert [m.id for m in A.models.list()] == ["scripted"]


for check in [
    openai_text, openai_tools, openai_parallel, openai_stream, openai_stream_tools, openai_errors,
    anthropic_text, anthropic_tools, anthropic_parallel, anthropic_stream, anthropic_stream_tools, anthropic_errors,
]:
    check()
    print("ok", check.__name__, flush=True)
