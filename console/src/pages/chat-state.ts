// The conversation on the page, built from the events of runs.

import type { Schemas } from "../api/client";
import type { ServerEvent } from "../api/events";
import type { Item } from "../inbox";

export interface ToolPart {
  kind: "tool";
  id: string;
  tool: string;
  arguments: string;
  progress?: string;
  result?: { isError: boolean; text: string; executionId: string | null; durationMs?: number };
}

export type Part =
  | { kind: "user"; text: string }
  | { kind: "text"; text: string; isDone: boolean }
  | { kind: "note"; tone: "warn" | "bad"; text: string }
  | { kind: "question"; item: Item }
  | ToolPart;

interface EventData {
  text?: string;
  message?: string;
  remedy?: string | null;
  reason?: string;
  call_id?: string;
  tool?: string;
  arguments?: string;
  progress?: number;
  total?: number;
  is_error?: boolean;
  execution_id?: string | null;
  duration_ms?: number;
  id?: string;
  item?: Item;
  end?: string;
}

/** The ends of a turn without a whole answer. */
const ENDS: Record<string, string> = {
  cancelled: "You cancelled this answer.",
  length: "The answer was cut off: the model reached its limit of output tokens.",
  max_steps: "The agent stopped after the largest number of steps (agent.max_steps).",
  refused: "The model refused to answer.",
  repetition: "The agent stopped because it made the same call again and again.",
};

/** Returns the parts of a stored conversation. */
export function stored(messages: Schemas["ConversationMessage"][]): Part[] {
  let parts: Part[] = [];
  for (const message of messages) {
    if (message.role === "user") parts.push({ kind: "user", text: message.text });
    else if (message.role === "assistant") {
      if (message.text) parts.push({ kind: "text", text: message.text, isDone: true });
      for (const { id, tool, arguments: text } of message.calls) {
        parts.push({ kind: "tool", id, tool, arguments: text });
      }
    } else {
      for (const { call_id, text, is_error } of message.results) {
        parts = changed(parts, call_id, { result: { isError: is_error, text, executionId: null } });
      }
    }
  }
  return parts;
}

/** Returns the conversation after one event. */
export function next(parts: Part[], { event, data }: ServerEvent): Part[] {
  const it = (data ?? {}) as EventData;
  const last = parts[parts.length - 1];
  const isOpen = last?.kind === "text" && !last.isDone;
  switch (event) {
    case "text.delta":
      if (isOpen) return [...parts.slice(0, -1), { ...last, text: last.text + (it.text ?? "") }];
      return [...parts, { kind: "text", text: it.text ?? "", isDone: false }];
    case "text.restarted":
      return isOpen ? parts.slice(0, -1) : parts;
    case "text.completed": {
      const whole: Part = { kind: "text", text: it.text ?? "", isDone: true };
      return isOpen ? [...parts.slice(0, -1), whole] : [...parts, whole];
    }
    case "tool.started": {
      const call: Part = {
        kind: "tool",
        id: it.call_id ?? "",
        tool: it.tool ?? "",
        arguments: it.arguments ?? "",
      };
      return [...parts, call];
    }
    case "tool.progress": {
      const total = it.total ? ` of ${it.total}` : "";
      return changed(parts, it.call_id, { progress: `${it.progress ?? ""}${total} ${it.message ?? ""}` });
    }
    case "tool.completed":
      return changed(parts, it.call_id, {
        result: {
          isError: it.is_error ?? false,
          text: it.text ?? "",
          executionId: it.execution_id ?? null,
          durationMs: it.duration_ms ?? 0,
        },
      });
    case "question.asked":
      return it.item ? [...parts, { kind: "question", item: it.item }] : parts;
    case "question.closed":
      return parts.filter((part) => part.kind !== "question" || part.item.id !== it.id);
    case "warning":
      return [...parts, { kind: "note", tone: "warn", text: it.message ?? "" }];
    case "turn.completed": {
      const text = ENDS[it.end ?? ""];
      return text ? [...parts, { kind: "note", tone: "warn", text }] : parts;
    }
    case "turn.failed":
      return [
        ...parts,
        { kind: "note", tone: "bad", text: [it.message, it.remedy].filter(Boolean).join(" — ") },
      ];
    default:
      return parts;
  }
}

function changed(parts: Part[], id: string | undefined, change: Partial<ToolPart>): Part[] {
  return parts.map((part) => (part.kind === "tool" && part.id === id ? { ...part, ...change } : part));
}
