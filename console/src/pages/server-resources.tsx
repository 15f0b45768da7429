import { useQuery } from "@tanstack/react-query";
import { FileText } from "lucide-react";
import { useState } from "react";
import { api, ok } from "../api/client";
import { Content } from "../parts/result";
import { plain } from "../parts/text";
import { Badge, Card, Empty, Query } from "../parts/ui";

interface Resource {
  kind: string;
  uri?: string;
  uriTemplate?: string;
  name?: string;
  description?: string;
}

export function Resources(props: { server: string }) {
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
          {data.resources.length === 0 && <Empty title="This server lists no resource" icon={FileText} />}
          <table className="stacks">
            <tbody>
              {(data.resources as unknown as Resource[]).map((each) => {
                const address = each.uri ?? each.uriTemplate ?? "";
                return (
                  <tr key={address}>
                    <td>
                      <button
                        type="button"
                        className="quiet compact address"
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
