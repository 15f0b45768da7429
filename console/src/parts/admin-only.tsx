// Parts of the console that need an admin key, and what others see in their place.

import { KeyRound } from "lucide-react";
import type { ReactNode } from "react";
import { useSession } from "../session";
import { Card, Empty, Page, Snippet } from "./ui";

/** Shows its children to admins. With a title it stands for a whole page. */
export function AdminOnly(props: { title?: string; children: ReactNode }) {
  const session = useSession();
  if (session.scope === "admin") return props.children;
  const explained = <NeedsAdmin isKey={session.is_key} />;
  return props.title ? <Page title={props.title}>{explained}</Page> : explained;
}

function NeedsAdmin(props: { isKey: boolean }) {
  return (
    <Card>
      <Empty title="This needs an admin key" icon={KeyRound}>
        <p>
          {props.isKey
            ? "You are signed in with a key that may use tools. Sign out, and sign in with an admin key."
            : "The service has no key yet. Create one in the folder of its configuration, reload this page, and sign in with it. From then on every request needs a key."}
        </p>
      </Empty>
      {!props.isKey && <Snippet label="At a terminal" text="haft keys create --scope admin --name me" />}
    </Card>
  );
}
