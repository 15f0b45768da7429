import { useEffect, useState } from "react";

const NAMES = ["system", "light", "dark"] as const;
type Theme = (typeof NAMES)[number];
const STORED = "haft-theme";

function stored(): Theme {
  const name = localStorage.getItem(STORED);
  return NAMES.find((each) => each === name) ?? "system";
}

export function ThemePicker() {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => {
    localStorage.setItem(STORED, theme);
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  return (
    <label className="row">
      Theme
      <select value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
        {NAMES.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
