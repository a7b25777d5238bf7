// A tree as SVG. A click, or Enter, on a label opens its choices; Space folds what is below.

import { draw, percent } from "./dom.js";

const ROW = 56;

export function treePicture(tree, tokens, start, onNode) {
  const folded = new Set();
  const box = document.createElement("div");
  box.className = "tree";
  const paint = (focus) => {
    const nodes = [];
    let x = 12;
    const place = (node, depth) => {
      if (typeof node === "number") {
        const text = tokens[node - start][0];
        const width = Math.max(24, [...text].length * 9 + 12);
        const found = { text, depth, x: x + width / 2, from: node, to: node + 1, below: [] };
        x += width;
        nodes.push(found);
        return found;
      }
      const [label, sure, children] = node;
      const own = { label, sure, depth };
      nodes.push(own);
      const begin = x;
      own.below = children.map((child) => place(child, depth + 1));
      own.from = own.below[0].from;
      own.to = own.below.at(-1).to;
      own.key = `${own.from} ${own.to} ${label} ${depth}`;
      if (folded.has(own.key)) {
        const inside = new Set();
        const collect = (one) => { inside.add(one); one.below.forEach(collect); };
        own.below.forEach(collect);
        nodes.splice(0, nodes.length, ...nodes.filter((one) => !inside.has(one)));
        const text = tokens.slice(own.from - start, own.to - start).map((t) => t.join("")).join("").trim();
        const short = [...text].length > 24 ? `${[...text].slice(0, 23).join("")}…` : text;
        const width = [...short].length * 9 + 20;
        own.below = [{ text: short, depth: depth + 1, x: begin + width / 2, below: [] }];
        nodes.push(own.below[0]);
        x = begin + width;
      }
      own.x = (own.below[0].x + own.below.at(-1).x) / 2;
      const least = Math.max(44, [...label].length * 10 + 8);
      if (x - begin < least) x = begin + least;
      return own;
    };
    place(tree, 0);
    const height = Math.max(...nodes.map((node) => node.depth)) * ROW + 32;
    const svg = draw("svg", { width: x + 12, height, role: "group", "aria-label": "Tree" });
    if (/^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u.test(tokens.map((t) => t[0]).join(""))) {
      for (const node of nodes) node.x = x + 12 - node.x; // words go from right to left
    }
    const y = (node) => node.depth * ROW + 20;
    for (const node of nodes) {
      for (const child of node.below) {
        svg.append(draw("line", { x1: node.x, y1: y(node) + (node.label === undefined ? 6 : 15), x2: child.x, y2: y(child) - 15 }));
      }
    }
    for (const node of nodes) {
      const shape = draw("text", { x: node.x, y: y(node), "text-anchor": "middle" }, node.label ?? node.text);
      if (node.label !== undefined) {
        const fold = () => {
          if (!folded.delete(node.key)) folded.add(node.key);
          paint(node.key);
        };
        shape.setAttribute("class", "node");
        shape.setAttribute("tabindex", "0");
        shape.setAttribute("role", "button");
        shape.dataset.key = node.key;
        const open = () => onNode(node, shape, fold);
        shape.addEventListener("click", open);
        if (typeof node.sure === "number") {
          const sure = percent(node.sure);
          shape.setAttribute("aria-label", `${node.label}, ${sure}`);
          svg.append(draw("text", { class: "sure", x: node.x, y: y(node) + 12, "text-anchor": "middle" }, sure));
        }
        shape.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          (event.key === " " ? fold : open)();
        });
      }
      svg.append(shape);
    }
    box.replaceChildren(svg);
    if (focus) svg.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  };
  paint();
  return box;
}
