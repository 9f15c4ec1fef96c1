// Block pictures: which rank holds which part of a matrix, drawn as rows by columns (tensors with
// more dimensions have all but the last as rows). A sheet is {title, rows, columns, blocks:
// [{ranks, rectangles: [[row, column, rows, columns]]}], runs: [[first element, how many, shade from 1 to 4]],
// told: [[element, text]]}.
const RANK_STYLES = [["sky", "plain"], ["orange", "rising"], ["green", "upright"], ["pink", "falling"], ["yellow", "dots"], ["blue", "level"], ["grey", "rising"], ["sky", "falling"]];
const rankKinds = ranks => Array.from({length: ranks}, (_, r) => [say("rank {0}", r), ...RANK_STYLES[r % RANK_STYLES.length]]);
const ranksText = ranks => (ranks.length > 1 ? say("ranks {0}", ranks.join(", ")) : say("rank {0}", ranks[0]));

const copies = () => [say("a copy on each rank"), "bar", "plain"];
const isOnAll = (block, ranks) => ranks > 1 && block.ranks.length === ranks;

const sheetOf = (sheet, id, ranks) => {
    const room = Math.min(document.documentElement.clientWidth - 70, 340), cell = Math.min(14, room / Math.max(sheet.columns, 1), Math.max(190 / Math.max(sheet.rows, 1), 0.5));
    const width = Math.max(sheet.columns * cell, 4), height = Math.max(sheet.rows * cell, cell < 4 ? 10 : cell), across = width / Math.max(sheet.columns, 1), down = height / Math.max(sheet.rows, 1);
    const behind = 5 * Math.max(0, sheet.stack - 1); // room for the other terms of a partial sum
    const wrong = sheet.runs.reduce((sum, [, length]) => sum + length, 0);
    const svg = make("svg", {width: width + 2 + behind, height: height + 2 + behind, viewBox: `-1 ${-1 - behind} ${width + 2 + behind} ${height + 2 + behind}`, role: "img",
        "aria-label": say("{0}: {1} by {2}", sheet.title, sheet.rows, sheet.columns) + (wrong ? say(", {0} wrong", wrong) : "")});
    for (let i = sheet.stack - 1; i > 0; i--) svg.append(make("rect", {class: "behind", x: 5 * i, y: -5 * i, width, height, fill: "var(--panel)", stroke: "var(--soft)"}));
    svg.append(svgFills(id, [...rankKinds(ranks), copies()]), make("rect", {width, height, fill: "var(--panel)", stroke: "var(--soft)"}));
    for (const block of sheet.blocks)
        for (const [row, column, rows, columns] of block.rectangles) {
            const x = column * across, y = row * down, w = columns * across, h = rows * down;
            svg.append(make("rect", {class: "block", "data-rank": block.ranks.join(" "), "data-area": rows * columns, x, y, width: w, height: h, fill: `url(#${id}-${isOnAll(block, ranks) ? ranks : block.ranks[0]})`,
                stroke: "var(--text)"}, make("title", {}, say("{0}: rows {1} to {2}, columns {3} to {4}", ranksText(block.ranks), row, row + rows - 1, column, column + columns - 1))));
        }
    const squares = ["", "", "", ""];
    for (let [begin, length, shade] of sheet.runs)
        while (length > 0) { // a run may continue in the next row
            const row = Math.floor(begin / sheet.columns), column = begin % sheet.columns, part = Math.min(length, sheet.columns - column);
            squares[shade - 1] += `M${(column * across).toFixed(2)} ${(row * down).toFixed(2)}h${Math.max(part * across, 1.5).toFixed(2)}v${Math.max(down, 1.5).toFixed(2)}H${(column * across).toFixed(2)}Z`;
            begin += part;
            length -= part;
        }
    if (wrong) svg.append(make("g", {class: "wrong", fill: "var(--wrong)"}, make("title", {}, say("{0} wrong", wrong)),
        ...squares.map((d, i) => make("path", {d, "fill-opacity": 0.1 + 0.225 * (i + 1)}))));
    for (const [at, text] of sheet.told)
        svg.append(make("rect", {class: "told", x: at % sheet.columns * across, y: Math.floor(at / sheet.columns) * down, width: Math.max(across, 3), height: Math.max(down, 3),
            fill: "transparent", stroke: "var(--red)"}, make("title", {}, text)));
    if (across >= 5 && down >= 5 && sheet.rows * sheet.columns < 4000) {
        let lines = "";
        for (let i = 1; i < sheet.columns; i++) lines += `M${(i * across).toFixed(2)} 0V${height}`;
        for (let i = 1; i < sheet.rows; i++) lines += `M0 ${(i * down).toFixed(2)}H${width}`;
        svg.append(make("path", {d: lines, stroke: "var(--ground)", "stroke-width": 0.5, "stroke-opacity": 0.7, "pointer-events": "none"}));
    }
    for (const block of sheet.blocks) {
        const [row, column, rows, columns] = block.rectangles[0] || [0, 0, 0, 0], text = block.ranks.join(", "), w = columns * across, h = rows * down, wide = 8 * text.length + 6;
        if (w < wide + 2 || h < 16) continue;
        const x = column * across + w / 2, y = row * down + h / 2;
        svg.append(make("rect", {x: x - wide / 2, y: y - 9, width: wide, height: 17, rx: 3, fill: "var(--ground)", "pointer-events": "none"}),
            make("text", {x, y: y + 4, "text-anchor": "middle", "pointer-events": "none"}, text));
    }
    return make("figure", {}, make("figcaption", {}, sheet.title), svg);
};

const blocks = data => {
    const swatch = data.matrices.some(sheets => sheets.some(sheet => sheet.runs.length)) ? [[say("wrong element (stronger: a larger error)"), "wrong", "plain"]] : [];
    const all = [...data.matrices, ...Object.values(data.expected)].flat().flatMap(sheet => sheet.blocks);
    const copied = all.some(block => isOnAll(block, data.ranks)) ? [copies()] : [];
    // Ranks that hold the same part share one block, in the colour of the first of them. A rank is
    // in the legend only if some block has its colour.
    const holders = all.filter(block => block.rectangles.length && !isOnAll(block, data.ranks));
    const kinds = rankKinds(data.ranks).flatMap((kind, r) => {
        const texts = new Set(holders.filter(block => block.ranks[0] === r).map(block => ranksText(block.ranks)));
        return texts.size ? [[texts.size > 1 ? ranksText([r]) : [...texts][0], ...kind.slice(1)]] : [];
    });
    const colour = () => legend(byId("ranks"), [...kinds, ...copied, ...swatch]);
    colourings.push(colour);
    colour();
    // A plus stands between the terms of a sum.
    const draw = (holder, sheets, id) => holder.replaceChildren(...sheets.flatMap((sheet, s) =>
        [...(sheet.addend && s ? [make("span", {class: "plus"}, "+")] : []), sheetOf(sheet, `${id}s${s}`, data.ranks)]));
    return () => {
        data.matrices.forEach((sheets, m) => byId(`matrix-${m}`) && draw(byId(`matrix-${m}`), sheets, `m${m}`)); // one that no rank reached is not drawn
        for (const [m, sheets] of Object.entries(data.expected)) draw(byId(`expected-${m}`), sheets, `e${m}`);
    };
};
