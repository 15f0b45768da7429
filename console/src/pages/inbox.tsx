import { Bell, BellOff, Inbox as InboxIcon } from "lucide-react";
import { useState } from "react";
import { useInbox } from "../inbox";
import { Question } from "../parts/question";
import { Empty, Live, Page } from "../parts/ui";

export default function Inbox() {
  const { items, state } = useInbox();
  return (
    <Page
      title="Inbox"
      lead="Approvals, questions, and requests of servers that wait for a person."
      actions={
        <>
          <Live state={state} />
          <Notifications />
        </>
      }
    >
      {items.length === 0 ? (
        <Empty title="No question is open" icon={InboxIcon}>
          Approvals, questions and requests of servers appear here at once, and in the title of this tab.
        </Empty>
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
  if (permission === "granted") {
    return (
      <span className="row small muted">
        <Bell size={15} aria-hidden />
        Notifications are on
      </span>
    );
  }
  if (permission === "denied") {
    return (
      <span className="row small muted">
        <BellOff size={15} aria-hidden />
        The browser blocks notifications
      </span>
    );
  }
  return (
    <button type="button" onClick={() => void Notification.requestPermission().then(setPermission)}>
      <Bell size={15} aria-hidden />
      Notify me
    </button>
  );
}
