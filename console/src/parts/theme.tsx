import { Monitor, Moon, Sun } from "lucide-react";
import { useEffect, useState } from "react";

const THEMES = [
  { name: "system", icon: Monitor },
  { name: "light", icon: Sun },
  { name: "dark", icon: Moon },
] as const;
type Theme = (typeof THEMES)[number]["name"];
const STORED = "haft-theme";

function stored(): Theme {
  const name = localStorage.getItem(STORED);
  return THEMES.find((each) => each.name === name)?.name ?? "system";
}

export function ThemePicker() {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => {
    localStorage.setItem(STORED, theme);
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  return (
    <fieldset className="segments" aria-label="Theme">
      {THEMES.map(({ name, icon: Icon }) => (
        <button
          type="button"
          key={name}
          title={`Theme: ${name}`}
          aria-label={`Theme: ${name}`}
          aria-pressed={name === theme}
          onClick={() => setTheme(name)}
        >
          <Icon size={15} aria-hidden />
        </button>
      ))}
    </fieldset>
  );
}
