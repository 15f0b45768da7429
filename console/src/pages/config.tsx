import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { plain } from "../parts/text";
import { Badge, Card, Failure, Page, Query, Time } from "../parts/ui";

export default function Config() {
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
      actions={
        <>
          {isDone && <Badge tone="ok">reloaded</Badge>}
          <button type="button" onClick={() => void reload()}>
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
  const [text, setText] = useState("");
  const typed = useDeferredValue(text.toLowerCase());
  const shown = config.values.filter((each) => `${each.path} ${each.from}`.toLowerCase().includes(typed));
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
          <input
            type="search"
            aria-label="Filter values"
            placeholder="Filter"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        }
      >
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>Setting</th>
                <th>Value</th>
                <th>Set by</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((each) => (
                <tr key={each.path}>
                  <td>
                    <code>{plain(each.path)}</code>
                  </td>
                  <td className="mono small">{plain(JSON.stringify(each.value))}</td>
                  <td className="small">{plain(each.from)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </>
  );
}
