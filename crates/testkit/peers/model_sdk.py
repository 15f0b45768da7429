"""The official clients of OpenAI and Anthropic: what they read of an answer, and whether a request is one of theirs.

    model_sdk.py ask openai|anthropic URL streamed|whole     prints the answer as JSON, or the kind of error
    model_sdk.py check openai|anthropic < REQUESTS           prints what is wrong with each of a JSON list of requests
"""

import collections.abc
import json
import sys
import types
import typing

import anthropic
import openai
import typing_extensions

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = {"model": "scripted", "messages": [{"role": "user", "content": "?"}]}


def ask_openai(url, streamed):
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    function = {"name": "get_weather", "description": "Tells the weather.", "parameters": SCHEMA}
    question = {**QUESTION, "tools": [{"type": "function", "function": function}]}
    if streamed:
        options = {"include_usage": True}
        with client.chat.completions.stream(**question, stream_options=options) as stream:
            answer = stream.until_done().get_final_completion()
    else:
        answer = client.chat.completions.create(**question)
    choice = answer.choices[0]
    calls = choice.message.tool_calls or []
    return {
        "text": choice.message.content,
        "calls": [[call.function.name, json.loads(call.function.arguments)] for call in calls],
        "stop": choice.finish_reason,
        "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
    }


def ask_anthropic(url, streamed):
    client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0)
    tool = {"name": "get_weather", "description": "Tells the weather.", "input_schema": SCHEMA}
    question = {**QUESTION, "max_tokens": 100, "tools": [tool]}
    if streamed:
        with client.messages.stream(**question) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.create(**question)
    calls = [block for block in answer.content if block.type == "tool_use"]
    return {
        "text": "".join(block.text for block in answer.content if block.type == "text"),
        "calls": [[call.name, call.input] for call in calls],
        "stop": answer.stop_reason,
        "usage": [answer.usage.input_tokens, answer.usage.output_tokens],
    }


def problems(value, kind, at=""):
    """What of a value is not as the type has it. Keys that it does not name are, unlike for type checkers, wrong."""
    origin, words = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Annotated, typing.Required, typing_extensions.Required, typing_extensions.NotRequired):
        return problems(value, words[0], at)
    if origin in (typing.Union, types.UnionType):
        found = [problems(value, word, at) for word in words]
        return min(found, key=lambda it: (len(it), -max(map(len, it), default=0)))
    if origin is typing.Literal:
        return [] if value in words else [f"{at}: {value!r} is none of {words}"]
    if kind in (typing.Any, object):
        return []
    if kind is None or kind is type(None):
        return [] if value is None else [f"{at}: {value!r} is not null"]
    if typing_extensions.is_typeddict(kind):
        if not isinstance(value, dict):
            return [f"{at}: {value!r} is no {kind.__name__}"]
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        wrong = [f"{at}: {kind.__name__} lacks `{key}`" for key in kind.__required_keys__ - value.keys()]
        for key, item in value.items():
            if key in hints:
                wrong += problems(item, hints[key], f"{at}/{key}")
            else:
                wrong.append(f"{at}: {kind.__name__} has no `{key}`")
        return wrong
    if origin in (dict, collections.abc.Mapping):
        return [] if isinstance(value, dict) else [f"{at}: {value!r} is no object"]
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        if not isinstance(value, list):
            return [f"{at}: {value!r} is no list"]
        return [it for n, item in enumerate(value) for it in problems(item, words[0], f"{at}/{n}")]
    if kind in (str, int, float, bool):
        fits = isinstance(value, (int, float) if kind is float else kind)
        return [] if fits else [f"{at}: {value!r} is no {kind.__name__}"]
    # Files, open streams and the like, which cannot be in JSON.
    return [f"{at}: {value!r} is no {kind}"]


def main(word, service, *rest):
    if word == "ask":
        url, how = rest
        ask = ask_openai if service == "openai" else ask_anthropic
        try:
            answer = ask(url, how == "streamed")
        except (openai.APIError, anthropic.APIError) as error:
            answer = {"error": type(error).__name__}
        return answer
    kind = {
        "openai": openai.types.chat.completion_create_params.CompletionCreateParamsStreaming,
        "anthropic": anthropic.types.message_create_params.MessageCreateParamsStreaming,
    }[service]
    return [problems(request, kind) for request in json.load(sys.stdin)]


print(json.dumps(main(*sys.argv[1:])))
