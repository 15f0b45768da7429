// The frame of the console: navigation, the pages, and what every page shares.

import {
  Activity,
  Cable,
  FileCog,
  Inbox as InboxIcon,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Menu,
  MessagesSquare,
  Package,
  Search,
  Server as ServerIcon,
  Wrench,
  X,
} from "lucide-react";
import { type ComponentType, lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import icon from "./icon.svg";
import { InboxProvider, useInbox } from "./inbox";
import { Boundary } from "./parts/boundary";
import { openPalette, Palette } from "./parts/palette";
import { plain } from "./parts/text";
import { ThemePicker } from "./parts/theme";
import { Empty, Loading } from "./parts/ui";
import { SignedIn, useSession } from "./session";
import { SignOut } from "./sign-out";

interface PageLink {
  href: string;
  name: string;
  icon: LucideIcon;
}

const GROUPS: { name: string; pages: PageLink[] }[] = [
  {
    name: "Use",
    pages: [
      { href: "/", name: "Overview", icon: LayoutDashboard },
      { href: "/tools", name: "Tools", icon: Wrench },
      { href: "/servers", name: "Servers", icon: ServerIcon },
      { href: "/log", name: "Log", icon: Activity },
      { href: "/inbox", name: "Inbox", icon: InboxIcon },
      { href: "/chat", name: "Chat", icon: MessagesSquare },
    ],
  },
  {
    name: "Set up",
    pages: [
      { href: "/registry", name: "Registry", icon: Package },
      { href: "/config", name: "Configuration", icon: FileCog },
      { href: "/access", name: "Access", icon: KeyRound },
      { href: "/connect", name: "Connect", icon: Cable },
    ],
  },
];

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
const Profile = page(() => import("./pages/profile"));

export function App() {
  return (
    <SignedIn>
      <Signed />
    </SignedIn>
  );
}

/** A key that is bound to a profile sees that profile; every other caller sees the whole console. */
function Signed() {
  const { profile } = useSession();
  if (profile) {
    return (
      <main id="main">
        <Suspense fallback={<Loading what="the page" />}>
          <Profile />
        </Suspense>
      </main>
    );
  }
  return (
    <InboxProvider>
      <Shell />
    </InboxProvider>
  );
}

function Shell() {
  const [isOpen, setOpen] = useState(false);
  const [location] = useLocation();
  const main = useRef<HTMLElement>(null);
  const shown = useRef(location);
  useEffect(() => {
    // A new page starts at its top, and the keyboard continues there.
    if (shown.current === location) return;
    shown.current = location;
    setOpen(false);
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [location]);
  return (
    <div className="shell">
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <Side isOpen={isOpen} onToggle={() => setOpen(!isOpen)} onPick={() => setOpen(false)} />
      <main id="main" ref={main} tabIndex={-1}>
        <Boundary key={location}>
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
                <h1 className="hidden">Not found</h1>
                <Empty title="This page does not exist">
                  <Link href="/">Go to the overview</Link>
                </Empty>
              </Route>
            </Switch>
          </Suspense>
        </Boundary>
      </main>
      <Palette pages={GROUPS.flatMap((group) => group.pages)} />
    </div>
  );
}

function Side(props: { isOpen: boolean; onToggle: () => void; onPick: () => void }) {
  const [location] = useLocation();
  const session = useSession();
  const { items } = useInbox();
  const isAt = (href: string) => (href === "/" ? location === "/" : location.startsWith(href));
  const MenuIcon = props.isOpen ? X : Menu;
  return (
    <header className={`side ${props.isOpen ? "open" : ""}`}>
      <div className="top">
        <Link href="/" className="brand" onClick={props.onPick}>
          <img src={icon} alt="" />
          Haft
        </Link>
        <button type="button" className="menu-button" aria-expanded={props.isOpen} onClick={props.onToggle}>
          <MenuIcon size={16} aria-hidden />
          Menu
          {items.length > 0 && <span className="count">{items.length}</span>}
        </button>
      </div>
      <button
        type="button"
        className="jump"
        onClick={() => {
          props.onPick();
          openPalette();
        }}
      >
        <Search size={15} aria-hidden />
        <span>Jump to</span>
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Pages">
        {GROUPS.map((group) => (
          <div key={group.name}>
            <h2>{group.name}</h2>
            {group.pages.map(({ href, name, icon: Icon }) => (
              <Link
                key={href}
                href={href}
                aria-current={isAt(href) ? "page" : undefined}
                onClick={props.onPick}
              >
                <Icon size={16} aria-hidden />
                {name}
                {name === "Inbox" && items.length > 0 && <span className="count">{items.length}</span>}
              </Link>
            ))}
          </div>
        ))}
      </nav>
      <div className="foot">
        <div className="row between">
          <span>{plain(session.name)}</span>
          <span className="badge">{session.scope}</span>
        </div>
        <div className="row between">
          <ThemePicker />
          {session.is_key && <SignOut />}
        </div>
        <a href="/api/docs">API reference</a>
      </div>
    </header>
  );
}
