// An editor for JSON. It lives in a shadow root, where its styles need no inline style element, which the
// content security policy forbids.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { defaultHighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

const theme = EditorView.theme({
  "&": { fontSize: "13px", color: "inherit", backgroundColor: "transparent" },
  ".cm-content": {
    fontFamily: "ui-monospace, Menlo, Consolas, monospace",
    minHeight: "6em",
    caretColor: "currentColor",
  },
  ".cm-scroller": { maxHeight: "26em" },
  ".cm-gutters": { background: "transparent", color: "inherit", opacity: "0.75", border: "0" },
});

export default function JsonEditor(props: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  const holder = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(props.onChange);
  changed.current = props.onChange;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the value is handed over below
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: props.value,
        extensions: [
          lineNumbers(),
          // Shows characters that hide or reorder text.
          highlightSpecialChars(),
          history(),
          indentOnInput(),
          json(),
          syntaxHighlighting(defaultHighlightStyle),
          // Tab leaves the editor, so that the page stays usable by keyboard alone.
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": props.label }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current(update.state.doc.toString());
          }),
          theme,
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [props.label]);
  useEffect(() => {
    const made = view.current;
    if (made && made.state.doc.toString() !== props.value) {
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: props.value } });
    }
  }, [props.value]);
  return <div className="editor" ref={holder} />;
}
