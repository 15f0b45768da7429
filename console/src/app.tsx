// The frame of the console: navigation, the pages, and what every page shares.

import { type ComponentType, lazy, Suspense, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import icon from "./icon.svg";
import { InboxProvider, useInbox } from "./inbox";
import { Palette } from "./parts/palette";
import { ThemePicker } from "./parts/theme";
import { Empty, Loading } from "./parts/ui";
import { SignedIn, useSession } from "./session";
import { SignOut } from "./sign-out";

export const PAGES = [
  { href: "/", name: "Overview" },
  { href: "/tools", name: "Tools" },
  { href: "/servers", name: "Servers" },
  { href: "/log", name: "Log" },
  { href: "/inbox", name: "Inbox" },
  { href: "/chat", name: "Chat" },
  { href: "/registry", name: "Registry" },
  { href: "/config", name: "Configuration" },
  { href: "/access", name: "Access" },
  { href: "/connect", name: "Connect" },
] as const;

function page(load: () => Promise<{ default: ComponentType }>) {
  return lazy(load);
}

const Overview = page(() => import("./pages/overview"));
const Tools = page(() => import("./pages/tools"));
const Tool = page(() => import("./pages/tool"));
const Servers = page(() => import("./pages/servers"));
const Server = page(() => import("./pages/server"));
const Log = page(() => import("./pages/log"));
const Entry = page(() => import("./pages/entry"));
const Inbox = page(() => import("./pages/inbox"));
const Chat = page(() => import("./pages/chat"));
const Registry = page(() => import("./pages/registry"));
const Config = page(() => import("./pages/config"));
const Access = page(() => import("./pages/access"));
const Connect = page(() => import("./pages/connect"));

export function App() {
  return (
    <SignedIn>
      <InboxProvider>
        <Shell />
      </InboxProvider>
    </SignedIn>
  );
}

function Shell() {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="shell">
      <button type="button" className="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the page
      </button>
      <Side isOpen={isOpen} onToggle={() => setOpen(!isOpen)} onPick={() => setOpen(false)} />
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<Loading what="the page" />}>
          <Switch>
            <Route path="/" component={Overview} />
            <Route path="/tools" component={Tools} />
            <Route path="/tools/:name" component={Tool} />
            <Route path="/servers" component={Servers} />
            <Route path="/servers/:name" component={Server} />
            <Route path="/log" component={Log} />
            <Route path="/log/:id" component={Entry} />
            <Route path="/inbox" component={Inbox} />
            <Route path="/chat" component={Chat} />
            <Route path="/registry" component={Registry} />
            <Route path="/config" component={Config} />
            <Route path="/access" component={Access} />
            <Route path="/connect" component={Connect} />
            <Route>
              <Empty>
                This page does not exist. <Link href="/">Go to the overview</Link>
              </Empty>
            </Route>
          </Switch>
        </Suspense>
      </main>
      <Palette />
    </div>
  );
}

function Side(props: { isOpen: boolean; onToggle: () => void; onPick: () => void }) {
  const [location] = useLocation();
  const session = useSession();
  const { items } = useInbox();
  const isAt = (href: string) => (href === "/" ? location === "/" : location.startsWith(href));
  return (
    <header className={`side ${props.isOpen ? "open" : ""}`}>
      <div className="top">
        <Link href="/" className="brand">
          <img src={icon} alt="" />
          Haft
        </Link>
        <button type="button" className="menu-button" aria-expanded={props.isOpen} onClick={props.onToggle}>
          Menu
        </button>
      </div>
      <nav aria-label="Pages">
        {PAGES.map(({ href, name }) => (
          <Link key={href} href={href} aria-current={isAt(href) ? "page" : undefined} onClick={props.onPick}>
            {name}
            {name === "Inbox" && items.length > 0 && <span className="count">{items.length}</span>}
          </Link>
        ))}
      </nav>
      <div className="foot">
        <span>
          {session.name} · {session.scope}
        </span>
        <span>
          Press <kbd>Ctrl</kbd> <kbd>K</kbd> to jump
        </span>
        <ThemePicker />
        {session.is_key && <SignOut />}
        <a href="/api/docs">API reference</a>
      </div>
    </header>
  );
}
