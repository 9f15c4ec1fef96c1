"use strict";
// A timeline, on a canvas: one row per rank or stage. data.timeline, data.schedule and
// data.cluster: kinds [[name, colour, hatching]], names, marks [[begin, end, text]] and rows
// [{label, spans: [[begin, length, kind, name, bytes or text]]}]; times in microseconds or, with
// `slots`, in slots.
const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "rect", "path", "line", "text", "g", "title", "defs", "pattern"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
};
// A message in the reader's language (data.words), with values for {0}, {1}, ...
const say = (sentence, ...values) => values.reduce((text, value, i) => text.replaceAll(`{${i}}`, value), data.words[sentence] || sentence);
const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
const timeText = us => us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : us >= 1000 ? (us / 1000).toFixed(us >= 1e5 ? 1 : 3) + " ms" : us.toFixed(us >= 100 ? 0 : 1) + " µs";
const bytesText = b => b >= 1e9 ? `${(b / 1e9).toFixed(2)} ${say("GB")}` : b >= 1e6 ? `${(b / 1e6).toFixed(2)} ${say("MB")}` : b >= 1e3 ? `${(b / 1e3).toFixed(1)} ${say("kB")}` : `${b} ${say("B")}`;
const niceStep = (span, parts) => {
    const raw = span / parts, power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find(x => x * power >= raw);
};

// The lines of each hatching, in a tile of 8 by 8.
const HATCHINGS = {plain: [], rising: [[0, 8, 8, 0], [-1, 1, 1, -1], [7, 9, 9, 7]], falling: [[0, 0, 8, 8], [-1, 7, 1, 9], [7, -1, 9, 1]],
    level: [[0, 2, 8, 2], [0, 6, 8, 6]], upright: [[2, 0, 2, 8], [6, 0, 6, 8]], dots: [[1, 2, 3, 2], [5, 6, 7, 6]], empty: [[3, 4, 5, 4]]};
const canvasFill = (context, colour, hatching) => {
    const tile = make("canvas", {width: 8, height: 8}), c = tile.getContext("2d");
    c.fillStyle = hatching === "empty" ? css("ground") : css(colour);
    c.fillRect(0, 0, 8, 8);
    c.strokeStyle = hatching === "empty" ? css("soft") : css("hatch");
    for (const [x, y, u, v] of HATCHINGS[hatching]) { c.beginPath(); c.moveTo(x, y); c.lineTo(u, v); c.stroke(); }
    return context.createPattern(tile, "repeat");
};
const legend = (list, kinds) => {
    list.replaceChildren(...kinds.map(([name, colour, hatching]) => {
        const swatch = make("canvas", {width: 26, height: 14}), c = swatch.getContext("2d");
        c.fillStyle = canvasFill(c, colour, hatching);
        c.fillRect(0, 0, 26, 14);
        return make("li", {}, swatch, name);
    }));
};

const timeline = (figure, data, onView) => {
    const canvas = figure.querySelector("canvas"), readout = figure.querySelector(".readout"), list = figure.querySelector(".legend");
    const HEAD = data.marks.length ? 40 : 22, ROW = 34, GAP = 8;
    const all = data.rows.flatMap(row => row.spans);
    const first = Math.min(...data.rows.map(row => row.spans.length ? row.spans[0][0] : Infinity)), last = all.reduce((end, s) => Math.max(end, s[0] + s[1]), first + 1);
    const whole = [first, last];
    const some = data.marks.length && !data.all;
    let view = some ? [data.marks[0][0], data.marks[0][1]] : [Math.max(first, 0), last], mark = some ? 0 : -1, fills, left = 60, hovered = null;
    const width = () => canvas.clientWidth;
    const x = t => left + (t - view[0]) / (view[1] - view[0]) * (width() - left);
    const t = px => view[0] + (px - left) / (width() - left) * (view[1] - view[0]);
    const colours = () => {
        const c = canvas.getContext("2d");
        fills = data.kinds.map(([, colour, hatching]) => canvasFill(c, colour, hatching));
        legend(list, data.kinds);
    };
    const label = (c, text, from, to, y, kind) => {
        const inside = [Math.max(from, left) + 3, Math.min(to, width()) - 3], wide = c.measureText(text).width;
        if (inside[1] - inside[0] < wide) return;
        const [, colour, hatching] = data.kinds[kind], middle = (inside[0] + inside[1] - wide) / 2;
        c.fillStyle = hatching === "empty" ? css("ground") : css(colour);
        c.fillRect(middle - 2, y + 8, wide + 4, ROW - 16);
        c.fillStyle = hatching === "empty" ? css("text") : colour === "blue" ? css("on-blue") : css("ink");
        c.fillText(text, middle, y + ROW / 2 + 4);
    };
    const axis = c => {
        const step = niceStep(view[1] - view[0], Math.max(2, (width() - left) / 110));
        c.strokeStyle = css("line");
        for (let tick = Math.ceil(view[0] / step) * step; tick <= view[1]; tick += step) {
            const text = data.slots ? `${+tick.toFixed(3)}` : step >= 1000 ? `${+(tick / 1000).toFixed(step >= 10000 ? 0 : 1)} ms` : `${+(tick / 1000).toFixed(3)} ms`, px = x(tick);
            c.beginPath(); c.moveTo(px, 18); c.lineTo(px, canvas.clientHeight); c.stroke();
            c.fillStyle = css("soft");
            if (px + c.measureText(text).width + 3 < width()) c.fillText(text, px + 3, 14);
        }
        for (const [begin, end, text] of data.marks) {
            if (end < view[0] || begin > view[1]) continue;
            const from = Math.max(x(begin), left), to = Math.min(x(end), width());
            c.fillStyle = css("panel"); c.fillRect(from, 20, to - from, 17);
            c.strokeRect(from, 20, to - from, 17);
            c.fillStyle = css("text");
            if (to - from > c.measureText(text).width + 6) c.fillText(text, from + 4, 33);
        }
    };
    const draw = () => {
        const ratio = window.devicePixelRatio || 1, height = HEAD + data.rows.length * (ROW + GAP);
        canvas.style.height = height + "px";
        canvas.width = Math.round(width() * ratio);
        canvas.height = Math.round(height * ratio);
        const c = canvas.getContext("2d");
        c.setTransform(ratio, 0, 0, ratio, 0, 0);
        c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
        left = Math.max(...data.rows.map(row => c.measureText(row.label).width)) + 10;
        axis(c);
        let drawn = 0;
        data.rows.forEach((row, r) => {
            const y = HEAD + r * (ROW + GAP);
            c.fillStyle = css("ground"); c.fillRect(0, y, left, ROW);
            c.fillStyle = css("text"); c.fillText(row.label, 0, y + ROW / 2 + 4);
            for (const span of row.spans) {
                const [begin, length, kind, name] = span;
                if (begin + length < view[0] || begin > view[1]) continue;
                const from = Math.max(x(begin), left), to = Math.min(x(begin + length), width()), wide = Math.max(to - from, 0.6);
                c.fillStyle = fills[kind]; c.fillRect(from, y, wide, ROW);
                if (wide > 2.5) { c.lineWidth = 0.6; c.strokeStyle = css("ground"); c.strokeRect(from, y, wide, ROW); c.lineWidth = 1; }
                if (span === hovered) { c.lineWidth = 2.5; c.strokeStyle = css("text"); c.strokeRect(from, y + 1, wide, ROW - 2); c.lineWidth = 1; }
                if (wide > 20) label(c, data.names[name], from, to, y, kind);
                drawn++;
            }
        });
        canvas.dataset.spans = drawn;
        canvas.dataset.view = view.join(" ");
        if (onView) onView(view);
    };
    const tell = span => {
        hovered = span;
        if (!span) return;
        const row = data.rows.find(r => r.spans.includes(span)), extra = span[4];
        const what = [row.label, data.names[span[3]], data.kinds[span[2]][0]];
        readout.textContent = (!data.slots ? say("{0}: {1} — {2}, {3} from {4} on", ...what, timeText(span[1]), timeText(span[0])) :
            span[1] > 1 ? say("{0}: {1} — {2}, slots {3} to {4}", ...what, span[0] + 1, span[0] + span[1]) : say("{0}: {1} — {2}, slot {3}", ...what, span[0] + 1)) +
            (typeof extra === "number" ? say(", {0} sent", bytesText(extra)) : extra ? `, ${extra}` : "");
    };
    const to = (begin, end) => {
        const size = clamp(end - begin, (whole[1] - whole[0]) / 1e5, whole[1] - whole[0]), from = clamp(begin, whole[0], whole[1] - size);
        view = [from, from + size];
        draw();
    };
    const zoom = (factor, around = (view[0] + view[1]) / 2) => to(around - (around - view[0]) * factor, around + (view[1] - around) * factor);
    const pan = share => to(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
    const goTo = i => { mark = clamp(i, 0, data.marks.length - 1); to(data.marks[mark][0], data.marks[mark][1]); };
    const along = direction => { // the keyboard moves from span to span of a row
        const row = data.rows.find(r => r.spans.includes(hovered)) || data.rows[0], at = row.spans.indexOf(hovered);
        const seen = at >= 0 ? at + direction : row.spans.findIndex(s => s[0] + s[1] > view[0]), span = row.spans[clamp(seen, 0, row.spans.length - 1)];
        tell(span);
        if (span && (span[0] < view[0] || span[0] + span[1] > view[1])) to(span[0] - (view[1] - view[0]) / 2, span[0] + (view[1] - view[0]) / 2);
        draw();
    };
    const otherRow = direction => {
        const r = data.rows.findIndex(row => row.spans.includes(hovered)), row = data.rows[clamp(r + direction, 0, data.rows.length - 1)], at = hovered ? hovered[0] : view[0];
        tell(row.spans.find(s => s[0] + s[1] > at) || null);
        draw();
    };
    const actions = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), Home: () => to(...whole),
        PageUp: () => data.marks.length && goTo(mark - 1), PageDown: () => data.marks.length && goTo(mark + 1), n: () => along(1), p: () => along(-1),
        ArrowDown: () => otherRow(1), ArrowUp: () => otherRow(-1)};
    canvas.addEventListener("keydown", event => {
        if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        actions[event.key]();
    });
    canvas.addEventListener("wheel", event => { // the page scrolls unless the timeline was clicked or Ctrl is held
        if (document.activeElement !== canvas && !event.ctrlKey) return;
        event.preventDefault();
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width());
        else zoom(event.deltaY > 0 ? 1.25 : 0.8, t(event.offsetX));
    }, {passive: false});
    let held = null;
    canvas.addEventListener("pointerdown", event => { held = {x: event.offsetX, view: [...view]}; canvas.setPointerCapture(event.pointerId); canvas.focus(); });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointercancel", () => { held = null; });
    canvas.addEventListener("pointermove", event => {
        if (held && Math.abs(event.offsetX - held.x) > 3) {
            const moved = (held.x - event.offsetX) / (width() - left) * (held.view[1] - held.view[0]);
            to(held.view[0] + moved, held.view[1] + moved);
            return;
        }
        const row = data.rows[Math.floor((event.offsetY - HEAD) / (ROW + GAP))], at = t(event.offsetX);
        tell(row && event.offsetX > left ? row.spans.find(s => s[0] <= at && at < s[0] + s[1]) || null : null);
        draw();
    });
    const buttons = figure.querySelector(".buttons");
    const button = (text, title, action) => { const b = make("button", {type: "button", title}, text); b.addEventListener("click", action); buttons.append(b); };
    button("+", say("zoom in"), () => zoom(0.5));
    button("−", say("zoom out"), () => zoom(2));
    button("◀", say("to the left"), () => pan(-0.5));
    button("▶", say("to the right"), () => pan(0.5));
    if (data.marks.length) {
        button(data.all ? say("previous pass") : say("previous step"), say("the one before"), () => goTo(mark - 1));
        button(data.all ? say("next pass") : say("next step"), say("the one after"), () => goTo(mark + 1));
    }
    button(say("all"), say("all of it"), () => to(...whole));
    return {draw, colours: () => { colours(); draw(); }};
};
