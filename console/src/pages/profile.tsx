// The console of a key that is bound to a profile: the tools of that profile and how to connect, nothing else.

import { useQuery } from "@tanstack/react-query";
import { api, ok } from "../api/client";
import { Table } from "../parts/table";
import { plain } from "../parts/text";
import { Card, Empty, Page, Query } from "../parts/ui";
import { useSession } from "../session";
import { SignOut } from "../sign-out";
import { Snippets } from "./connect";

export default function Profile() {
  const session = useSession();
  const profiles = useQuery({ queryKey: ["profiles"], queryFn: () => ok(api.GET("/api/v1/profiles")) });
  return (
    <Page
      title={`Profile ${session.profile ?? ""}`}
      lead={`The key ${plain(session.name)} is bound to this profile.`}
      actions={<SignOut />}
    >
      <Query of={profiles} what="the profile">
        {(data) => {
          const profile = data.profiles[0];
          if (!profile) {
            return (
              <Empty title="The profile is not configured any more">Ask the operator for another key.</Empty>
            );
          }
          return (
            <>
              <Card title={`${profile.tools.length} tools`}>
                <Table
                  rows={profile.tools}
                  keyOf={(tool) => tool.name}
                  columns={[
                    { name: "Tool", kind: "name", cell: (tool) => plain(tool.name) },
                    { name: "Server", kind: "fit", cell: (tool) => plain(tool.server ?? "local") },
                    {
                      name: "Description",
                      isPlain: true,
                      cell: (tool) => <span className="small">{plain(tool.description)}</span>,
                    },
                  ]}
                />
              </Card>
              <Snippets endpoint={profile.endpoint} />
            </>
          );
        }}
      </Query>
    </Page>
  );
}
