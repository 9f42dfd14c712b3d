"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  const theme = byId("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    theme.setAttribute("aria-pressed", String(!dark));
  });

  all(".copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.previousElementSibling.textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  const filters = byId("filters");
  const rows = all("#results tbody tr");
  const filter = () => {
    const wanted = Object.fromEntries(all("[data-filter]", filters).map((s) => [s.dataset.filter, s.value]));
    let shown = 0;
    rows.forEach((row) => {
      row.hidden = Object.entries(wanted).some(([key, value]) => value && row.dataset[key] !== value);
      shown += row.hidden ? 0 : 1;
    });
    byId("shown").textContent = `${shown} of ${rows.length} rows`;
  };
  filters.hidden = false;
  filters.addEventListener("change", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filter();
  const reveal = () => {
    const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.matches("tr[hidden]")) {
      filters.reset();
      filter();
    }
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);

  const hiddenModes = new Set();
  const withoutHidden = (node) => {
    if (Array.isArray(node)) return node.map(withoutHidden);
    if (node === null || typeof node !== "object") return node;
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [
      key,
      key === "values" && Array.isArray(value) ? value.filter((row) => !hiddenModes.has(row.mode)) : withoutHidden(value),
    ]));
  };
  const draw = async (panel) => {
    const spec = withoutHidden(JSON.parse(panel.querySelector("script").textContent));
    const plot = panel.querySelector(".plot");
    const stage = document.createElement("div");
    const width = Math.max(220, Math.min(plot.clientWidth, 560));
    spec.width = width;
    spec.autosize = { type: "fit", contains: "padding" };
    try {
      await vegaEmbed(stage, spec, { renderer: "svg", actions: false, ast: false });
      plot.replaceChildren(stage);
      panel.dataset.drawn = "live";
    } catch (problem) {
      panel.dataset.drawn = "still";
      console.warn("chart left as a still picture:", problem.message);
    }
  };
  const panels = all(".panel");
  if (globalThis.vegaEmbed) {
    const watch = new IntersectionObserver((seen) => {
      seen.filter((entry) => entry.isIntersecting).forEach((entry) => {
        watch.unobserve(entry.target);
        draw(entry.target);
      });
    }, { rootMargin: "400px" });
    panels.forEach((panel) => watch.observe(panel));
    all(".legend button").forEach((button) => {
      button.disabled = false;
      button.addEventListener("click", () => {
        const show = hiddenModes.has(button.dataset.mode);
        hiddenModes[show ? "delete" : "add"](button.dataset.mode);
        button.setAttribute("aria-pressed", String(show));
        panels.filter((panel) => panel.dataset.drawn).forEach(draw);
      });
    });
  }

  const store = byId("texts");
  if (!store) return;
  const { texts, cells, prompts } = JSON.parse(store.textContent);
  const kind = byId("b-kind"), load = byId("b-load"), mode = byId("b-mode"), prompt = byId("b-prompt");
  const unique = (values) => [...new Set(values)];
  const fill = (select, options) => {
    const before = select.value;
    select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
    if (options.some(([value]) => value === before)) select.value = before;
  };
  const name = (cell) => (cell.replicate > 1 && !cell.against ? `${cell.mode}, another start` : cell.mode);
  const here = () => cells.filter((c) => c.kind === kind.value && c.load === load.value);
  const base = (other) => {
    const wanted = other.against || other.mode;
    return here().find((c) => c.mode === wanted && c !== other && !c.against);
  };
  const choices = () => here().filter((c) => base(c) && (c.against || c.replicate > 1));
  const chosen = () => choices().find((c) => name(c) === mode.value);
  const whole = (channels) => {
    if (!channels) return null;
    const [answer, reasoning, calls] = channels.map((n) => (n === null ? null : texts[n]));
    const said = reasoning ? `[reasoning]\n${reasoning}\n[answer]\n${answer ?? ""}` : answer ?? "";
    return calls ? `${said}${said ? "\n" : ""}[tool calls]\n${calls}` : said;
  };
  const firstDifference = (left, right) => {
    const a = [...left], b = [...right];
    let at = 0;
    while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
    return { a, b, at, same: at === a.length && at === b.length };
  };
  const show = (element, letters, at, same) => {
    const part = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name });
    if (same) return element.replaceChildren(letters.join(""));
    const pieces = [part("span", letters.slice(0, at).join(""), "same")];
    pieces.push(part("mark", letters[at] ?? "⟨end⟩", ""));
    pieces.push(letters.slice(at + 1).join(""));
    element.replaceChildren(...pieces);
  };
  const render = () => {
    const right = chosen(), left = right && base(right);
    const a = left && whole(left.rows[prompt.value]), b = right && whole(right.rows[prompt.value]);
    byId("b-text").textContent = prompts[prompt.value] ?? "The prompt file is not there.";
    byId("b-left-h").textContent = left ? left.mode : "";
    byId("b-right-h").textContent = right ? name(right) : "";
    if (a == null || b == null) {
      byId("b-said").textContent = "This prompt has no text in one of the two.";
      byId("b-left").textContent = a ?? "";
      byId("b-right").textContent = b ?? "";
      return;
    }
    const difference = firstDifference(a, b);
    byId("b-said").textContent = difference.same
      ? "The texts are identical."
      : `First difference at character ${difference.at} of ${difference.a.length} and ${difference.b.length}.`;
    show(byId("b-left"), difference.a, difference.at, difference.same);
    show(byId("b-right"), difference.b, difference.at, difference.same);
  };
  const listPrompts = () => {
    const right = chosen(), left = right && base(right);
    if (!left) return fill(prompt, []);
    fill(prompt, Object.keys(right.rows).map((id) => {
      const a = whole(left.rows[id]), b = whole(right.rows[id]);
      if (a == null || b == null) return [id, `${id} (missing)`];
      const difference = firstDifference(a, b);
      return [id, difference.same ? id : `${id} (differs at ${difference.at})`];
    }));
  };
  const refresh = () => {
    fill(load, unique(cells.filter((c) => c.kind === kind.value).map((c) => c.load)).map((l) => [l, l]));
    fill(mode, choices().map((c) => [name(c), name(c)]));
    listPrompts();
    render();
  };
  const step = (by) => {
    const count = prompt.options.length;
    if (!count) return;
    prompt.selectedIndex = (prompt.selectedIndex + by + count) % count;
    render();
  };
  const differing = (cell) => {
    const left = cells.find((c) => c.kind === cell.kind && c.load === cell.load && c.mode === cell.against && !c.against);
    return left && Object.keys(cell.rows).find((id) => left.rows[id] && `${left.rows[id]}` !== `${cell.rows[id]}`);
  };
  const compared = cells.filter((c) => c.against);
  const first = compared.find(differing) ?? compared[0] ?? cells[0];
  const start = (select, value) => { if ([...select.options].some((o) => o.value === value)) select.value = value; };
  fill(kind, unique(cells.map((c) => c.kind)).map((k) => [k, k]));
  start(kind, first.kind);
  refresh();
  start(load, first.load);
  refresh();
  start(mode, name(first));
  refresh();
  start(prompt, differing(first));
  render();
  if (!compared.length && !choices().length) return;
  byId("beside").hidden = false;
  [kind, load, mode].forEach((select) => select.addEventListener("change", refresh));
  prompt.addEventListener("change", render);
  byId("b-prev").addEventListener("click", () => step(-1));
  byId("b-next").addEventListener("click", () => step(1));
  reveal();
})();
