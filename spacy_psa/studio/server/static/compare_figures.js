// The figures of a comparison, as SVG.

import { draw, make } from "./dom.js";

const SIZE = { width: 320, height: 240, left: 36, right: 8, top: 8, bottom: 34 };

export const key = (model) => make("span", { class: `key m${model}` });

function canvas(label) {
  const { width, height, left, right, top, bottom } = SIZE;
  const plot = draw("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  const y = (value) => top + (1 - value) * (height - top - bottom);
  const x = (value) => left + value * (width - left - right);
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    plot.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      draw("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, String(100 * value)));
  }
  return { plot, x, y };
}

const hint = (shape, text) => { shape.append(draw("title", {}, text)); return shape; };
const share = (value) => `${(100 * value).toFixed(1)}%`;

// A long name becomes two lines, cut at the blank that is nearest to its middle.
function halves(name) {
  const middle = name.length / 2;
  const blanks = [...name.matchAll(/ /g)].map((one) => one.index).sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  return name.length > 12 && blanks.length ? [name.slice(0, blanks[0]), name.slice(blanks[0] + 1)] : [name];
}

// Grouped bars: `groups` are {name, values, notes}, a value from 0 to 1 or null for each model.
export function bars(groups, label) {
  const { plot, x, y } = canvas(label);
  const step = 1 / groups.length;
  groups.forEach(({ name, values, notes }, i) => {
    const width = (x(step) - x(0)) * 0.8 / values.length;
    values.forEach((value, model) => {
      if (value === null) return;
      const left = x((i + 0.1) * step) + model * width;
      plot.append(hint(draw("rect", { class: `m${model}`, x: left, y: y(value), width: Math.max(1, width - 1), height: y(0) - y(value) }), notes[model]));
    });
    halves(name).forEach((line, at) => plot.append(draw("text", { x: x((i + 0.5) * step), y: y(0) + 14 + 12 * at, "text-anchor": "middle" }, line)));
  });
  return plot;
}

// A reliability diagram: the share of right units in each bin of probabilities.
export function reliability({ bins, ece }, model) {
  const { plot, x, y } = canvas(`Reliability diagram, expected calibration error ${ece?.toFixed(4)}`);
  const most = Math.max(...bins.map((bin) => bin.size), 2);
  for (const { lower, upper, size, confidence, accuracy } of bins.filter((bin) => bin.size)) {
    const text = `${size} from ${share(lower)} to ${share(upper)}: mean ${share(confidence)}, right ${share(accuracy)}`;
    const box = { x: x(lower) + 0.5, width: x(upper) - x(lower) - 1 };
    const tall = 0.18 * Math.log(1 + size) / Math.log(1 + most);
    plot.append(hint(draw("rect", { class: `bar m${model}`, ...box, y: y(accuracy), height: y(0) - y(accuracy) }), text),
      hint(draw("rect", { class: "count", ...box, y: y(tall), height: y(0) - y(tall) }), text),
      hint(draw("circle", { class: `m${model}`, cx: x(confidence), cy: y(accuracy), r: 3.5 }), text));
  }
  plot.append(draw("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  for (const value of [0, 0.5, 1]) {
    plot.append(draw("text", { x: x(value), y: y(0) + 14, "text-anchor": value === 1 ? "end" : "middle" }, String(100 * value)));
  }
  plot.append(draw("text", { x: x(0.5), y: y(0) + 28, "text-anchor": "middle" }, "probability, %"));
  return plot;
}
