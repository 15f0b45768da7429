import { Link } from "wouter";
import { Card, Page, Snippet } from "../parts/ui";
import { useSession } from "../session";
import { clientSnippets } from "./clients";

export default function Connect() {
  const { is_key } = useSession();
  return (
    <Page
      title="Connect"
      lead={
        <>
          {is_key ? (
            <>
              Create a key on the <Link href="/access">Access</Link> page and store it as{" "}
              <code>HAFT_KEY</code>.
            </>
          ) : (
            <>This service has no keys, so programs on this machine connect without one.</>
          )}{" "}
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
  const { is_key: needsKey } = useSession();
  const origin = window.location.origin;
  const isWhole = props.endpoint === "/mcp";
  return (
    <div className="two">
      <Card title="MCP clients">
        {clientSnippets(`${origin}${props.endpoint}`, needsKey).map(({ client, title, file, text }) => (
          <Snippet key={client} label={`${title}, ${file}`} text={text} />
        ))}
      </Card>
      <Card title="Programs">
        <Snippet
          label="Python, with the MCP SDK"
          text={`import asyncio${needsKey ? ", os" : ""}
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

URL = "${origin}${props.endpoint}"
${needsKey ? `HEADERS = {"Authorization": f"Bearer {os.environ['HAFT_KEY']}"}` : "HEADERS = {}"}

async def main():
    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print([tool.name for tool in (await session.list_tools()).tools])

asyncio.run(main())`}
        />
        {isWhole && <Rest origin={origin} needsKey={needsKey} />}
      </Card>
    </div>
  );
}

function Rest(props: { origin: string; needsKey: boolean }) {
  const { origin, needsKey } = props;
  const url = `${origin}/api/v1/tools/TOOL/call`;
  const curlKey = needsKey ? `-H "x-api-key: $HAFT_KEY" ` : "";
  const tsKey = needsKey ? `"x-api-key": process.env.HAFT_KEY!, ` : "";
  return (
    <>
      <Snippet
        label="Python, with haft-client"
        text={`${needsKey ? "import os\n\n" : ""}from haft_client import Haft

with Haft("${origin}"${needsKey ? `, api_key=os.environ["HAFT_KEY"]` : ""}) as haft:
    answer = haft.call("TOOL", {})
    print(answer["status"], answer["content"])`}
      />
      <Snippet
        label="curl"
        text={`curl ${url} \\\n  ${curlKey}-H 'content-type: application/json' \\\n  -d '{"arguments": {}}'`}
      />
      <Snippet
        label="TypeScript"
        text={`const url = "${url}";
const response = await fetch(url, {
  method: "POST",
  headers: { ${tsKey}"content-type": "application/json" },
  body: JSON.stringify({ arguments: {} }),
});
const answer = await response.json();
console.log(answer.status, answer.content);`}
      />
    </>
  );
}
