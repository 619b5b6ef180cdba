// What pages do better with a script: live rows, plots, chat as it is said, progress of an
// upload, a question before what cannot be undone. All of them work without it.
"use strict";
(() => {
  const csrf = () => document.body.dataset.csrf || "";
  const make = (tag, look, text) => {
    const e = document.createElement(tag);
    if (look) e.className = look;
    if (text !== undefined) e.textContent = text; // never as HTML
    return e;
  };

  // A question before what cannot be undone.
  document.addEventListener("submit", (ev) => {
    const b = ev.submitter;
    if (b && b.dataset.confirm && !window.confirm(b.dataset.confirm)) {
      ev.preventDefault();
      ev.stopImmediatePropagation();
    }
  }, true);

  // Executions as they end. Rows come from the host, escaped, as pages do.
  const rows = document.querySelector("[data-live]");
  if (rows && window.EventSource) {
    const most = 200;
    const state = document.getElementById("live-state");
    const say = (on, text) => { state.hidden = false; state.classList.toggle("on", on); state.textContent = text; };
    const source = new EventSource(rows.dataset.live);
    const add = (html) => {
      const t = document.createElement("template");
      t.innerHTML = html;
      const row = t.content.querySelector("tr");
      if (!row) return;
      const id = row.dataset.id;
      const old = id && rows.querySelector(`[data-id="${CSS.escape(id)}"]`);
      if (old) old.replaceWith(row); else rows.prepend(row);
      while (rows.children.length > most) rows.lastElementChild.remove();
      const nothing = document.getElementById("nothing");
      if (nothing) nothing.remove();
    };
    source.onopen = () => say(true, "Calls appear here as they end.");
    source.onerror = () => say(false, "The live view is interrupted.");
    source.addEventListener("call", (e) => add(e.data));
    source.addEventListener("lost", (e) => add(e.data));
    source.addEventListener("over", (e) => { source.close(); say(false, e.data); });
  }

  // Plots, where uPlot is there; else the drawings of the page stay.
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const looks = { calls: "--accent", p50: "--accent", bad: "--bad", p95: "--busy" };
  const draw = (root) => {
    if (!window.uPlot) return;
    for (const box of root.querySelectorAll("[data-plot]")) {
      const d = JSON.parse(box.dataset.plot);
      const svg = box.querySelector("svg");
      if (!svg) continue;
      const wide = Math.max(svg.clientWidth, 200);
      svg.remove();
      const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
      new uPlot({
        width: wide, height: 190, cursor: { y: false },
        scales: { y: { range: (_, lo, hi) => [0, Math.max(hi * 1.1, 1)] } },
        axes: [axis, { ...axis, size: 56 }],
        series: [{}, ...d.names.map((name, i) => ({ label: name + ", " + d.unit, stroke: color(looks[d.looks[i]]), width: 2, points: { show: false } }))],
      }, [d.x, ...d.y], box);
    }
  };
  draw(document);
  document.addEventListener("htmx:afterSwap", () => draw(document));
  // A page that says what was wrong is shown as it is.
  document.addEventListener("htmx:responseError", (e) => {
    if (e.detail.xhr.status === 401) window.location.reload();
  });

  // Uploads with their progress.
  for (const form of document.querySelectorAll("form[data-progress]")) {
    form.addEventListener("submit", (ev) => {
      if (ev.defaultPrevented) return;
      ev.preventDefault();
      const bar = form.querySelector("progress");
      const button = form.querySelector("button");
      const x = new XMLHttpRequest();
      x.open("POST", form.action);
      x.upload.onprogress = (p) => { if (p.lengthComputable) bar.value = 100 * p.loaded / p.total; };
      x.upload.onload = () => { bar.removeAttribute("value"); button.textContent = "It is being checked…"; };
      const back = (text) => { bar.hidden = true; button.disabled = false; button.textContent = "Upload"; if (text) form.append(make("p", "problem", text)); };
      x.onload = () => {
        const page = new DOMParser().parseFromString(x.responseText, "text/html");
        const main = page.querySelector("main");
        if (!main) { back("The host gave no answer that can be shown."); return; }
        document.querySelector("main").replaceWith(main);
        main.focus();
        window.scrollTo(0, 0);
      };
      x.onerror = () => back("The upload was cut off. Try again.");
      bar.hidden = false;
      button.disabled = true;
      x.send(new FormData(form));
    });
  }

  // Chat as it is said.
  const events = async (body, hear) => {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        let kind = "", data = "";
        for (const line of text.slice(0, end).split("\n")) {
          if (line.startsWith("event: ")) kind = line.slice(7);
          if (line.startsWith("data: ")) data += line.slice(6);
        }
        if (kind) hear(kind, JSON.parse(data));
      }
    }
  };
  const say = document.querySelector("form[data-chat]");
  if (say) {
    const turn = document.getElementById("turn");
    const stop = say.querySelector("[data-stop]");
    let abort = null;
    stop.addEventListener("click", () => abort && abort.abort());
    say.addEventListener("submit", async (ev) => {
      ev.preventDefault();
      const data = new URLSearchParams(new FormData(say));
      const area = say.querySelector("textarea");
      const button = say.querySelector("button[type=submit]");
      const bubble = (look, by, text) => {
        const box = make("div", "message " + look);
        const said = make("p", "said", text);
        box.append(make("p", "by", by), said);
        turn.append(box);
        return said;
      };
      bubble("mine", "You", area.value);
      area.value = "";
      button.disabled = true;
      stop.hidden = false;
      abort = new AbortController();
      let words = null, over = false;
      const tools = {};
      const hear = (kind, d) => {
        if (kind === "start") say.querySelector("[name=conversation_id]").value = d.conversation_id;
        if (kind === "text") { words = words || bubble("agents", "Agent", ""); words.textContent += d.text; }
        if (kind === "tool_start") {
          words = null;
          const box = make("details", "tool");
          box.append(make("summary", "", "calls " + d.skill_id + " …"), make("pre", "", JSON.stringify(d.arguments, null, 2)));
          turn.append(box);
          tools[d.id] = box;
        }
        if (kind === "tool_end" && tools[d.id]) {
          const box = tools[d.id];
          const head = make("summary");
          head.append(make("span", d.success ? "badge good" : "badge bad", d.success ? "answered" : d.error.code), " " + d.skill_id + ", " + d.latency_ms + " ms");
          box.querySelector("summary").replaceWith(head);
          box.append(make("pre", "", d.success ? d.result || "" : d.error.message));
        }
        if (kind === "approval_required") {
          const a = make("a", "button", "Decide");
          a.href = say.dataset.conversations + "/" + encodeURIComponent(say.querySelector("[name=conversation_id]").value);
          const box = make("div", "note busy", d.skill_id + " waits for somebody to allow it. ");
          box.append(a);
          turn.append(box);
        }
        if (kind === "error") { over = true; turn.append(make("p", "problem", d.message)); }
        if (kind === "done") {
          over = true;
          if (d.stop_reason !== "completed" && d.stop_reason !== "approval_required") turn.append(make("p", "note bad", "The turn ended before an answer: " + d.stop_reason));
        }
      };
      try {
        const r = await fetch(say.dataset.chat, { method: "POST", body: data, headers: { "X-Csrf-Token": csrf(), Accept: "text/event-stream" }, signal: abort.signal });
        if ((r.headers.get("Content-Type") || "").startsWith("text/event-stream")) await events(r.body, hear);
        else if ((r.headers.get("Content-Type") || "").startsWith("application/json")) { over = true; turn.append(make("p", "problem", (await r.json()).message)); }
        else { over = true; window.location.reload(); }
        if (!over) turn.append(make("p", "problem", "The answer was cut off."));
      } catch (err) {
        turn.append(make("p", "problem", err.name === "AbortError" ? "Stopped." : "The host could not be reached."));
      }
      button.disabled = false;
      stop.hidden = true;
      area.focus();
    });
  }
})();
