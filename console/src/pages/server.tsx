import { useQuery, useQueryClient } from "@tanstack/react-query";
import { FileCog, FileLock, History as HistoryIcon, Wrench } from "lucide-react";
import { useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { api, ok, type Schemas, withRevision } from "../api/client";
import { EntryEditor } from "../parts/entry-editor";
import { Settings, Table, useFilters } from "../parts/table";
import { plain } from "../parts/text";
import { Badge, Card, Empty, Failure, Page, Query, State, Tabs, Time, ToolLink } from "../parts/ui";
import { useSession } from "../session";
import { Prompts } from "./server-prompts";
import { Resources } from "./server-resources";
import { SignIn } from "./server-sign-in";

type Details = Schemas["ServerDetails"];

const TABS = ["Tools", "Prompts", "Resources", "History", "Settings", "Edit"] as const;

/** How the service words that a server refuses without tokens. */
const NEEDS_SIGN_IN = /haft login|sign in|authoriz/i;

export default function ServerPage() {
  const { name = "" } = useParams<{ name: string }>();
  const server = useQuery({
    queryKey: ["server", name],
    queryFn: () => withRevision(api.GET("/api/v1/servers/{name}", { params: { path: { name } } })),
    refetchInterval: 2_000,
  });
  return (
    <Page
      title={name}
      crumb={<Link href="/servers">Servers</Link>}
      actions={
        <Actions
          name={name}
          state={server.data?.data.state}
          inRegistry={server.data?.data.in_registry ?? false}
        />
      }
    >
      <Query of={server} what="the server">
        {({ data, etag }) => <Body server={data} etag={etag} />}
      </Query>
    </Page>
  );
}

const NAMES = { reconnect: "Reconnect", disable: "Disable", enable: "Enable" } as const;

function Actions(props: { name: string; state: string | undefined; inRegistry: boolean }) {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const params = { path: { name: props.name } };
  const actions = {
    reconnect: () => api.POST("/api/v1/servers/{name}/reconnect", { params }),
    disable: () => api.POST("/api/v1/servers/{name}/disable", { params }),
    enable: () => api.POST("/api/v1/servers/{name}/enable", { params }),
  };
  const isDisabled = props.state === "disabled";
  // The registry enables and disables its own servers; a configuration file decides about its own.
  const offered: (keyof typeof actions)[] = isDisabled
    ? props.inRegistry
      ? ["enable"]
      : []
    : props.inRegistry
      ? ["reconnect", "disable"]
      : ["reconnect"];
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
      {offered.map((label) => (
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
  const session = useSession();
  const [params, set] = useFilters();
  const tab = TABS.find((each) => each === params.get("tab")) ?? "Tools";
  const setTab = (name: string) => set("tab", name);
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
      {server.transport !== "stdio" && session.scope === "admin" && (
        <SignIn
          server={server.name}
          isNeeded={server.state !== "ready" && NEEDS_SIGN_IN.test(server.reason ?? "")}
        />
      )}
      <Tabs names={TABS} at={tab} onPick={setTab} />
      {tab === "Tools" && <Tools server={server.name} />}
      {tab === "Prompts" && <Prompts server={server.name} />}
      {tab === "Resources" && <Resources server={server.name} />}
      {tab === "History" && <History server={server} />}
      {tab === "Settings" && (
        <Card title="Settings and their origin">
          <Settings
            rows={server.definition.map(({ path, value, from }) => ({
              key: path.replace(`servers.${server.name}.`, ""),
              value,
              from,
            }))}
          />
        </Card>
      )}
      {tab === "Edit" && <Edit server={server} etag={props.etag} />}
    </>
  );
}

/** The last changes of state, the newest first. */
function History(props: { server: Details }) {
  const changes = props.server.history.toReversed();
  return (
    <Card title="Changes of state" actions={<span className="small muted">the last 50</span>}>
      {changes.length === 0 ? (
        <Empty title="The state has not changed yet" icon={HistoryIcon} />
      ) : (
        <ol className="timeline">
          {changes.map((change) => (
            <li key={change.at}>
              <Time at={change.at} />
              <State of={change.state} />
              <span className="small">{plain(change.reason ?? "")}</span>
            </li>
          ))}
        </ol>
      )}
    </Card>
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
          <Empty title="This server offers no tool now" icon={Wrench}>
            Its tools appear when it is ready.
          </Empty>
        ) : (
          <Card>
            <Table
              rows={data.tools}
              keyOf={(tool) => tool.name}
              columns={[
                { name: "Name", kind: "name", cell: (tool) => <ToolLink name={tool.name} /> },
                {
                  name: "Description",
                  isPlain: true,
                  cell: (tool) => (
                    <span className="small clamp">{plain(tool.description).slice(0, 400)}</span>
                  ),
                },
              ]}
            />
          </Card>
        )
      }
    </Query>
  );
}

/** The registry's entry of a server. */
function Edit(props: { server: Details; etag: string | null }) {
  const [, go] = useLocation();
  const path = { name: props.server.name };
  // The page reads the server again every few seconds; the editor keeps the revision it was opened with.
  const [opened] = useState({ entry: props.server.entry, etag: props.etag });
  if (!props.server.in_registry) {
    return (
      <Empty title="A configuration file names this server" icon={FileCog}>
        Edit that file and reload; the registry cannot change it. “Settings” shows the file and line.
      </Empty>
    );
  }
  if (!opened.entry) {
    return (
      <Empty title="The entry is not shown" icon={FileLock}>
        It is shown to admins only, and not at all if it holds a literal secret: edit the registry's file, or
        replace the secret by a variable.
      </Empty>
    );
  }
  const read = async () => {
    const { data, etag } = await withRevision(api.GET("/api/v1/servers/{name}", { params: { path } }));
    return { entry: data.entry, etag };
  };
  return (
    <Card title="Entry in the registry">
      <EntryEditor
        opened={opened}
        read={read}
        save={async (entry, header) => {
          const body = entry as Record<string, never>;
          const { etag } = await withRevision<unknown>(
            api.PUT("/api/v1/servers/{name}", { params: { path, header }, body }),
          );
          return { entry, etag };
        }}
        remove={(header) => ok<unknown>(api.DELETE("/api/v1/servers/{name}", { params: { path, header } }))}
        removeLabel="Remove from the registry"
        onRemoved={() => go("/servers")}
      />
    </Card>
  );
}
