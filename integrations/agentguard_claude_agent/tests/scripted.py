"""A server on loopback that answers the CLI as Anthropic's API does, with scripted replies, and options for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, get_type_hints

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

from agentguard.testing.contract import Played, Reply

JsonObject = dict[str, Any]
OWN = ("Agent", "Bash", "Read")
"""Tools of the CLI that the scripts use; every other name is that of a tool of this process."""


@contextmanager
def served(
    replies: Sequence[Reply], played: Played, agents: Mapping[str, Sequence[Reply]] | None = None
) -> Iterator[str]:
    """Serve the replies one by one; note in `played` what each request of the main agent shows. Gives the base URL.

    `agents` are the replies for sub-agents, by a word of their system prompt.
    """
    main, lock = iter(replies), Lock()
    others = {word: iter(script) for word, script in (agents or {}).items()}
    told = iter(range(1_000))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                system = json.dumps(body.get("system", ""))
                script = next((script for word, script in others.items() if word in system), main)
                if script is main:
                    note(body["messages"], played)
                text = streamed(as_message(next(script), f"msg-{next(told)}"))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

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


@contextmanager
def configured(url: str, tools: Mapping[str, Callable[..., Any]], /, **settings: Any) -> Iterator[ClaudeAgentOptions]:
    """Give options for the real CLI in an empty home that reaches nothing but the server at `url`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {
            "HOME": home,
            "CLAUDE_CONFIG_DIR": home,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }
        server = create_sdk_mcp_server("tools", "1", [as_tool(*item) for item in tools.items()])
        defaults: JsonObject = {
            "mcp_servers": {"tools": server},
            "tools": [],
            "allowed_tools": [f"mcp__tools__{name}" for name in tools],
            "setting_sources": [],
            "model": "scripted",
            "cwd": home,
            "env": environment,
        }
        yield ClaudeAgentOptions(**(defaults | settings))


def as_tool(name: str, function: Callable[..., Any]) -> Any:
    hints = {word: kind for word, kind in get_type_hints(function).items() if word != "return"}

    @tool(name, f"The tool {name}.", hints)
    async def handler(arguments: JsonObject) -> JsonObject:
        value = function(**arguments)
        text = value if isinstance(value, str) else await value
        return {"content": [{"type": "text", "text": text}]}

    return handler


def note(messages: Sequence[JsonObject], played: Played) -> None:
    seen: list[tuple[str, str]] = []
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    for block in blocks:
        if block["type"] == "tool_use":
            seen.append(("call", block["id"]))
        if block["type"] == "tool_result":
            seen.append(("answer", block["tool_use_id"]))
            played.answers[block["tool_use_id"]] = text_of(block["content"])
    played.requests.append(seen)


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def as_message(reply: Reply, key: str) -> JsonObject:
    content: list[JsonObject] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.calls:
        name = call.name if call.name in OWN else f"mcp__tools__{call.name}"
        content.append({"type": "tool_use", "id": call.id, "name": name, "input": call.arguments})
    used = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
    return {
        "id": key,
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
    """Cut a message into events; only the last of them tells how much was written, as the API's does."""
    start = {**data, "content": [], "stop_reason": None, "usage": {**data["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for at, block in enumerate(data["content"]):
        is_call = block["type"] == "tool_use"
        empty = {**block, "input": {}} if is_call else {**block, "text": ""}
        written = {"partial_json": json.dumps(block["input"])} if is_call else {"text": block["text"]}
        kind = "input_json_delta" if is_call else "text_delta"
        yield {"type": "content_block_start", "index": at, "content_block": empty}
        yield {"type": "content_block_delta", "index": at, "delta": {"type": kind, **written}}
        yield {"type": "content_block_stop", "index": at}
    delta = {"stop_reason": data["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": data["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}
