"""The official Python clients of OpenAI, Anthropic and Google, unmodified, against models of each vendor behind the gateway.

API is the URL of the gateway. Prints a line for every case: client, provider, case, ok or what went wrong.
"""

import base64
import json
import os
import sys
import time
import traceback
import urllib.error
import urllib.request

import anthropic
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

API = os.environ["API"]
KEY = "wk-judge"
PROVIDERS = ["openai", "anthropic", "gemini", "responses"]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def expect(condition, told=None):
    if not condition:
        raise AssertionError(told)


def code(model):
    """The code of a call of the provider of the slow model, which takes one call at a time."""
    body = {"model": f"{model}-again", "messages": [{"role": "user", "content": "hello"}]}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = urllib.request.Request(f"{API}/v1/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def expect_ended(model):
    """The call of the provider ends soon, which would run for minutes."""
    end = time.monotonic() + 5
    while (told := code(model)) != 200:
        expect(told == 503 and time.monotonic() < end, f"the call of the provider still runs: {told}")
        time.sleep(0.01)


class OpenAiChat:
    name = "openai (chat)"

    def client(self, key=KEY):
        return openai.OpenAI(base_url=f"{API}/v1", api_key=key, max_retries=0)

    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello there"}]
    tools = [{"type": "function", "function": {"name": name, "description": "tells", "parameters": SCHEMA}} for name in ("weather", "clock")]

    def plain(self, model):
        answer = self.client().chat.completions.create(model=model, messages=self.messages, max_tokens=50)
        expect(answer.choices[0].message.content == "You said: hello there", answer)
        expect(answer.choices[0].finish_reason == "stop" and answer.usage.total_tokens > 0, answer)

    def streamed(self, model):
        stream = self.client().chat.completions.create(model=model, messages=self.messages, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        expect(text == "You said: hello there", text)
        expect(chunks[-1].usage.total_tokens > 0, chunks[-1])

    def tool(self, model):
        answer = self.client().chat.completions.create(model=model, messages=self.messages, tools=self.tools[:1], tool_choice="auto")
        call = answer.choices[0].message.tool_calls[0]
        expect(json.loads(call.function.arguments) == {"city": "Paris"} and answer.choices[0].finish_reason == "tool_calls", answer)
        messages = self.messages + [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        answer = self.client().chat.completions.create(model=model, messages=messages, tools=self.tools[:1])
        expect("sunny" in answer.choices[0].message.content, answer)

    def parallel_tools(self, model):
        with self.client().chat.completions.stream(model=model, messages=self.messages, tools=self.tools) as stream:
            answer = stream.get_final_completion()
        calls = answer.choices[0].message.tool_calls
        expect([call.function.name for call in calls] == ["weather", "clock"], calls)
        expect(all(json.loads(call.function.arguments) == {"city": "Paris"} for call in calls), calls)

    def image(self, model):
        url = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
        content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
        answer = self.client().chat.completions.create(model=model, messages=[{"role": "user", "content": content}])
        expect("1 images" in answer.choices[0].message.content, answer)

    def errors(self, model):
        for key, asked, kind in [(KEY, "nobody", openai.NotFoundError), ("wrong", model, openai.AuthenticationError), ("wk-spent", model, openai.RateLimitError), (KEY, f"{model}-down", openai.InternalServerError)]:
            try:
                self.client(key).chat.completions.create(model=asked, messages=self.messages)
                expect(False, f"no {kind}")
            except kind as error:
                expect(error.body["message"], error)

    def broken_stream(self, model):
        seen = 0
        try:
            for _ in self.client().chat.completions.create(model=f"{model}-breaks", messages=self.messages, stream=True):
                seen += 1
            expect(False, "no error")
        except openai.APIError as error:
            expect(seen > 0 and "scripted" in str(error), error)

    def cancelled(self, model):
        stream = self.client().chat.completions.create(model=f"{model}-slow", messages=self.messages, stream=True)
        next(iter(stream))
        expect(code(model) == 503)
        begin = time.monotonic()
        stream.close()
        expect(time.monotonic() - begin < 2)
        expect_ended(model)

    def models(self, model):
        expect(model in [known.id for known in self.client().models.list()])
        expect([known.id for known in self.client("wk-poor").models.list()] == ["gemini"])


class OpenAiResponses(OpenAiChat):
    name = "openai (responses)"
    tools = [{"type": "function", "name": name, "description": "tells", "parameters": SCHEMA, "strict": False} for name in ("weather", "clock")]

    def plain(self, model):
        answer = self.client().responses.create(model=model, input="hello there", instructions="be brief")
        expect(answer.output_text == "You said: hello there" and answer.usage.total_tokens > 0, answer)

    def streamed(self, model):
        with self.client().responses.stream(model=model, input="hello there") as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            expect(text == "You said: hello there" and stream.get_final_response().output_text == text, text)

    def tool(self, model):
        answer = self.client().responses.create(model=model, input="hello", tools=self.tools[:1])
        call = answer.output[0]
        expect(call.type == "function_call" and json.loads(call.arguments) == {"city": "Paris"}, answer)
        asked = [{"role": "user", "content": "hello"}, call, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        expect("sunny" in self.client().responses.create(model=model, input=asked, tools=self.tools[:1]).output_text)

    def parallel_tools(self, model):
        with self.client().responses.stream(model=model, input="hello", tools=self.tools) as stream:
            answer = stream.get_final_response()
        expect([item.name for item in answer.output] == ["weather", "clock"], answer)

    def image(self, model):
        url = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
        content = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": url, "detail": "auto"}]
        expect("1 images" in self.client().responses.create(model=model, input=[{"role": "user", "content": content}]).output_text)

    def errors(self, model):
        for key, asked, kind in [(KEY, "nobody", openai.NotFoundError), ("wrong", model, openai.AuthenticationError), ("wk-spent", model, openai.RateLimitError)]:
            try:
                self.client(key).responses.create(model=asked, input="hello")
                expect(False, f"no {kind}")
            except kind as error:
                expect(error.body["message"], error)

    def broken_stream(self, model):
        seen, failed = 0, None
        try:
            for event in self.client().responses.create(model=f"{model}-breaks", input="hello", stream=True):
                seen += 1
                failed = event if event.type == "error" else failed
        except openai.APIError as error:
            failed = error
        expect(seen > 0 and "scripted" in str(failed), failed)

    def cancelled(self, model):
        stream = self.client().responses.create(model=f"{model}-slow", input="hello", stream=True)
        next(iter(stream))
        expect(code(model) == 503)
        stream.close()
        expect_ended(model)


class Anthropic:
    name = "anthropic"

    def client(self, key=KEY):
        return anthropic.Anthropic(base_url=API, api_key=key, max_retries=0)

    messages = [{"role": "user", "content": "hello there"}]
    tools = [{"name": name, "description": "tells", "input_schema": SCHEMA} for name in ("weather", "clock")]

    def plain(self, model):
        answer = self.client().messages.create(model=model, max_tokens=50, system="be brief", messages=self.messages)
        expect(answer.content[0].text == "You said: hello there", answer)
        expect(answer.stop_reason == "end_turn" and answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer)

    def streamed(self, model):
        with self.client().messages.stream(model=model, max_tokens=50, messages=self.messages) as stream:
            expect("".join(stream.text_stream) == "You said: hello there")
            answer = stream.get_final_message()
        expect(answer.stop_reason == "end_turn" and answer.usage.output_tokens > 0, answer)

    def tool(self, model):
        answer = self.client().messages.create(model=model, max_tokens=50, messages=self.messages, tools=self.tools[:1])
        call = answer.content[0]
        expect(call.type == "tool_use" and call.input == {"city": "Paris"} and answer.stop_reason == "tool_use", answer)
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]
        messages = self.messages + [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
        answer = self.client().messages.create(model=model, max_tokens=50, messages=messages, tools=self.tools[:1])
        expect("sunny" in answer.content[0].text, answer)

    def parallel_tools(self, model):
        with self.client().messages.stream(model=model, max_tokens=50, messages=self.messages, tools=self.tools) as stream:
            answer = stream.get_final_message()
        expect([(block.name, block.input) for block in answer.content] == [("weather", {"city": "Paris"}), ("clock", {"city": "Paris"})], answer)

    def image(self, model):
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PIXEL).decode()}
        content = [{"type": "image", "source": source}, {"type": "text", "text": "look"}]
        answer = self.client().messages.create(model=model, max_tokens=50, messages=[{"role": "user", "content": content}])
        expect("1 images" in answer.content[0].text, answer)

    def errors(self, model):
        for key, asked, kind in [(KEY, "nobody", anthropic.NotFoundError), ("wrong", model, anthropic.AuthenticationError), ("wk-spent", model, anthropic.RateLimitError), (KEY, f"{model}-down", anthropic.APIStatusError)]:
            try:
                self.client(key).messages.create(model=asked, max_tokens=5, messages=self.messages)
                expect(False, f"no {kind}")
            except kind as error:
                expect(error.body["error"]["message"], error)

    def broken_stream(self, model):
        seen = []
        try:
            with self.client().messages.stream(model=f"{model}-breaks", max_tokens=50, messages=self.messages) as stream:
                seen.extend(stream.text_stream)
            expect(False, "no error")
        except anthropic.APIError as error:
            expect(seen and "scripted" in str(error), error)

    def cancelled(self, model):
        with self.client().messages.stream(model=f"{model}-slow", max_tokens=20000, messages=self.messages) as stream:
            next(iter(stream.text_stream))
            expect(code(model) == 503)
        expect_ended(model)

    def models(self, model):
        expect(model in [known.id for known in self.client().models.list()])
        expect([known.id for known in self.client("wk-poor").models.list()] == ["gemini"])


class Gemini:
    name = "google-genai"

    # A client that nobody holds closes its connections.
    clients = {}

    def client(self, key=KEY):
        options = types.HttpOptions(base_url=API)
        return self.clients.setdefault(key, genai.Client(api_key=key, http_options=options))

    tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name=name, description="tells", parameters=types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}, required=["city"]))]) for name in ("weather", "clock")]

    def ask(self, model, contents="hello there", key=KEY, **config):
        quiet = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(automatic_function_calling=quiet, **config)
        return self.client(key).models.generate_content(model=model, contents=contents, config=config)

    def plain(self, model):
        answer = self.ask(model, system_instruction="be brief", max_output_tokens=50)
        expect(answer.text == "You said: hello there", answer)
        expect(answer.usage_metadata.total_token_count > 0 and answer.candidates[0].finish_reason == "STOP", answer)

    def streamed(self, model):
        pieces = list(self.client().models.generate_content_stream(model=model, contents="hello there"))
        expect("".join(piece.text or "" for piece in pieces) == "You said: hello there", pieces)
        expect(pieces[-1].usage_metadata.total_token_count > 0, pieces[-1])

    def tool(self, model):
        answer = self.ask(model, tools=self.tools[:1])
        call = answer.function_calls[0]
        expect(call.name == "weather" and call.args == {"city": "Paris"}, answer)
        result = types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"}))
        contents = [types.Content(role="user", parts=[types.Part(text="hello")]), answer.candidates[0].content, types.Content(role="user", parts=[result])]
        expect("sunny" in self.ask(model, contents, tools=self.tools[:1]).text)

    def parallel_tools(self, model):
        config = types.GenerateContentConfig(tools=self.tools, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))
        calls = []
        for piece in self.client().models.generate_content_stream(model=model, contents="hello", config=config):
            calls.extend(piece.function_calls or [])
        expect([(call.name, call.args) for call in calls] == [("weather", {"city": "Paris"}), ("clock", {"city": "Paris"})], calls)

    def image(self, model):
        contents = [types.Part.from_bytes(data=PIXEL, mime_type="image/png"), "look"]
        expect("1 images" in self.ask(model, contents).text)

    def errors(self, model):
        for key, asked, code in [(KEY, "nobody", 404), ("wrong", model, 401), ("wk-spent", model, 429), (KEY, f"{model}-down", 503)]:
            try:
                self.ask(asked, key=key)
                expect(False, f"no {code}")
            except genai_errors.APIError as error:
                expect(error.code == code and error.message, error)

    def broken_stream(self, model):
        seen = 0
        try:
            for _ in self.client().models.generate_content_stream(model=f"{model}-breaks", contents="hello"):
                seen += 1
            expect(False, "no error")
        except genai_errors.APIError as error:
            expect(seen > 0 and "scripted" in str(error), error)

    def cancelled(self, model):
        stream = self.client().models.generate_content_stream(model=f"{model}-slow", contents="hello")
        next(stream)
        expect(code(model) == 503)
        stream.close()
        expect_ended(model)

    def models(self, model):
        expect(f"models/{model}" in [known.name for known in self.client().models.list()])
        expect([known.name for known in self.client("wk-poor").models.list()] == ["models/gemini"])


class Embeddings:
    name = "embeddings"

    def openai(self, model):
        answer = openai.OpenAI(base_url=f"{API}/v1", api_key=KEY).embeddings.create(model=model, input=["a", "b"])
        expect(len(answer.data) == 2 and len(answer.data[1].embedding) == 8, answer)

    def google(self, model):
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=API))
        answer = client.models.embed_content(model=model, contents=["a", "b"])
        expect(len(answer.embeddings) == 2 and len(answer.embeddings[0].values) == 8, answer)


CASES = ["plain", "streamed", "tool", "parallel_tools", "image", "errors", "broken_stream", "cancelled", "models"]


def run(client, provider, case):
    try:
        getattr(client, case)(provider)
        print(f"python\t{client.name}\t{provider}\t{case}\tok", flush=True)
        return True
    except Exception as error:
        print(f"python\t{client.name}\t{provider}\t{case}\tFAILED {type(error).__name__}: {error}".replace("\n", " ")[:1500], flush=True)
        if os.environ.get("TRACE"):
            traceback.print_exc()
        return False


results = [run(client, provider, case) for client in (OpenAiChat(), OpenAiResponses(), Anthropic(), Gemini()) for provider in PROVIDERS for case in CASES]
results += [run(Embeddings(), provider, case) for provider in ("openai", "gemini") for case in ("openai", "google")]
sys.exit(0 if all(results) else 1)
