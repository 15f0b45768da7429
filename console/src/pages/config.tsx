import { useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCw } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { AdminOnly } from "../parts/admin-only";
import { SearchBox, Settings, useFilters } from "../parts/table";
import { plain } from "../parts/text";
import { Badge, Card, Failure, Page, Query, Time } from "../parts/ui";

export default function Config() {
  return (
    <AdminOnly title="Configuration">
      <ConfigPage />
    </AdminOnly>
  );
}

function ConfigPage() {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [isDone, setDone] = useState(false);
  const config = useQuery({
    queryKey: ["config"],
    queryFn: () => ok(api.GET("/api/v1/config")),
    retry: false,
  });
  const reload = async () => {
    setError(null);
    setDone(false);
    try {
      await ok<unknown>(api.POST("/api/v1/reload"));
      setDone(true);
    } catch (reason) {
      setError(reason);
    }
    await queries.invalidateQueries();
  };
  return (
    <Page
      title="Configuration"
      lead="Every value that is in use, and the file and line that set it."
      actions={
        <>
          {isDone && <Badge tone="ok">reloaded</Badge>}
          <button type="button" onClick={() => void reload()}>
            <RotateCw size={15} aria-hidden />
            Reload
          </button>
        </>
      }
    >
      {error ? <Failure error={error} /> : null}
      <Query of={config} what="the configuration">
        {(data) => <Values config={data} />}
      </Query>
    </Page>
  );
}

function Values(props: { config: Schemas["Resolved"] }) {
  const { config } = props;
  const [params, set] = useFilters();
  const text = params.get("q") ?? "";
  const isChanged = params.get("changed") !== null;
  const typed = useDeferredValue(text.toLowerCase());
  const shown = config.values.filter(
    (each) =>
      `${each.path} ${each.from}`.toLowerCase().includes(typed) && (!isChanged || each.from !== "default"),
  );
  const problem = config.live.problem;
  return (
    <>
      {problem && (
        <div className="note bad" role="alert">
          <p>
            <strong>The files as they are now are not in use</strong> since <Time at={problem.since} />:{" "}
            {plain(problem.text)}
          </p>
          {problem.errors.map((each) => (
            <p key={`${each.place}${each.problem}`}>
              <code>{plain(each.place)}</code>: {plain(each.problem)} {plain(each.remedy ?? "")}
            </p>
          ))}
        </div>
      )}
      {config.live.waiting_for_restart.length > 0 && (
        <div className="note warn">
          These changes need a restart: {config.live.waiting_for_restart.map(plain).join(", ")}
        </div>
      )}
      {config.warnings.map((each) => (
        <div className="note warn" key={`${each.place}${each.problem}`}>
          <code>{plain(each.place)}</code>: {plain(each.problem)} {plain(each.remedy ?? "")}
        </div>
      ))}
      <Card title="Files">
        {config.files.map((file) => (
          <p key={file.path} className="small">
            <code>{plain(file.path)}</code> <Badge>{file.format}</Badge>
          </p>
        ))}
      </Card>
      <Card
        title="Values and their origin"
        actions={
          <>
            <label className="row small">
              <input
                type="checkbox"
                checked={isChanged}
                onChange={(event) => set("changed", event.target.checked ? "1" : "")}
              />
              without defaults
            </label>
            <SearchBox label="Filter values" value={text} onChange={(next) => set("q", next)} />
          </>
        }
      >
        <Settings rows={shown.map(({ path, value, from }) => ({ key: path, value, from }))} />
      </Card>
    </>
  );
}
