"""A server on loopback that answers as OpenAI's API does, with scripted replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from agentguard.testing.contract import Played, Reply

JsonObject = dict[str, Any]


@contextmanager
def served(replies: Sequence[Reply], played: Played) -> Iterator[str]:
    """Serve the replies one by one; note in `played` what each request shows. Gives the base URL."""
    left = iter(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            note(body.get("messages") or body.get("input"), played)
            shape = as_completion if "messages" in body else as_response
            data = shape(next(left))
            streams = body.get("stream", False)
            text = streamed(data) if streams else json.dumps(data)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def note(items: Sequence[JsonObject], played: Played) -> None:
    seen: list[tuple[str, str]] = []
    for item in items:
        seen += [("call", call["id"]) for call in item.get("tool_calls") or ()]
        if item.get("type") == "function_call":
            seen.append(("call", item["call_id"]))
        if item.get("role") == "tool" or item.get("type") == "function_call_output":
            answered = item.get("tool_call_id") or item["call_id"]
            seen.append(("answer", answered))
            played.answers[answered] = item.get("content") or item["output"]
    played.requests.append(seen)


def arguments_of(asked: Any) -> str:
    return asked.arguments["raw"] if "raw" in asked.arguments else json.dumps(asked.arguments)


def as_completion(reply: Reply) -> JsonObject:
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": arguments_of(c)}}
        for c in reply.calls
    ]
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    used, made = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": used, "completion_tokens": made, "total_tokens": used + made},
    }


def as_response(reply: Reply) -> JsonObject:
    output: list[JsonObject] = [
        {
            "type": "function_call",
            "id": f"fc-{c.id}",
            "call_id": c.id,
            "name": c.name,
            "arguments": arguments_of(c),
            "status": "completed",
        }
        for c in reply.calls
    ]
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        output.append(
            {"type": "message", "id": "msg-1", "role": "assistant", "status": "completed", "content": content}
        )
    used, made = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    return {
        "id": "resp-1",
        "object": "response",
        "created_at": 1,
        "model": "scripted",
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": output,
        "usage": {
            "input_tokens": used,
            "output_tokens": made,
            "total_tokens": used + made,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def streamed(data: JsonObject) -> str:
    if data["object"] == "chat.completion":
        return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(data)) + "data: [DONE]\n\n"
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(data))


def chunks(data: JsonObject) -> Iterator[JsonObject]:
    """Cut a completion into chunks, the arguments of its calls in the middle."""
    base = {**data, "object": "chat.completion.chunk", "usage": None}
    message = data["choices"][0]["message"]

    def chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": message["content"] or ""})
    for at, call in enumerate(message.get("tool_calls", ())):
        text = call["function"]["arguments"]
        half = len(text) // 2
        function = {"name": call["function"]["name"], "arguments": text[:half]}
        yield chunk({"tool_calls": [{**call, "index": at, "function": function}]})
        yield chunk({"tool_calls": [{"index": at, "function": {"arguments": text[half:]}}]})
    yield chunk({}, data["choices"][0]["finish_reason"])
    yield {**base, "choices": [], "usage": data["usage"]}


def events(data: JsonObject) -> Iterator[JsonObject]:
    """Cut a response into events, the arguments of its calls in the middle."""
    numbered = 0

    def event(kind: str, **fields: Any) -> JsonObject:
        nonlocal numbered
        numbered += 1
        return {"type": f"response.{kind}", "sequence_number": numbered, **fields}

    yield event("created", response={**data, "status": "in_progress", "output": [], "usage": None})
    for at, item in enumerate(data["output"]):
        if item["type"] == "function_call":
            text, about = item["arguments"], {"output_index": at, "item_id": item["id"]}
            half = len(text) // 2
            yield event("output_item.added", output_index=at, item={**item, "arguments": "", "status": "in_progress"})
            yield event("function_call_arguments.delta", delta=text[:half], **about)
            yield event("function_call_arguments.delta", delta=text[half:], **about)
            yield event("function_call_arguments.done", arguments=text, **about)
        else:
            yield event("output_item.added", output_index=at, item=item)
        yield event("output_item.done", output_index=at, item=item)
    yield event("completed", response=data)
