import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { ApiError, api, ok, type Schemas, withRevision } from "../api/client";
import { Content } from "../parts/result";
import { plain } from "../parts/text";
import {
  Badge,
  Card,
  Empty,
  Failure,
  Json,
  Loading,
  Page,
  Query,
  State,
  Tabs,
  Time,
  ToolLink,
} from "../parts/ui";
import { Prompts } from "./server-prompts";

const JsonEditor = lazy(() => import("../parts/json-editor"));

type Details = Schemas["ServerDetails"];

const TABS = ["Tools", "Prompts", "Resources", "Settings", "Edit"] as const;

export default function ServerPage() {
  const { name = "" } = useParams<{ name: string }>();
  const server = useQuery({
    queryKey: ["server", name],
    queryFn: () => withRevision(api.GET("/api/v1/servers/{name}", { params: { path: { name } } })),
    refetchInterval: 2_000,
  });
  return (
    <Page title={name} crumb={<Link href="/servers">Servers</Link>} actions={<Actions name={name} />}>
      <Query of={server} what="the server">
        {({ data, etag }) => <Body server={data} etag={etag} />}
      </Query>
    </Page>
  );
}

const NAMES = { reconnect: "Reconnect", disable: "Disable", enable: "Enable" } as const;

function Actions(props: { name: string }) {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const params = { path: { name: props.name } };
  const actions = {
    reconnect: () => api.POST("/api/v1/servers/{name}/reconnect", { params }),
    disable: () => api.POST("/api/v1/servers/{name}/disable", { params }),
    enable: () => api.POST("/api/v1/servers/{name}/enable", { params }),
  };
  const act = async (label: keyof typeof actions) => {
    setBusy(label);
    setError(null);
    try {
      await ok<unknown>(actions[label]());
    } catch (reason) {
      setError(reason);
    }
    setBusy(null);
    await queries.invalidateQueries();
  };
  return (
    <>
      {(Object.keys(actions) as (keyof typeof actions)[]).map((label) => (
        <button type="button" key={label} disabled={busy !== null} onClick={() => void act(label)}>
          {busy === label ? `${NAMES[label]}…` : NAMES[label]}
        </button>
      ))}
      {error ? <Failure error={error} /> : null}
    </>
  );
}

function Body(props: { server: Details; etag: string | null }) {
  const { server } = props;
  const [tab, setTab] = useState<(typeof TABS)[number]>("Tools");
  return (
    <>
      <Card>
        <p className="row">
          <State of={server.state} />
          <span className="small muted">
            since <Time at={server.since} />
          </span>
          <Badge>{server.transport}</Badge>
          <Badge>{server.start}</Badge>
          {server.retries > 0 && <Badge tone="warn">{server.retries} retries</Badge>}
        </p>
        {server.reason && <div className="note warn">{plain(server.reason)}</div>}
        <p className="small">
          <code>{plain(server.endpoint)}</code>
        </p>
        {server.identity && (
          <p className="small muted">
            {plain(server.identity.name ?? "")} {plain(server.identity.version ?? "")}, protocol{" "}
            {plain(server.identity.protocol_version)}
          </p>
        )}
        {server.identity?.instructions && (
          <details>
            <summary>Instructions</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard */}
            <pre tabIndex={0}>{plain(server.identity.instructions)}</pre>
          </details>
        )}
        <StderrTail server={server} />
      </Card>
      <Tabs names={TABS} at={tab} onPick={setTab} />
      {tab === "Tools" && <Tools server={server.name} />}
      {tab === "Prompts" && <Prompts server={server.name} />}
      {tab === "Resources" && <Resources server={server.name} />}
      {tab === "Settings" && <Settings server={server} />}
      {tab === "Edit" && <Edit server={server} etag={props.etag} />}
    </>
  );
}

/** The end of the server's standard error. The service sends it to admins only. */
function StderrTail(props: { server: Details }) {
  const tail = props.server.stderr_tail;
  if (!tail) return null;
  return (
    <details>
      <summary>Standard error</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard */}
      <pre tabIndex={0}>{plain(tail)}</pre>
    </details>
  );
}

function Tools(props: { server: string }) {
  const query = { server: props.server, limit: 1000 };
  const tools = useQuery({
    queryKey: ["server-tools", props.server],
    queryFn: () => ok(api.GET("/api/v1/tools", { params: { query } })),
    refetchInterval: 5_000,
  });
  return (
    <Query of={tools} what="the tools">
      {(data) =>
        data.tools.length === 0 ? (
          <Empty>This server offers no tool now.</Empty>
        ) : (
          <Card>
            <table>
              <tbody>
                {data.tools.map((tool) => (
                  <tr key={tool.name}>
                    <td>
                      <ToolLink name={tool.name} />
                    </td>
                    <td className="small">{plain(tool.description).slice(0, 240)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Card>
        )
      }
    </Query>
  );
}

interface Resource {
  kind: string;
  uri?: string;
  uriTemplate?: string;
  name?: string;
  description?: string;
}

function Resources(props: { server: string }) {
  const [uri, setUri] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  const resources = useQuery({
    queryKey: ["resources", props.server],
    queryFn: () => ok(api.GET("/api/v1/resources", { params: { query: { server: props.server } } })),
  });
  return (
    <Query of={resources} what="the resources">
      {(data) => (
        <Card>
          <form
            className="row"
            onSubmit={(event) => {
              event.preventDefault();
              setOpen(uri);
            }}
          >
            <input
              size={40}
              aria-label="URI of a resource"
              placeholder="URI, or a template with its values filled in"
              value={uri}
              onChange={(event) => setUri(event.target.value)}
            />
            <button type="submit" disabled={uri === ""}>
              Read
            </button>
          </form>
          {open !== null && <ResourceContent server={props.server} uri={open} />}
          {data.resources.length === 0 && <Empty>This server lists no resource.</Empty>}
          <table>
            <tbody>
              {(data.resources as unknown as Resource[]).map((each) => {
                const address = each.uri ?? each.uriTemplate ?? "";
                return (
                  <tr key={address}>
                    <td>
                      <button
                        type="button"
                        className="plain"
                        onClick={() => {
                          setUri(address);
                          if (each.uri) setOpen(each.uri);
                        }}
                      >
                        <code>{plain(address)}</code>
                      </button>
                      {each.uriTemplate && <Badge>template</Badge>}
                    </td>
                    <td className="small">{plain(each.description ?? each.name ?? "")}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Card>
      )}
    </Query>
  );
}

function ResourceContent(props: { server: string; uri: string }) {
  const query = { server: props.server, uri: props.uri };
  const content = useQuery({
    queryKey: ["resource", query],
    queryFn: () => ok(api.GET("/api/v1/resources/content", { params: { query } })),
    retry: false,
  });
  return (
    <Query of={content} what="the resource">
      {(data) =>
        (data.contents as unknown as { type: string; uri: string; text?: string; mime_type?: string }[]).map(
          (each) => <Content key={each.uri} block={each} />,
        )
      }
    </Query>
  );
}

function Settings(props: { server: Details }) {
  const values = props.server.definition;
  return (
    <Card title="Settings and their origin">
      <table>
        <thead>
          <tr>
            <th>Setting</th>
            <th>Value</th>
            <th>Set by</th>
          </tr>
        </thead>
        <tbody>
          {values.map((each) => (
            <tr key={each.path}>
              <td>
                <code>{plain(each.path)}</code>
              </td>
              <td>
                {typeof each.value === "object" ? <Json value={each.value} /> : plain(String(each.value))}
              </td>
              <td className="small">{plain(each.from)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

/** The registry's entry of a server, edited as JSON. A change made elsewhere meanwhile is not overwritten. */
function Edit(props: { server: Details; etag: string | null }) {
  const queries = useQueryClient();
  const [, go] = useLocation();
  const name = props.server.name;
  const path = { name };
  // The revision that was read when the editor opened: a newer one must not replace it unseen.
  const [opened] = useState(props.etag);
  const [text, setText] = useState(() => JSON.stringify(props.server.entry ?? {}, null, 2));
  const [error, setError] = useState<unknown>(null);
  const [isSaved, setSaved] = useState(false);
  if (!props.server.in_registry) {
    return (
      <Empty>A configuration file names this server. Edit that file; the registry cannot change it.</Empty>
    );
  }
  if (!props.server.entry) {
    return (
      <Empty>
        The entry is shown to admins only, and not at all if it holds a literal secret: edit the registry's
        file, or replace the secret by a variable.
      </Empty>
    );
  }
  const attempt = async (change: () => Promise<unknown>) => {
    setError(null);
    setSaved(false);
    try {
      await change();
      setSaved(true);
    } catch (reason) {
      setError(reason);
    }
    await queries.invalidateQueries();
  };
  const headers = opened ? { "If-Match": opened } : {};
  const save = () =>
    attempt(() =>
      ok<unknown>(
        api.PUT("/api/v1/servers/{name}", { params: { path, header: headers }, body: JSON.parse(text) }),
      ),
    );
  const remove = () =>
    attempt(async () => {
      await ok<unknown>(api.DELETE("/api/v1/servers/{name}", { params: { path, header: headers } }));
      go("/servers");
    });
  const isConflict = error instanceof ApiError && error.status === 412;
  return (
    <Card title="Entry in the registry">
      <Suspense fallback={<Loading what="the editor" />}>
        <JsonEditor label="Entry as JSON" value={text} onChange={setText} />
      </Suspense>
      <p className="row">
        <button type="button" className="primary" onClick={() => void save()}>
          Save
        </button>
        <button type="button" className="danger" onClick={() => void remove()}>
          Remove from the registry
        </button>
        {isSaved && <Badge tone="ok">saved</Badge>}
      </p>
      {isConflict && (
        <div className="note warn" role="alert">
          The entry was changed elsewhere since you opened it. Copy your text, then reload the page.
        </div>
      )}
      {error ? <Failure error={error} /> : null}
    </Card>
  );
}
