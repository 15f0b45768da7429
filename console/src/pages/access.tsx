import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { plain } from "../parts/text";
import { Badge, Card, Copy, Empty, Failure, Page, Query, Time } from "../parts/ui";

export default function Access() {
  const queries = useQueryClient();
  const keys = useQuery({ queryKey: ["keys"], queryFn: () => ok(api.GET("/api/v1/keys")), retry: false });
  const [error, setError] = useState<unknown>(null);
  const revoke = async (name: string) => {
    setError(null);
    try {
      await ok<unknown>(api.DELETE("/api/v1/keys/{name}", { params: { path: { name } } }));
    } catch (reason) {
      setError(reason);
    }
    await queries.invalidateQueries({ queryKey: ["keys"] });
  };
  return (
    <Page title="Access">
      <NewKey />
      {error ? <Failure error={error} /> : null}
      <Query of={keys} what="the keys">
        {(data) =>
          data.keys.length === 0 ? (
            <Empty>There is no key. Create one before you listen beyond this machine.</Empty>
          ) : (
            <Card title="Keys">
              <div className="scroll">
                <table>
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>Scope</th>
                      <th>Profile</th>
                      <th>Created</th>
                      <th>Last use</th>
                      <th>
                        <span className="muted">Action</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {data.keys.map((key) => (
                      <tr key={key.name}>
                        <td>{plain(key.name)}</td>
                        <td>
                          <Badge tone={key.scope === "admin" ? "warn" : ""}>{key.scope}</Badge>
                        </td>
                        <td>{plain(key.profile ?? "–")}</td>
                        <td className="small">{key.created.slice(0, 10)}</td>
                        <td className="small">
                          <Time at={key.last_used} />
                        </td>
                        <td>
                          <button type="button" className="danger" onClick={() => void revoke(key.name)}>
                            Revoke
                          </button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </Card>
          )
        }
      </Query>
      <Profiles />
    </Page>
  );
}

function NewKey() {
  const queries = useQueryClient();
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
          onChange={(event) => setScope(event.target.value as "call" | "admin")}
        >
          <option value="call">call: use tools</option>
          <option value="admin">admin: change everything</option>
        </select>
        <input
          aria-label="Profile"
          placeholder="profile (optional)"
          value={profile}
          onChange={(event) => setProfile(event.target.value)}
        />
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

function Profiles() {
  const config = useQuery({
    queryKey: ["config"],
    queryFn: () => ok(api.GET("/api/v1/config")),
    retry: false,
  });
  const values = (config.data?.values ?? []).filter((each) => each.path.startsWith("profiles."));
  if (values.length === 0) return null;
  return (
    <Card title="Profiles">
      <table>
        <tbody>
          {values.map((each) => (
            <tr key={each.path}>
              <td>
                <code>{plain(each.path)}</code>
              </td>
              <td className="mono small">{plain(JSON.stringify(each.value))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
