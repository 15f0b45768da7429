import { useState } from "react";
import { useInbox } from "../inbox";
import { Question } from "../parts/question";
import { Badge, Empty, Page } from "../parts/ui";

export default function Inbox() {
  const { items, state } = useInbox();
  return (
    <Page
      title="Inbox"
      actions={
        <>
          <Badge tone={state === "open" ? "ok" : "warn"}>{state === "open" ? "live" : state}</Badge>
          <Notifications />
        </>
      }
    >
      {items.length === 0 ? (
        <Empty>No question is open. Approvals, questions and requests of servers appear here.</Empty>
      ) : (
        items.map((item) => <Question key={item.id} item={item} />)
      )}
    </Page>
  );
}

function Notifications() {
  const [permission, setPermission] = useState(() =>
    "Notification" in window ? Notification.permission : "denied",
  );
  if (permission !== "default") return null;
  return (
    <button type="button" onClick={() => void Notification.requestPermission().then(setPermission)}>
      Notify me
    </button>
  );
}
