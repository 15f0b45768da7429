// The answer of a call: text, media, resources, structured data, or the error with its remedy.

import type { Schemas } from "../api/client";
import { ms, plain, safeLink } from "./text";
import { Json, State } from "./ui";

export type Envelope = Schemas["Envelope"];

export interface Block {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  mime_type?: string;
  uri?: string;
  name?: string;
  blob?: string;
  resource?: { uri?: string; text?: string; blob?: string; mimeType?: string };
}

/** Image kinds that cannot carry script. An SVG image element runs none either, but it may show what it likes. */
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const AUDIO = new Set(["audio/wav", "audio/mpeg", "audio/ogg", "audio/webm", "audio/mp4", "audio/flac"]);

export function Result(props: { envelope: Envelope; remedy?: string | undefined }) {
  const { envelope } = props;
  const remedy = props.remedy ?? envelope.error?.remedy;
  const hasData = envelope.data !== null && envelope.data !== undefined;
  // A failure of the tool repeats its message, and the text of structured data is often the same JSON.
  const isRepeated = ({ text }: Block) =>
    text !== undefined && (text === envelope.error?.message || (hasData && isJsonOf(text, envelope.data)));
  const blocks = (envelope.content as unknown as Block[]).filter((block) => !isRepeated(block));
  return (
    <section aria-label="Result">
      <p className="row">
        <State of={envelope.status} />
        <span className="muted small">
          {ms(envelope.duration_ms)}
          {envelope.queued_ms > 0 ? `, queued ${ms(envelope.queued_ms)}` : ""}
        </span>
        <a className="small" href={`#/log/${envelope.execution_id}`}>
          {envelope.execution_id}
        </a>
      </p>
      {envelope.error && (
        <div className="note bad" role="alert">
          <p>
            <strong>{envelope.error.code}</strong>: {plain(envelope.error.message)}
          </p>
          {remedy && <p>What to do: {plain(remedy)}</p>}
        </div>
      )}
      {hasData && (
        <>
          <h3>Data</h3>
          <Json value={envelope.data} />
          {blocks.length > 0 && <h3>Content for a model</h3>}
        </>
      )}
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no identity and never move
        <Content key={index} block={block} />
      ))}
    </section>
  );
}

function isJsonOf(text: string, data: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(data);
  } catch {
    return text === data;
  }
}

export function Content(props: { block: Block }) {
  const { block } = props;
  const mime = block.mimeType ?? block.mime_type ?? block.resource?.mimeType ?? "";
  const data = block.data ?? block.blob ?? block.resource?.blob;
  if (block.text !== undefined) return <Text text={block.text} />;
  if (block.resource?.text !== undefined) {
    return (
      <>
        <p className="small muted">{plain(block.resource.uri ?? "")}</p>
        <Text text={block.resource.text} />
      </>
    );
  }
  if (data !== undefined && IMAGES.has(mime)) {
    return (
      <img className="result-media" alt={`Answer of kind ${mime}`} src={`data:${mime};base64,${data}`} />
    );
  }
  if (data !== undefined && AUDIO.has(mime)) {
    return (
      // biome-ignore lint/a11y/useMediaCaption: a tool's audio comes without captions
      <audio controls src={`data:${mime};base64,${data}`} />
    );
  }
  if (block.uri !== undefined) return <ResourceLink uri={block.uri} name={block.name} />;
  return <Json value={block} />;
}

function Text(props: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard
    <pre tabIndex={0}>{plain(props.text)}</pre>
  );
}

function ResourceLink(props: { uri: string; name?: string | undefined }) {
  const link = safeLink(props.uri);
  const name = plain(props.name ?? props.uri);
  return (
    <p>
      Resource:{" "}
      {link ? (
        <a href={link} rel="noreferrer noopener" target="_blank">
          {name}
        </a>
      ) : (
        <code>
          {name} {props.name ? `(${plain(props.uri)})` : ""}
        </code>
      )}
    </p>
  );
}
