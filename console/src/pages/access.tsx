import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { AdminOnly } from "../parts/admin-only";
import { type Column, Table } from "../parts/table";
import { plain } from "../parts/text";
import { Badge, Card, Copy, Empty, Failure, Page, Query, Time } from "../parts/ui";

type Key = Schemas["KeySummary"];
type Scope = Schemas["KeyScope"];

const SCOPES: Record<Scope, string> = {
  call: "call: use tools",
  approve: "approve: use tools and approve calls",
  admin: "admin: change everything",
  metrics: "metrics: read /metrics",
};

export default function Access() {
  return (
    <Page title="Access" lead="Keys for people and programs, and the profiles that limit what they see.">
      <AdminOnly>
        <NewKey />
        <Keys />
      </AdminOnly>
      <Profiles />
      <AdminOnly>
        <Audit />
      </AdminOnly>
    </Page>
  );
}

function Keys() {
  const queries = useQueryClient();
  const keys = useQuery({ queryKey: ["keys"], queryFn: () => ok(api.GET("/api/v1/keys")), retry: false });
  const [error, setError] = useState<unknown>(null);
  const [sure, setSure] = useState<string | null>(null);
  const revoke = async (name: string) => {
    setError(null);
    setSure(null);
    try {
      await ok<unknown>(api.DELETE("/api/v1/keys/{name}", { params: { path: { name } } }));
    } catch (reason) {
      setError(reason);
    }
    await queries.invalidateQueries({ queryKey: ["keys"] });
  };
  const columns: Column<Key>[] = [
    { name: "Name", kind: "name", cell: (key) => plain(key.name) },
    {
      name: "Scope",
      kind: "fit",
      cell: (key) => <Badge tone={key.scope === "admin" ? "warn" : ""}>{key.scope}</Badge>,
    },
    { name: "Sees", cell: (key) => plain(visible(key)) },
    { name: "Limits", cell: (key) => plain(limits(key)) },
    { name: "Created", cell: (key) => key.created.slice(0, 10) },
    { name: "Expires", cell: (key) => key.expires?.slice(0, 10) ?? "never" },
    { name: "Last use", cell: (key) => <Time at={key.last_used} /> },
    {
      name: "Action",
      kind: "fit",
      isPlain: true,
      cell: (key) =>
        sure === key.name ? (
          <span className="row">
            <button type="button" className="danger compact" onClick={() => void revoke(key.name)}>
              Revoke it now
            </button>
            <button type="button" className="compact" onClick={() => setSure(null)}>
              Keep it
            </button>
          </span>
        ) : (
          <button type="button" className="danger compact" onClick={() => setSure(key.name)}>
            Revoke
          </button>
        ),
    },
  ];
  return (
    <>
      {error ? <Failure error={error} /> : null}
      <Query of={keys} what="the keys">
        {(data) => (
          <Card title="Keys">
            {data.keys.length === 0 ? (
              <Empty title="There is no key" icon={KeyRound}>
                Create one before you listen beyond this machine.
              </Empty>
            ) : (
              <Table rows={data.keys} keyOf={(key) => key.name} columns={columns} />
            )}
          </Card>
        )}
      </Query>
    </>
  );
}

/** The part of the toolbox that a key sees. */
function visible(key: Key): string {
  if (key.profile) return `profile ${key.profile}`;
  const lists = [...(key.servers ?? []), ...(key.tools ?? [])];
  return lists.length === 0 ? "everything" : lists.join(", ");
}

function limits(key: Key): string {
  const burst = key.burst ? `burst ${key.burst}` : null;
  const log = key.log_quota ? `log ${key.log_quota}` : null;
  return [key.rate, burst, key.quota, log].filter((limit) => limit != null).join(", ") || "–";
}

function NewKey() {
  const queries = useQueryClient();
  const profiles = useProfiles();
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("call");
  const [profile, setProfile] = useState("");
  const [expires, setExpires] = useState("");
  const [rate, setRate] = useState("");
  const [quota, setQuota] = useState("");
  const [logQuota, setLogQuota] = useState("");
  const [created, setCreated] = useState<Schemas["CreatedKey"] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const create = async () => {
    setError(null);
    setCreated(null);
    try {
      const body = {
        name,
        scope,
        profile: profile || null,
        expires: expires || null,
        rate: rate || null,
        quota: quota || null,
        log_quota: logQuota || null,
      };
      setCreated(await ok(api.POST("/api/v1/keys", { body })));
      setName("");
    } catch (reason) {
      setError(reason);
    }
    await queries.invalidateQueries({ queryKey: ["keys"] });
  };
  return (
    <Card title="Create a key">
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <input
          aria-label="Name"
          placeholder="name"
          required
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <select
          aria-label="Scope"
          value={scope}
          onChange={(event) => {
            setScope(event.target.value as Scope);
            setProfile("");
          }}
        >
          {Object.entries(SCOPES).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <select
          aria-label="Profile"
          value={profile}
          disabled={scope !== "call"}
          onChange={(event) => setProfile(event.target.value)}
        >
          <option value="">whole toolbox</option>
          {(profiles.data?.profiles ?? []).map((each) => (
            <option key={each.name} value={each.name}>
              profile {plain(each.name)}
            </option>
          ))}
        </select>
        <Limit label="Expires after" example="30d" value={expires} set={setExpires} />
        {scope !== "metrics" && (
          <>
            <Limit label="Rate" example="60/min" value={rate} set={setRate} />
            <Limit label="Quota" example="10000/day" value={quota} set={setQuota} />
            <Limit label="Log quota" example="100MB/day" value={logQuota} set={setLogQuota} />
          </>
        )}
        <button type="submit" className="primary">
          Create
        </button>
      </form>
      {created && (
        <div className="note ok" role="status">
          <p>The key of {plain(created.name)} is shown once. Store it now.</p>
          <p className="row">
            <code>{created.key}</code>
            <Copy text={created.key} />
          </p>
        </div>
      )}
      {error ? <Failure error={error} /> : null}
    </Card>
  );
}

function Limit(props: { label: string; example: string; value: string; set: (value: string) => void }) {
  return (
    <label className="row small">
      {props.label}
      <input
        size={10}
        placeholder={props.example}
        value={props.value}
        onChange={(event) => props.set(event.target.value)}
      />
    </label>
  );
}

const AUDIT_MAX = 100;

function Audit() {
  const audit = useQuery({
    queryKey: ["audit"],
    queryFn: () => ok(api.GET("/api/v1/audit", { params: { query: { limit: AUDIT_MAX } } })),
    retry: false,
  });
  return (
    <Card title="Changes by admins">
      <Query of={audit} what="the audit log">
        {(data) =>
          data.actions.length === 0 ? (
            <Empty title="No admin has changed anything yet" />
          ) : (
            <Table
              rows={data.actions}
              keyOf={(action) => action.id}
              columns={[
                { name: "Time", cell: (action) => <Time at={action.at} /> },
                { name: "Who", cell: (action) => plain(action.who) },
                { name: "From", cell: (action) => plain(action.from) },
                { name: "Action", kind: "fit", cell: (action) => plain(action.action) },
                { name: "Item", cell: (action) => plain(action.target ?? "–") },
                {
                  name: "Outcome",
                  kind: "fit",
                  cell: (action) => (
                    <Badge tone={action.outcome === "failed" ? "warn" : ""}>{plain(action.outcome)}</Badge>
                  ),
                },
              ]}
            />
          )
        }
      </Query>
    </Card>
  );
}

function useProfiles() {
  return useQuery({ queryKey: ["profiles"], queryFn: () => ok(api.GET("/api/v1/profiles")), retry: false });
}

function Profiles() {
  const profiles = useProfiles();
  return (
    <Card title="Profiles">
      <Query of={profiles} what="the profiles">
        {(data) =>
          data.profiles.length === 0 ? (
            <Empty title="No profile is configured">
              <p>
                A profile shows a part of the toolbox at its own endpoint: <code>profiles</code> in the
                configuration file.
              </p>
            </Empty>
          ) : (
            data.profiles.map((profile) => <ProfileTools key={profile.name} profile={profile} />)
          )
        }
      </Query>
    </Card>
  );
}

function ProfileTools(props: { profile: Schemas["ProfileSummary"] }) {
  const { profile } = props;
  return (
    <details>
      <summary>
        <strong>{plain(profile.name)}</strong>{" "}
        <span className="muted small">
          {profile.tools.length} tools at <code>{plain(profile.endpoint)}</code>
        </span>
      </summary>
      <Table
        rows={profile.tools}
        keyOf={(tool) => tool.name}
        columns={[
          { name: "Tool", kind: "name", cell: (tool) => plain(tool.name) },
          { name: "Server", kind: "fit", cell: (tool) => plain(tool.server ?? "local") },
          {
            name: "Description",
            isPlain: true,
            cell: (tool) => <span className="small clamp">{plain(tool.description).slice(0, 400)}</span>,
          },
        ]}
      />
    </details>
  );
}
