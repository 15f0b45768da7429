import{V as e,g as t,o as n,p as r,r as i}from"./index-MgWTHFwp.js";import{t as a}from"./jsx-runtime-C3cWAN_r.js";var o=e=>JSON.stringify(e,null,2);function s(e,t=!0){let n=e=>t?{headers:{Authorization:`Bearer ${e}`}}:{};return[{client:`claude`,title:`Claude Code`,file:`.mcp.json`,text:o({mcpServers:{haft:{type:`http`,url:e,...n("${HAFT_KEY}")}}})},{client:`claude-desktop`,title:`Claude Desktop`,file:`claude_desktop_config.json`,text:o({mcpServers:{haft:{command:`haft`,args:[`mcp`]}}})},{client:`vscode`,title:`VS Code`,file:`.vscode/mcp.json`,text:o({servers:{haft:{type:`http`,url:e,...n("${env:HAFT_KEY}")}}})},{client:`cursor`,title:`Cursor`,file:`.cursor/mcp.json`,text:o({mcpServers:{haft:{url:e,...n("${env:HAFT_KEY}")}}})},{client:`codex`,title:`Codex`,file:`~/.codex/config.toml`,text:`[mcp_servers.haft]\nurl = "${e}"${t?`
bearer_token_env_var = "HAFT_KEY"`:``}`},{client:`goose`,title:`goose`,file:`~/.config/goose/config.yaml`,text:`extensions:
  haft:
    type: streamable_http
    name: haft
    enabled: true
    uri: ${e}${t?`
    headers: {Authorization: Bearer YOUR_KEY}`:``}
    timeout: 300`},{client:`gemini`,title:`Gemini CLI`,file:`~/.gemini/settings.json`,text:o({mcpServers:{haft:{httpUrl:e,...n("${HAFT_KEY}")}}})},{client:`windsurf`,title:`Windsurf`,file:`~/.codeium/windsurf/mcp_config.json`,text:o({mcpServers:{haft:{serverUrl:e,...n("${env:HAFT_KEY}")}}})},{client:`zed`,title:`Zed`,file:`~/.config/zed/settings.json`,text:o({context_servers:{haft:{url:e,...n(`YOUR_KEY`)}}})}]}var c=a();function l(){let{is_key:t}=i();return(0,c.jsx)(r,{title:`Connect`,lead:(0,c.jsxs)(c.Fragment,{children:[t?(0,c.jsxs)(c.Fragment,{children:[`Create a key on the `,(0,c.jsx)(e,{href:`/access`,children:`Access`}),` page and store it as`,` `,(0,c.jsx)(`code`,{children:`HAFT_KEY`}),`.`]}):(0,c.jsx)(c.Fragment,{children:`This service has no keys, so programs on this machine connect without one.`}),` `,`On this machine `,(0,c.jsx)(`code`,{children:`haft install CLIENT --write`}),` writes the client's file for you.`]}),children:(0,c.jsx)(u,{endpoint:`/mcp`})})}function u(e){let{is_key:r}=i(),a=window.location.origin,o=e.endpoint===`/mcp`;return(0,c.jsxs)(`div`,{className:`two`,children:[(0,c.jsx)(n,{title:`MCP clients`,children:s(`${a}${e.endpoint}`,r).map(({client:e,title:n,file:r,text:i})=>(0,c.jsx)(t,{label:`${n}, ${r}`,text:i},e))}),(0,c.jsxs)(n,{title:`Programs`,children:[(0,c.jsx)(t,{label:`Python, with the MCP SDK`,text:`import asyncio${r?`, os`:``}
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

URL = "${a}${e.endpoint}"
${r?`HEADERS = {"Authorization": f"Bearer {os.environ['HAFT_KEY']}"}`:`HEADERS = {}`}

async def main():
    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print([tool.name for tool in (await session.list_tools()).tools])

asyncio.run(main())`}),o&&(0,c.jsx)(d,{origin:a,needsKey:r})]})]})}function d(e){let{origin:n,needsKey:r}=e,i=`${n}/api/v1/tools/TOOL/call`,a=r?`-H "x-api-key: $HAFT_KEY" `:``,o=r?`"x-api-key": process.env.HAFT_KEY!, `:``;return(0,c.jsxs)(c.Fragment,{children:[(0,c.jsx)(t,{label:`Python, with haft-client`,text:`${r?`import os

`:``}from haft_client import Haft

with Haft("${n}"${r?`, api_key=os.environ["HAFT_KEY"]`:``}) as haft:
    answer = haft.call("TOOL", {})
    print(answer["status"], answer["content"])`}),(0,c.jsx)(t,{label:`curl`,text:`curl ${i} \\\n  ${a}-H 'content-type: application/json' \\\n  -d '{"arguments": {}}'`}),(0,c.jsx)(t,{label:`TypeScript`,text:`const url = "${i}";
const response = await fetch(url, {
  method: "POST",
  headers: { ${o}"content-type": "application/json" },
  body: JSON.stringify({ arguments: {} }),
});
const answer = await response.json();
console.log(answer.status, answer.content);`})]})}export{u as Snippets,l as default};