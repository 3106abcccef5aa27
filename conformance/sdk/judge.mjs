// The official JavaScript clients of OpenAI, Anthropic and Google, unmodified, against models of each vendor behind the gateway.
//
// API is the URL of the gateway. Prints a line for every case: client, provider, case, ok or what went wrong.

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI, Type } from "@google/genai";
import OpenAI from "openai";

const API = process.env.API;
const KEY = "wk-judge";
const PROVIDERS = ["openai", "anthropic", "gemini", "responses"];
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const PARIS = JSON.stringify({ city: "Paris" });

function expect(condition, told) {
  if (!condition) throw new Error(`not as expected: ${JSON.stringify(told)}`);
}

async function fails(codes, ask) {
  for (const [code, asked] of codes) {
    let status;
    try {
      await ask(...asked);
    } catch (error) {
      status = error.status;
      expect(String(error.message).length > 0, error);
    }
    expect(status === code, [code, status]);
  }
}

async function collected(stream) {
  const all = [];
  for await (const piece of stream) all.push(piece);
  return all;
}

// The code of a call of the provider of the slow model, which takes one call at a time.
async function code(model) {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: `${model}-again`, messages: [{ role: "user", content: "hello" }] });
  const answer = await fetch(`${API}/v1/chat/completions`, { method: "POST", headers, body });
  await answer.text();
  return answer.status;
}

// After the first piece, the call is given up: that of the provider ends soon, which would run for minutes.
async function withdrawn(model, stream, abort) {
  const pieces = stream[Symbol.asyncIterator]();
  await pieces.next();
  const before = await code(model);
  expect(before === 503, before);
  abort();
  const end = Date.now() + 5000;
  for (;;) {
    const told = await code(model);
    if (told === 200) return;
    expect(told === 503 && Date.now() < end, ["the call of the provider still runs", told]);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function broken(ask) {
  let seen = 0;
  let failed;
  try {
    for await (const event of await ask()) {
      seen += 1;
      if (event.type === "error") failed = event.message;
    }
  } catch (error) {
    failed = error.message;
  }
  expect(seen > 0 && String(failed).includes("scripted"), [seen, failed]);
}

const chat = {
  name: "openai (chat)",
  client: (key = KEY) => new OpenAI({ baseURL: `${API}/v1`, apiKey: key, maxRetries: 0 }),
  messages: [{ role: "user", content: "hello there" }],
  tools: ["weather", "clock"].map((name) => ({ type: "function", function: { name, parameters: SCHEMA } })),
  async plain(model) {
    const answer = await this.client().chat.completions.create({ model, messages: this.messages });
    expect(answer.choices[0].message.content === "You said: hello there" && answer.usage.total_tokens > 0, answer);
  },
  async streamed(model) {
    const pieces = await collected(await this.client().chat.completions.create({ model, messages: this.messages, stream: true }));
    const text = pieces.map((piece) => piece.choices[0]?.delta?.content ?? "").join("");
    expect(text === "You said: hello there", text);
  },
  async tool(model) {
    const tools = this.tools.slice(0, 1);
    let answer = await this.client().chat.completions.create({ model, messages: this.messages, tools });
    const call = answer.choices[0].message.tool_calls[0];
    expect(call.function.arguments === PARIS, answer);
    const messages = [...this.messages, answer.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" }];
    answer = await this.client().chat.completions.create({ model, messages, tools });
    expect(answer.choices[0].message.content.includes("sunny"), answer);
  },
  async parallel_tools(model) {
    const answer = await this.client().chat.completions.stream({ model, messages: this.messages, tools: this.tools }).finalChatCompletion();
    const calls = answer.choices[0].message.tool_calls;
    expect(calls.map((call) => call.function.name).join() === "weather,clock", calls);
    expect(calls.every((call) => call.function.arguments === PARIS), calls);
  },
  async image(model) {
    const content = [{ type: "text", text: "look" }, { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }];
    const answer = await this.client().chat.completions.create({ model, messages: [{ role: "user", content }] });
    expect(answer.choices[0].message.content.includes("1 images"), answer);
  },
  async errors(model) {
    const codes = [[404, [KEY, "nobody"]], [401, ["wrong", model]], [429, ["wk-spent", model]], [503, [KEY, `${model}-down`]]];
    await fails(codes, (key, model) => this.client(key).chat.completions.create({ model, messages: this.messages }));
  },
  async broken_stream(model) {
    await broken(() => this.client().chat.completions.create({ model: `${model}-breaks`, messages: this.messages, stream: true }));
  },
  async cancelled(model) {
    const stream = await this.client().chat.completions.create({ model: `${model}-slow`, messages: this.messages, stream: true });
    await withdrawn(model, stream, () => stream.controller.abort());
  },
  async models(model) {
    const names = (await collected(this.client().models.list())).map((known) => known.id);
    expect(names.includes(model), names);
  },
};

const responses = {
  ...chat,
  name: "openai (responses)",
  tools: ["weather", "clock"].map((name) => ({ type: "function", name, parameters: SCHEMA, strict: false })),
  async plain(model) {
    const answer = await this.client().responses.create({ model, input: "hello there" });
    expect(answer.output_text === "You said: hello there" && answer.usage.total_tokens > 0, answer);
  },
  async streamed(model) {
    const answer = await this.client().responses.stream({ model, input: "hello there" }).finalResponse();
    expect(answer.output_text === "You said: hello there", answer);
  },
  async tool(model) {
    const tools = this.tools.slice(0, 1);
    let answer = await this.client().responses.create({ model, input: "hello", tools });
    const call = answer.output[0];
    expect(call.type === "function_call" && call.arguments === PARIS, answer);
    const input = [{ role: "user", content: "hello" }, call, { type: "function_call_output", call_id: call.call_id, output: "sunny" }];
    answer = await this.client().responses.create({ model, input, tools });
    expect(answer.output_text.includes("sunny"), answer);
  },
  async parallel_tools(model) {
    const answer = await this.client().responses.stream({ model, input: "hello", tools: this.tools }).finalResponse();
    expect(answer.output.map((item) => item.name).join() === "weather,clock", answer);
  },
  async image(model) {
    const content = [{ type: "input_text", text: "look" }, { type: "input_image", image_url: `data:image/png;base64,${PIXEL}`, detail: "auto" }];
    const answer = await this.client().responses.create({ model, input: [{ role: "user", content }] });
    expect(answer.output_text.includes("1 images"), answer);
  },
  async errors(model) {
    const codes = [[404, [KEY, "nobody"]], [401, ["wrong", model]], [429, ["wk-spent", model]], [503, [KEY, `${model}-down`]]];
    await fails(codes, (key, model) => this.client(key).responses.create({ model, input: "hello" }));
  },
  async broken_stream(model) {
    await broken(() => this.client().responses.create({ model: `${model}-breaks`, input: "hello", stream: true }));
  },
  async cancelled(model) {
    const stream = await this.client().responses.create({ model: `${model}-slow`, input: "hello", stream: true });
    await withdrawn(model, stream, () => stream.controller.abort());
  },
};

const anthropic = {
  name: "anthropic",
  client: (key = KEY) => new Anthropic({ baseURL: API, apiKey: key, maxRetries: 0 }),
  messages: [{ role: "user", content: "hello there" }],
  tools: ["weather", "clock"].map((name) => ({ name, input_schema: SCHEMA })),
  ask(model, more = {}, key = KEY) {
    return this.client(key).messages.create({ model, max_tokens: 50, messages: this.messages, ...more });
  },
  async plain(model) {
    const answer = await this.ask(model);
    expect(answer.content[0].text === "You said: hello there" && answer.usage.output_tokens > 0, answer);
  },
  async streamed(model) {
    const answer = await this.client().messages.stream({ model, max_tokens: 50, messages: this.messages }).finalMessage();
    expect(answer.content[0].text === "You said: hello there" && answer.usage.output_tokens > 0, answer);
  },
  async tool(model) {
    const tools = this.tools.slice(0, 1);
    let answer = await this.ask(model, { tools });
    const call = answer.content[0];
    expect(call.type === "tool_use" && JSON.stringify(call.input) === PARIS && answer.stop_reason === "tool_use", answer);
    const results = [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }];
    const messages = [...this.messages, { role: "assistant", content: answer.content }, { role: "user", content: results }];
    answer = await this.ask(model, { tools, messages });
    expect(answer.content[0].text.includes("sunny"), answer);
  },
  async parallel_tools(model) {
    const answer = await this.client().messages.stream({ model, max_tokens: 50, messages: this.messages, tools: this.tools }).finalMessage();
    expect(answer.content.map((block) => block.name + JSON.stringify(block.input)).join() === `weather${PARIS},clock${PARIS}`, answer);
  },
  async image(model) {
    const content = [{ type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } }, { type: "text", text: "look" }];
    const answer = await this.ask(model, { messages: [{ role: "user", content }] });
    expect(answer.content[0].text.includes("1 images"), answer);
  },
  async errors(model) {
    const codes = [[404, ["nobody", KEY]], [401, [model, "wrong"]], [429, [model, "wk-spent"]], [503, [`${model}-down`, KEY]]];
    await fails(codes, (model, key) => this.ask(model, {}, key));
  },
  async broken_stream(model) {
    await broken(() => this.ask(`${model}-breaks`, { stream: true }));
  },
  async cancelled(model) {
    const stream = await this.ask(`${model}-slow`, { stream: true, max_tokens: 20000 });
    await withdrawn(model, stream, () => stream.controller.abort());
  },
  async models(model) {
    const names = (await collected(this.client().models.list())).map((known) => known.id);
    expect(names.includes(model), names);
  },
};

const gemini = {
  name: "google-genai",
  client: (key = KEY) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: API } }),
  tools: ["weather", "clock"].map((name) => ({
    functionDeclarations: [{ name, parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] } }],
  })),
  async plain(model) {
    const answer = await this.client().models.generateContent({ model, contents: "hello there" });
    expect(answer.text === "You said: hello there" && answer.usageMetadata.totalTokenCount > 0, answer);
  },
  async streamed(model) {
    const pieces = await collected(await this.client().models.generateContentStream({ model, contents: "hello there" }));
    expect(pieces.map((piece) => piece.text ?? "").join("") === "You said: hello there", pieces);
  },
  async tool(model) {
    const config = { tools: this.tools.slice(0, 1) };
    const answer = await this.client().models.generateContent({ model, contents: "hello", config });
    const call = answer.functionCalls[0];
    expect(call.name === "weather" && JSON.stringify(call.args) === PARIS, answer);
    const result = { functionResponse: { id: call.id, name: call.name, response: { output: "sunny" } } };
    const contents = [{ role: "user", parts: [{ text: "hello" }] }, answer.candidates[0].content, { role: "user", parts: [result] }];
    const told = await this.client().models.generateContent({ model, contents, config });
    expect(told.text.includes("sunny"), told);
  },
  async parallel_tools(model) {
    const pieces = await collected(await this.client().models.generateContentStream({ model, contents: "hello", config: { tools: this.tools } }));
    const calls = pieces.flatMap((piece) => piece.functionCalls ?? []);
    expect(calls.map((call) => call.name + JSON.stringify(call.args)).join() === `weather${PARIS},clock${PARIS}`, calls);
  },
  async image(model) {
    const contents = [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PIXEL } }, { text: "look" }] }];
    const answer = await this.client().models.generateContent({ model, contents });
    expect(answer.text.includes("1 images"), answer);
  },
  async errors(model) {
    const codes = [[404, ["nobody", KEY]], [401, [model, "wrong"]], [429, [model, "wk-spent"]], [503, [`${model}-down`, KEY]]];
    await fails(codes, (model, key) => this.client(key).models.generateContent({ model, contents: "hello" }));
  },
  async broken_stream(model) {
    await broken(() => this.client().models.generateContentStream({ model: `${model}-breaks`, contents: "hello" }));
  },
  async cancelled(model) {
    const abort = new AbortController();
    const config = { abortSignal: abort.signal };
    const stream = await this.client().models.generateContentStream({ model: `${model}-slow`, contents: "hello", config });
    await withdrawn(model, stream, () => abort.abort());
  },
  async models(model) {
    const names = (await collected(await this.client().models.list())).map((known) => known.name);
    expect(names.includes(`models/${model}`), names);
  },
};

const CASES = ["plain", "streamed", "tool", "parallel_tools", "image", "errors", "broken_stream", "cancelled", "models"];
let failed = false;
for (const client of [chat, responses, anthropic, gemini]) {
  for (const provider of PROVIDERS) {
    for (const name of CASES) {
      let verdict = "ok";
      try {
        await client[name](provider);
      } catch (error) {
        failed = true;
        verdict = `FAILED ${error?.name}: ${error?.message}`.replaceAll("\n", " ").slice(0, 1500);
      }
      console.log(`typescript\t${client.name}\t${provider}\t${name}\t${verdict}`);
    }
  }
}
process.exit(failed ? 1 : 0);
