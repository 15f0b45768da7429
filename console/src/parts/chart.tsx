// A line chart over time.

import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line {
  label: string;
  color: string;
  values: (number | null)[];
}

const HEIGHT = 150;
const SPAN_SECS_MIN = 300;
/** Below this number of steps each is marked. */
const FEW = 24;

function clock(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleTimeString([], {
    hour12: false,
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** The steps that are marked: all of a few, and those without a neighbour. */
function marked(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? [];
  const has = (index: number) => typeof values[index] === "number";
  const isMarked = (index: number) =>
    has(index) && (values.length < FEW || (!has(index - 1) && !has(index + 1)));
  return Array.from(values.keys()).filter(isMarked);
}

/** Counts changes of the colours, which a chart reads when it is made. */
function useThemeChanges(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const changed = () => setCount((before) => before + 1);
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", changed);
    const observer = new MutationObserver(changed);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      scheme.removeEventListener("change", changed);
      observer.disconnect();
    };
  }, []);
  return count;
}

export default function Chart(props: { label: string; times: number[]; lines: Line[] }) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const labels = props.lines.map((line) => line.label).join();
  const theme = useThemeChanges();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the chart is made again only when its lines change
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const muted = getComputedStyle(element).getPropertyValue("--muted");
    const grid = { stroke: getComputedStyle(element).getPropertyValue("--line"), width: 1 };
    const axis = { stroke: muted, grid, ticks: grid };
    const made = new uPlot(
      {
        width: Math.max(element.clientWidth, 200),
        height: HEIGHT,
        cursor: { drag: { x: false, y: false } },
        scales: {
          // A service that has just started has a few seconds to show; they are not stretched over the chart.
          x: { range: (_, min, max) => [Math.min(min, max - SPAN_SECS_MIN), max] },
          y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] },
        },
        legend: { show: false },
        axes: [
          { ...axis, size: 30, values: (_, splits) => splits.map(clock) },
          { ...axis, size: 48, values: (_, splits) => splits.map(String) },
        ],
        series: [
          {},
          ...props.lines.map(({ label, color }) => ({
            label,
            stroke: color,
            width: 1.5,
            // A step without calls has no duration: the line ends there, and a value between two such steps is a dot.
            points: { show: true, size: 5, fill: color, filter: marked },
          })),
        ],
      },
      [props.times, ...props.lines.map((line) => line.values)],
      element,
    );
    chart.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: Math.max(element.clientWidth, 200), height: HEIGHT }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [labels, theme]);
  useEffect(() => {
    chart.current?.setData([props.times, ...props.lines.map((line) => line.values)]);
  }, [props.times, props.lines]);
  return <div className="chart" role="img" aria-label={props.label} ref={holder} />;
}
