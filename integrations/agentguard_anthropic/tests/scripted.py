"""A server on loopback that answers as Anthropic's API does, with scripted replies."""

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
            note(body["messages"], played)
            data, streams = as_message(next(left)), body.get("stream", False)
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
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def note(messages: Sequence[JsonObject], played: Played) -> None:
    seen: list[tuple[str, str]] = []
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    for block in blocks:
        if block["type"] == "tool_use":
            seen.append(("call", block["id"]))
        if block["type"] == "tool_result":
            seen.append(("answer", block["tool_use_id"]))
            played.answers[block["tool_use_id"]] = block["content"]
    played.requests.append(seen)


def as_message(reply: Reply) -> JsonObject:
    content: list[JsonObject] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in reply.calls]
    used = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
    return {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {**used, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
    }


def streamed(data: JsonObject) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(data))


def events(data: JsonObject) -> Iterator[JsonObject]:
    """Cut a message into events, the arguments of its calls in the middle."""
    start = {**data, "content": [], "stop_reason": None, "usage": {**data["usage"], "output_tokens": 0}}
    yield {"type": "message_start", "message": start}
    for at, block in enumerate(data["content"]):
        empty = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        yield {"type": "content_block_start", "index": at, "content_block": empty}
        for delta in deltas(block):
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    delta = {"stop_reason": data["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": data["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def deltas(block: JsonObject) -> Iterator[JsonObject]:
    if block["type"] == "text":
        yield {"type": "text_delta", "text": block["text"]}
        return
    text = json.dumps(block["input"])
    half = len(text) // 2
    yield {"type": "input_json_delta", "partial_json": text[:half]}
    yield {"type": "input_json_delta", "partial_json": text[half:]}
