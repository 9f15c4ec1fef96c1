// Memory over time, stacked, for the interval that the timeline shows; and the loss.
const svgFills = (id, kinds) => make("defs", {}, ...kinds.map(([, colour, hatching], i) => {
    const tile = make("pattern", {id: `${id}-${i}`, width: 8, height: 8, patternUnits: "userSpaceOnUse"}, make("rect", {width: 8, height: 8, fill: `var(--${colour})`}));
    for (const [x1, y1, x2, y2] of HATCHINGS[hatching]) tile.append(make("line", {x1, y1, x2, y2, stroke: "var(--hatch)"}));
    return tile;
}));
const frame = (holder, height, label) => {
    const width = Math.max(240, holder.clientWidth), svg = make("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
    return {svg, width, height, left: 52, right: width - 8, top: 8, bottom: height - 22};
};
const yAxis = (f, low, high, text) => {
    const step = niceStep(high - low || 1, 4), y = v => f.bottom - (v - low) / (high - low || 1) * (f.bottom - f.top);
    for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step)
        f.svg.append(make("line", {class: "axis", x1: f.left, x2: f.right, y1: y(tick), y2: y(tick)}),
            make("text", {class: "tick", x: f.left - 5, y: y(tick) + 4, "text-anchor": "end"}, text(tick, step)));
    return y;
};
const digits = step => Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));

const memory = (section, data) => {
    legend(section.querySelector(".legend"), data.kinds);
    const holders = data.rows.map(row => {
        const holder = make("figure", {}, make("figcaption", {}, row.label), make("div"));
        section.querySelector(".multiples").append(holder);
        return holder.lastChild;
    });
    const most = Math.max(...data.rows.map(row => Math.max(row.peak || 0, ...row.points.map(p => p[1] + p[2] + p[3] + p[4]))));
    return view => data.rows.forEach((row, r) => {
        const f = frame(holders[r], 170, say("memory of {0}", row.label)), x = t => f.left + (t - view[0]) / (view[1] - view[0]) * (f.right - f.left);
        f.svg.append(svgFills(`memory${r}`, data.kinds));
        const y = yAxis(f, 0, most * 1.05, (v, step) => (v / 1e6).toFixed(digits(step / 1e6)) + " " + say("MB"));
        let from = row.points.findIndex(p => p[0] >= view[0]), to = row.points.findIndex(p => p[0] > view[1]);
        const seen = row.points.slice(Math.max(0, (from < 0 ? row.points.length : from) - 1), to < 0 ? row.points.length : to + 1), base = seen.map(() => 0);
        data.kinds.forEach((kind, k) => {
            let upper = "", lower = [];
            seen.forEach((p, i) => { // the memory held since the previous operation
                const begin = x(clamp(i ? seen[i - 1][0] : view[0], ...view)).toFixed(1), end = x(clamp(p[0], ...view)).toFixed(1), top = y(base[i] + p[k + 1]).toFixed(1);
                upper += `${i ? "L" : "M"}${begin} ${top}L${end} ${top}`;
                lower.push(`L${end} ${y(base[i]).toFixed(1)}L${begin} ${y(base[i]).toFixed(1)}`);
                base[i] += p[k + 1];
            });
            if (upper) f.svg.append(make("path", {class: "area", d: upper + lower.reverse().join("") + "Z", fill: `url(#memory${r}-${k})`}, make("title", {}, kind[0])));
        });
        if (row.peak) f.svg.append(make("line", {x1: f.left, x2: f.right, y1: y(row.peak), y2: y(row.peak), stroke: "var(--text)", "stroke-dasharray": "6 4"}));
        const ends = [[view[0], "start"], [view[1], "end"]];
        for (const [t, anchor] of ends) f.svg.append(make("text", {class: "tick", x: x(t), y: f.height - 5, "text-anchor": anchor}, (t / 1000).toFixed(1) + " ms"));
        holders[r].replaceChildren(f.svg);
    });
};

const loss = (holder, data) => () => {
    const f = frame(holder, 240, say("loss by step")), points = data.points.filter(p => p[1] !== null);
    if (!points.length) return;
    const values = [...points, ...data.evaluations].map(p => p[1]), low = Math.min(...values), high = Math.max(...values), room = (high - low || Math.abs(high) || 1) * 0.08;
    const begin = points[0][0], end = points[points.length - 1][0], x = s => f.left + (end === begin ? 0.5 : (s - begin) / (end - begin)) * (f.right - f.left - 8);
    const y = yAxis(f, low - room, high + room, (v, step) => v.toFixed(digits(step)));
    const reach = Math.max(Math.min(2, Math.floor(points.length / 5)), Math.floor(points.length / 50)), mean = points.map((p, i) => {
        const around = points.slice(Math.max(0, i - reach), i + reach + 1);
        return [p[0], around.reduce((sum, q) => sum + q[1], 0) / around.length];
    });
    const side = clamp(300 / points.length, 3, 6); // the fewer points, the larger they are drawn
    for (const [s, v] of points) f.svg.append(make("rect", {class: "point", x: x(s) - side / 2, y: y(v) - side / 2, width: side, height: side, fill: "var(--sky)"}));
    f.svg.append(make("path", {class: "curve", d: mean.map(([s, v], i) => `${i ? "L" : "M"}${x(s).toFixed(1)} ${y(v).toFixed(1)}`).join(""), fill: "none", stroke: "var(--blue)", "stroke-width": 2}));
    for (const [s, v] of data.evaluations)
        f.svg.append(make("path", {class: "evaluation", d: `M${x(s)} ${y(v) - 6}l6 6l-6 6l-6 -6Z`, fill: "var(--orange)", stroke: "var(--text)"}, make("title", {}, say("test loss {0} after step {1}", v.toFixed(4), s))));
    const step = Math.max(1, niceStep(end - begin || 1, Math.max(2, f.width / 120)));
    for (let tick = Math.ceil(begin / step) * step; tick <= end; tick += step)
        f.svg.append(make("text", {class: "tick", x: clamp(x(tick), f.left + 8, f.right - 14), y: f.height - 5, "text-anchor": "middle"}, String(tick)));
    holder.replaceChildren(f.svg);
};
