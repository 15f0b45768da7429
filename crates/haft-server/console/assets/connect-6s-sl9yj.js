import{c as e,d as t,n}from"./ui-BA3gZtnq.js";import{t as r}from"./jsx-runtime-DyZJNswf.js";var i=r();function a(){let r=window.location.origin,a=`${r}/mcp`,o={type:`http`,url:a,headers:{Authorization:`Bearer YOUR_KEY`}},s=e=>JSON.stringify(e,null,2);return(0,i.jsxs)(e,{title:`Connect`,children:[(0,i.jsxs)(`p`,{className:`muted`,children:[`Create a key on the Access page and put it in place of `,(0,i.jsx)(`code`,{children:`YOUR_KEY`}),`. On this machine`,` `,(0,i.jsx)(`code`,{children:`haft install CLIENT --write`}),` writes the client's file for you.`]}),(0,i.jsxs)(`div`,{className:`two`,children:[(0,i.jsxs)(n,{title:`MCP clients`,children:[(0,i.jsx)(t,{label:`Claude Code`,text:`claude mcp add --transport http haft ${a} --header "Authorization: Bearer YOUR_KEY"`}),(0,i.jsx)(t,{label:`Claude Desktop, .mcp.json`,text:s({mcpServers:{haft:o}})}),(0,i.jsx)(t,{label:`VS Code, .vscode/mcp.json`,text:s({servers:{haft:o}})}),(0,i.jsx)(t,{label:`Cursor, .cursor/mcp.json`,text:s({mcpServers:{haft:{url:a,headers:o.headers}}})}),(0,i.jsx)(t,{label:`Codex, config.toml`,text:`[mcp_servers.haft]\nurl = "${a}"\nbearer_token_env_var = "HAFT_KEY"`})]}),(0,i.jsxs)(n,{title:`Programs`,children:[(0,i.jsx)(t,{label:`curl`,text:`curl ${r}/api/v1/tools/TOOL/call \\\n  -H "x-api-key: $HAFT_KEY" -H 'content-type: application/json' \\\n  -d '{"arguments": {}}'`}),(0,i.jsx)(t,{label:`Python`,text:`import os, httpx

answer = httpx.post(
    "${r}/api/v1/tools/TOOL/call",
    headers={"x-api-key": os.environ["HAFT_KEY"]},
    json={"arguments": {}},
).json()
print(answer["status"], answer["content"])`}),(0,i.jsx)(t,{label:`TypeScript`,text:`const answer = await fetch("${r}/api/v1/tools/TOOL/call", {
  method: "POST",
  headers: { "x-api-key": process.env.HAFT_KEY!, "content-type": "application/json" },
  body: JSON.stringify({ arguments: {} }),
}).then((response) => response.json());
console.log(answer.status, answer.content);`})]})]})]})}export{a as default};