import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { AdminOnly } from "../parts/admin-only";
import { type Column, Table } from "../parts/table";
import { plain } from "../parts/text";
import { Badge, Card, Copy, Empty, Failure, Page, Query, Time } from "../parts/ui";

type Key = Schemas["KeySummary"];

export default function Access() {
  return (
    <Page title="Access" lead="Keys for people and programs, and the profiles that limit what they see.">
      <AdminOnly>
        <NewKey />
        <Keys />
      </AdminOnly>
      <Profiles />
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
    { name: "Profile", cell: (key) => plain(key.profile ?? "–") },
    { name: "Created", cell: (key) => key.created.slice(0, 10) },
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

function NewKey() {
  const queries = useQueryClient();
  const profiles = useProfiles();
  const [name, setName] = useState("");
  const [scope, setScope] = useState<"call" | "admin">("call");
  const [profile, setProfile] = useState("");
  const [created, setCreated] = useState<Schemas["CreatedKey"] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const create = async () => {
    setError(null);
    setCreated(null);
    try {
      const body = { name, scope, ...(profile ? { profile } : {}) };
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
            setScope(event.target.value as "call" | "admin");
            setProfile("");
          }}
        >
          <option value="call">call: use tools</option>
          <option value="admin">admin: change everything</option>
        </select>
        <select
          aria-label="Profile"
          value={profile}
          disabled={scope === "admin"}
          onChange={(event) => setProfile(event.target.value)}
        >
          <option value="">whole toolbox</option>
          {(profiles.data?.profiles ?? []).map((each) => (
            <option key={each.name} value={each.name}>
              profile {plain(each.name)}
            </option>
          ))}
        </select>
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
