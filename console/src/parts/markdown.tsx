// Markdown that a model wrote. Markup stays text, an image is named and not loaded, a link opens only web addresses.

import type { ReactNode } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { plain, safeLink } from "./text";

function Anchor(props: { href?: string | undefined; children?: ReactNode }) {
  const link = safeLink(props.href ?? "");
  if (!link) return <span>{props.children}</span>;
  return (
    <a href={link} rel="noreferrer noopener" target="_blank">
      {props.children}
    </a>
  );
}

const COMPONENTS: Components = {
  a: ({ href, children }) => <Anchor href={href}>{children}</Anchor>,
  img: ({ src, alt }) => <Anchor href={src}>{alt || "image"}</Anchor>,
  // Headings of an answer are not headings of the page.
  h1: ({ children }) => <p className="heading">{children}</p>,
  h2: ({ children }) => <p className="heading">{children}</p>,
  h3: ({ children }) => <p className="heading">{children}</p>,
  h4: ({ children }) => <p className="heading">{children}</p>,
  h5: ({ children }) => <p className="heading">{children}</p>,
  h6: ({ children }) => <p className="heading">{children}</p>,
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  table: ({ children }) => (
    <div className="scroll">
      <table>{children}</table>
    </div>
  ),
};

export default function MarkdownText(props: { text: string }) {
  return (
    <Markdown remarkPlugins={[remarkGfm]} components={COMPONENTS}>
      {plain(props.text)}
    </Markdown>
  );
}
