// Text that servers, models and users wrote. React escapes markup; characters that hide or reorder text stay a
// danger, so they are shown by their number.

const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

/** Returns the text with hidden and reordering characters shown as `⟨U+202E⟩`. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (found) => {
    const code = found.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Returns the address if a browser may open it, and `null` for every other scheme. */
export function safeLink(address: string): string | null {
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

/** Returns about how many tokens a model reads for this text: four characters each. */
export function tokens(value: unknown): number {
  return Math.ceil((JSON.stringify(value) ?? "").length / 4);
}

export function ms(value: number): string {
  if (value < 1_000) return `${Math.round(value)} ms`;
  return value < 60_000 ? `${(value / 1_000).toFixed(1)} s` : `${(value / 60_000).toFixed(1)} min`;
}

/** Quotes a word for a POSIX shell. */
export function shellQuote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Splits a command line into words; quotes hold a word with spaces together. */
export function words(line: string): string[] {
  const found = line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...found].map(([, double, single, bare]) => double ?? single ?? bare ?? "");
}
