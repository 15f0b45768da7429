import { Link } from "wouter";
import { Card, Page, Snippet } from "../parts/ui";
import { clientSnippets } from "./clients";

export default function Connect() {
  return (
    <Page
      title="Connect"
      lead={
        <>
          Create a key on the <Link href="/access">Access</Link> page and store it as <code>HAFT_KEY</code>.
          On this machine <code>haft install CLIENT --write</code> writes the client's file for you.
        </>
      }
    >
      <Snippets endpoint="/mcp" />
    </Page>
  );
}

/** Ready to copy, for every client that `haft install` knows and for programs. */
export function Snippets(props: { endpoint: string }) {
  const origin = window.location.origin;
  const isWhole = props.endpoint === "/mcp";
  return (
    <div className="two">
      <Card title="MCP clients">
        {clientSnippets(`${origin}${props.endpoint}`).map(({ client, title, file, text }) => (
          <Snippet key={client} label={`${title}, ${file}`} text={text} />
        ))}
      </Card>
      <Card title="Programs">
        <Snippet
          label="Python, with the MCP SDK"
          text={`import asyncio, os
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main():
    headers = {"Authorization": f"Bearer {os.environ['HAFT_KEY']}"}
    async with streamablehttp_client("${origin}${props.endpoint}", headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print([tool.name for tool in (await session.list_tools()).tools])

asyncio.run(main())`}
        />
        {isWhole && <Rest origin={origin} />}
      </Card>
    </div>
  );
}

function Rest(props: { origin: string }) {
  const url = `${props.origin}/api/v1/tools/TOOL/call`;
  return (
    <>
      <Snippet
        label="curl"
        text={`curl ${url} \\\n  -H "x-api-key: $HAFT_KEY" -H 'content-type: application/json' \\\n  -d '{"arguments": {}}'`}
      />
      <Snippet
        label="Python"
        text={`import os, httpx

answer = httpx.post(
    "${url}",
    headers={"x-api-key": os.environ["HAFT_KEY"]},
    json={"arguments": {}},
).json()
print(answer["status"], answer["content"])`}
      />
      <Snippet
        label="TypeScript"
        text={`const answer = await fetch("${url}", {
  method: "POST",
  headers: { "x-api-key": process.env.HAFT_KEY!, "content-type": "application/json" },
  body: JSON.stringify({ arguments: {} }),
}).then((response) => response.json());
console.log(answer.status, answer.content);`}
      />
    </>
  );
}
