// Tables and filters that several pages share.

import { Search } from "lucide-react";
import { type ReactNode, useCallback } from "react";
import { useSearchParams } from "wouter";
import { plain } from "./text";

export interface Column<T> {
  /** The heading, and the label of the cell on small screens. */
  name: string;
  /** `num` aligns right, `fit` is as narrow as its content, `name` keeps room for a name. */
  kind?: "num" | "fit" | "name";
  cell: (row: T) => ReactNode;
  /** True if the cell needs no label on small screens. */
  isPlain?: boolean;
}

/** A table whose rows become blocks on small screens. */
export function Table<T>(props: { columns: Column<T>[]; rows: T[]; keyOf: (row: T) => string }) {
  return (
    <table className="stacks">
      <thead>
        <tr>
          {props.columns.map(({ name, kind }) => (
            <th key={name} scope="col" className={kind}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.rows.map((row) => (
          <tr key={props.keyOf(row)}>
            {props.columns.map(({ name, kind, cell, isPlain }) => (
              <td key={name} className={kind} data-label={isPlain || kind === "name" ? undefined : name}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface SettingRow {
  key: string;
  value: unknown;
  from: string;
}

const SETTING_COLUMNS: Column<SettingRow>[] = [
  { name: "Setting", kind: "name", cell: (row) => <code>{plain(row.key)}</code> },
  {
    name: "Value",
    cell: (row) => (
      <span className="mono">
        {plain(typeof row.value === "string" ? row.value : (JSON.stringify(row.value) ?? ""))}
      </span>
    ),
  },
  {
    name: "Set by",
    cell: (row) => <span className={row.from === "default" ? "muted" : ""}>{plain(row.from)}</span>,
  },
];

/** Settings with their values and origins. */
export function Settings(props: { rows: SettingRow[] }) {
  return (
    <div className="settings">
      <Table columns={SETTING_COLUMNS} rows={props.rows} keyOf={(row) => row.key} />
    </div>
  );
}

export function SearchBox(props: { label: string; value: string; onChange: (text: string) => void }) {
  return (
    <div className="searchbox">
      <Search size={15} aria-hidden />
      <input
        type="search"
        aria-label={props.label}
        placeholder={props.label}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
      />
    </div>
  );
}

/** The parameters of the address, and a function that sets or removes one of them. */
export function useFilters(): [URLSearchParams, (name: string, value: string) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (name: string, value: string) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          if (value) after.set(name, value);
          else after.delete(name);
          return after;
        },
        { replace: true },
      ),
    [setParams],
  );
  return [params, set];
}
