import{V as e,g as t,o as n,p as r}from"./index-CmiMA5xq.js";import{t as i}from"./jsx-runtime-CkXRJ162.js";var a=e=>JSON.stringify(e,null,2);function o(e){let t=e=>({Authorization:`Bearer ${e}`});return[{client:`claude`,title:`Claude Code`,file:`.mcp.json`,text:a({mcpServers:{haft:{type:`http`,url:e,headers:t("${HAFT_KEY}")}}})},{client:`claude-desktop`,title:`Claude Desktop`,file:`claude_desktop_config.json`,text:a({mcpServers:{haft:{command:`haft`,args:[`mcp`]}}})},{client:`vscode`,title:`VS Code`,file:`.vscode/mcp.json`,text:a({servers:{haft:{type:`http`,url:e,headers:t("${env:HAFT_KEY}")}}})},{client:`cursor`,title:`Cursor`,file:`.cursor/mcp.json`,text:a({mcpServers:{haft:{url:e,headers:t("${env:HAFT_KEY}")}}})},{client:`codex`,title:`Codex`,file:`~/.codex/config.toml`,text:`[mcp_servers.haft]\nurl = "${e}"\nbearer_token_env_var = "HAFT_KEY"`},{client:`goose`,title:`goose`,file:`~/.config/goose/config.yaml`,text:`extensions:
  haft:
    type: streamable_http
    name: haft
    enabled: true
    uri: ${e}
    headers: {Authorization: Bearer YOUR_KEY}
    timeout: 300`},{client:`gemini`,title:`Gemini CLI`,file:`~/.gemini/settings.json`,text:a({mcpServers:{haft:{httpUrl:e,headers:t("${HAFT_KEY}")}}})},{client:`windsurf`,title:`Windsurf`,file:`~/.codeium/windsurf/mcp_config.json`,text:a({mcpServers:{haft:{serverUrl:e,headers:t("${env:HAFT_KEY}")}}})},{client:`zed`,title:`Zed`,file:`~/.config/zed/settings.json`,text:a({context_servers:{haft:{url:e,headers:t(`YOUR_KEY`)}}})}]}var s=i();function c(){return(0,s.jsx)(r,{title:`Connect`,lead:(0,s.jsxs)(s.Fragment,{children:[`Create a key on the `,(0,s.jsx)(e,{href:`/access`,children:`Access`}),` page and store it as `,(0,s.jsx)(`code`,{children:`HAFT_KEY`}),`. On this machine `,(0,s.jsx)(`code`,{children:`haft install CLIENT --write`}),` writes the client's file for you.`]}),children:(0,s.jsx)(l,{endpoint:`/mcp`})})}function l(e){let r=window.location.origin,i=e.endpoint===`/mcp`;return(0,s.jsxs)(`div`,{className:`two`,children:[(0,s.jsx)(n,{title:`MCP clients`,children:o(`${r}${e.endpoint}`).map(({client:e,title:n,file:r,text:i})=>(0,s.jsx)(t,{label:`${n}, ${r}`,text:i},e))}),(0,s.jsxs)(n,{title:`Programs`,children:[(0,s.jsx)(t,{label:`Python, with the MCP SDK`,text:`import asyncio, os
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main():
    headers = {"Authorization": f"Bearer {os.environ['HAFT_KEY']}"}
    async with streamablehttp_client("${r}${e.endpoint}", headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print([tool.name for tool in (await session.list_tools()).tools])

asyncio.run(main())`}),i&&(0,s.jsx)(u,{origin:r})]})]})}function u(e){let n=`${e.origin}/api/v1/tools/TOOL/call`;return(0,s.jsxs)(s.Fragment,{children:[(0,s.jsx)(t,{label:`curl`,text:`curl ${n} \\\n  -H "x-api-key: $HAFT_KEY" -H 'content-type: application/json' \\\n  -d '{"arguments": {}}'`}),(0,s.jsx)(t,{label:`Python`,text:`import os, httpx

answer = httpx.post(
    "${n}",
    headers={"x-api-key": os.environ["HAFT_KEY"]},
    json={"arguments": {}},
).json()
print(answer["status"], answer["content"])`}),(0,s.jsx)(t,{label:`TypeScript`,text:`const answer = await fetch("${n}", {
  method: "POST",
  headers: { "x-api-key": process.env.HAFT_KEY!, "content-type": "application/json" },
  body: JSON.stringify({ arguments: {} }),
}).then((response) => response.json());
console.log(answer.status, answer.content);`})]})}export{l as Snippets,c as default};