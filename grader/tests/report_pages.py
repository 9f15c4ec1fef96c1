"""report_pages.py WHAT PAGE [...]: checks a page of make report, for report.sh. The exit status is
the answer; prints what it found."""
import html
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["ROOT"], "common/train/tests"))
import pages  # pylint: disable=wrong-import-position


def tiles_once(sheet):
    """Do the blocks of a sheet cover each of its elements exactly once? Ranks that hold the same
    numbers form one block."""
    seen = [[0] * sheet["columns"] for _ in range(sheet["rows"])]
    for block in sheet["blocks"]:
        for row, column, rows, columns in block["rectangles"]:
            for r in range(row, row + rows):
                for c in range(column, column + columns):
                    seen[r][c] += 1
    return all(count == 1 for row in seen for count in row)


def sheets(page):
    return [sheet for of_one in page.data["matrices"] for sheet in of_one]


def wrong_ranks(page, kinds=None):
    """The ranks whose blocks have wrong elements."""
    found = set()
    for sheet in sheets(page):
        if kinds and sheet["title"] != kinds:
            continue
        if sheet.get("addend"):
            found |= {rank for block in sheet["blocks"] for rank in block["ranks"]}
        wrong = {at for begin, length, _ in sheet["runs"] for at in range(begin, begin + length)}
        for block in sheet["blocks"]:
            inside = {r * sheet["columns"] + c for row, column, rows, columns in block["rectangles"] for r in range(row, row + rows) for c in range(column, column + columns)}
            found |= set(block["ranks"]) if wrong & inside else set()
    return found


def is_one_file(page, path):
    return not page.unclosed and not page.loads(), f"{page.unclosed} {page.loads()}"


def is_right(page, path):
    good = sheets(page) and not any(sheet["runs"] for sheet in sheets(page)) and all(map(tiles_once, sheets(page)))
    return bool(good) and "✗" not in page.text and "All elements are right" in page.text, page.text[:600]


def is_cut(page, path):
    """Is some matrix split by rows over all ranks, and some by columns?"""
    titles = {sheet["title"] for sheet in sheets(page) if len(sheet["blocks"]) == page.data["ranks"]}
    return {"split by rows", "split by columns"} <= titles, str(titles)


def is_wrong_on(page, path, *ranks):
    return wrong_ranks(page) == set(map(int, ranks)) and "expected" in page.text, f"{wrong_ranks(page)} {page.text[:600]}"


def is_wrong_by_rows_on(page, path, *ranks):
    found = wrong_ranks(page, "split by rows")
    return found == set(map(int, ranks)), str(found)


def says(page, path, *words):
    return all(word in page.text for word in words), page.text[:3000]


def begins_with(page, path, *words):
    """Do these words stand above the first table?"""
    above = page.text.split("The judge's result for this case.")[0]
    return all(word in above for word in words), above


def adds_up(page, path):
    """The element, the terms and the sum of each row of the first table of elements."""
    table = re.search(r"The first wrong elements(.*?)</table>", page.source, re.S)
    rows = [[float(cell) for cell in re.findall(r"<td[^>]*>([^<]*)</td>", row)] for row in re.findall(r"<tr>(.*?)</tr>", table[1])[1:]] if table else []
    return len(rows) in (5, 6) and all(abs(sum(terms) - whole) < 2e-3 for *terms, whole in rows), str(rows)


def lists_what_is_named(page, path):
    """Is the element that the first reason names among the elements below?"""
    above, below = page.text.split("The judge's result for this case.")
    named = re.search(r"element (\[[\d, ]+\]) is", above)
    return bool(named) and named[1] in below, str(named)


def stands_before(page, path, first, second):
    """Does the section with the first heading stand before the one with the second?"""
    headings = re.findall(r"<h2>(.*?)</h2>", page.source)
    return first in headings and second in headings and headings.index(first) < headings.index(second), str(headings)


def folds(page, path, *words):
    """Are these the summaries of the folded sections of matrices, which are closed?"""
    found = re.findall(r'<details class="more"( open)?><summary>(.*?)</summary>', page.source)
    return found == [("", word) for word in words], str(found)


def equals_verdict(page, path, verdict):
    """Does the page show what make grade wrote about each check of the same case? The page has the
    sizes at the end of a reason once."""
    with open(verdict, encoding="utf-8") as file:
        checks = json.load(file)["labs"][0]["checks"]
    lacking = []
    for check in checks:
        status = check["status"].replace("not run", "not in this case")
        lines = [" ".join(line.split()) for line in check.get("reason", "").split("\n")]
        row = re.search(rf"{re.escape(check['name'])} \S {status}", page.text)
        lacking += [] if row else [f"{check['name']} {status}"]
        lacking += [line for line in lines if re.sub(r" \(\d+ ranks?, .*\)$", "", line) not in page.text]
    return len(checks) > 3 and not lacking, str(lacking)


def has_calls(page, path):
    rows = page.data["timeline"]["rows"]
    counts = [len(row["spans"]) for row in rows]
    return len(rows) == page.data["ranks"] and min(counts) > 3 and all(a[0] + a[1] <= b[0] + 1e-6 for row in rows for a, b in zip(row["spans"], row["spans"][1:])), str(counts)


def begins_with_a_pass(page, path):
    """Is time 0 in the first pass, and is what comes before it the creation of the groups?"""
    marks = page.data["timeline"]["marks"]
    return [text for begin, _, text in marks if begin < 0] == ["creation of the groups"] and len(marks) > 1, str(marks)


def waits_are_seen(page, path):
    kinds, rows = [kind[0] for kind in page.data["timeline"]["kinds"]], page.data["timeline"]["rows"]
    end = max(row["spans"][-1][0] + row["spans"][-1][1] for row in rows)
    shares = [row["spans"][-1][1] / end for row in rows if kinds[row["spans"][-1][2]] == "call that did not return"]
    return len(shares) == len(rows) and min(shares) > 0.05, str(shares)


def has_schedule(page, path, length, idle):
    """Four stages and eight micro-batches: each stage works in 16 slots of `length`."""
    schedule = page.data.get("schedule", {"rows": []})
    names = [[schedule["names"][span[3]] for span in row["spans"] if span[2] < 2] for row in schedule["rows"]]
    grey = [sum(span[1] for span in row["spans"] if schedule["kinds"][span[2]][1] == "grey") for row in schedule["rows"]]
    ends = [row["spans"][-1][0] + row["spans"][-1][1] for row in schedule["rows"]]
    good = len(names) == 4 and all(sorted(row) == sorted(f"{way}{i}" for way in "FB" for i in range(8)) for row in names)
    return good and grey == 4 * [int(idle)] and ends == 4 * [int(length)] and "Schedule of the pipeline" in page.text, f"{names} {grey} {ends}"


# ---- make board


def has_outline(page, path):
    headers = [attrs for tag, attrs in page.elements if tag == "th"]
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    found = [attrs.get("lang") for tag, attrs in page.elements if tag == "html"], [tag for tag, _ in page.elements].count("h1"), [one for one in headers if "scope" not in one]
    return found == (["en"], 1, []) and headers and len(ids) == len(set(ids)), f"{found} {ids}"


def rows_of(source):
    """The rows of the class: {header: its cells' texts}."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', source.split("</table>")[0], re.S)
    text = lambda cell: html.unescape(re.sub(r"<[^>]*>", " ", cell))
    return {html.unescape(name): [" ".join(text(cell).split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", cells, re.S)] for name, cells in rows}


def has_cell(page, path, student, lab, words):
    found = [cells for name, cells in rows_of(page.source).items() if name.rsplit(" (", 1)[0] == student]
    return len(found) == 1 and found[0][int(lab) - 1] == words, str(found)


def names_aliases_of(page, path, other, *students):
    """Does the page have the rows of the other page, with these names beside the same numbers?"""
    with open(other, encoding="utf-8") as file:
        aliases = rows_of(file.read())
    names = {name.rsplit(" (", 1)[1][:-1]: (name.rsplit(" (", 1)[0], cells) for name, cells in rows_of(page.source).items()}
    good = sorted(name for name, _ in names.values()) == sorted(students) and {alias: cells for alias, (_, cells) in names.items()} == aliases
    return good and list(aliases) == sorted(aliases), f"{aliases} {names}"


def has_speeds(page, path, *students):
    """Do exactly these students have tokens per second, in order, the fastest first?"""
    table = page.source.split("The fastest first.")[-1].split("</table>")[0]
    found = {html.unescape(name).split(" (")[0]: int(cell.replace(",", "")) for name, cell in re.findall(r'<th scope="row">(.*?)</th><td[^>]*>([\d,]+)</td>', table)}
    speeds = [speed for name, speed in found.items() if name != "the reference"]
    return set(found) == set(students) and min(found.values()) > 0 and speeds == sorted(speeds, reverse=True), f"{found} {page.text[-600:]}"


def overlaps(page, path):
    """Is there a row of work for each replica, and one of sums, and does the page say how much of the sums the
    busiest replica does not overlap?"""
    *ranks, sums = page.data["cluster"]["rows"]
    works = [[span for span in row["spans"] if span[2] == 0] for row in ranks]
    busiest = max(works, key=lambda spans: sum(span[1] for span in spans))
    hidden = sum(max(0, min(a[0] + a[1], b[0] + b[1]) - max(a[0], b[0])) for a in sums["spans"] for b in busiest)
    exposed = sum(span[1] for span in sums["spans"]) - hidden
    said = re.search(r"([0-9.]+) (us|ms) of the sums over replicas is exposed", page.text)
    return len(ranks) == 2 and 0 < exposed < hidden and abs(float(said[1]) * {"us": 1, "ms": 1e3}[said[2]] / exposed - 1) < 0.01, f"{hidden} {exposed} {said}"


def has_stages_in_time(page, path, stages):
    rows = page.data["cluster"]["rows"]
    ends = {round(row["spans"][-1][0] + row["spans"][-1][1], 3) for row in rows}
    return len(rows) == int(stages) and len(ends) == 1 and "The step takes" in page.text and "slots" not in page.data["cluster"], str(ends)


def equals_on_cluster(page, path, other):
    found, first = page.data["cluster"], pages.Page(other).data["cluster"]
    return found == first, f"{found}\n{first}"


def lacks_nothing(page, path):
    return "not reached" not in page.text and "All elements are right" in page.text, page.text[:600]


def has_no_schedule(page, path):
    return "schedule" not in page.data and "Schedule of the pipeline" not in page.text, str(page.data.keys())


def is_drawn(page, path):
    dom = pages.drawn(path)
    blocks = sum(len(block["rectangles"]) for sheet in sheets(page) + sum(page.data["expected"].values(), []) for block in sheet["blocks"])
    wrong = sum(bool(sheet["runs"]) for sheet in sheets(page))
    found = (pages.attribute(dom, "data-ready"), pages.attribute(dom, "data-error"), dom.count('class="block"'), dom.count('class="wrong"'))
    timelines = [int(spans) > 0 for spans in re.findall(r'data-spans="(\d+)"', dom)]
    return found == ("yes", None, blocks, wrong) and timelines == [True] * (1 + ("schedule" in page.data) + ("cluster" in page.data)), str((found, blocks, wrong, timelines))


def is_side_by_side(page, path):
    """On a screen of 1280 pixels, does the missing sum stand between its terms and what is expected?"""
    dom = pages.drawn(path, 1280)
    lefts = [int(left) for left in re.findall(r'data-left="(\d+)"', dom[dom.index('class="compared"'):])[:3]]
    return 'class="missing"' in dom and len(set(lefts)) == 3 and lefts == sorted(lefts), str(lefts)


def is_shaded(page, path):
    """Has a matrix without a right element every shade, with the largest errors in the darkest?"""
    all_wrong = [sheet["runs"] for sheet in sheets(page) if sum(run[1] for run in sheet["runs"]) == sheet["rows"] * sheet["columns"]]
    return bool(all_wrong) and all({run[2] for run in runs} == {1, 2, 3, 4} for runs in all_wrong), str(all_wrong)[:600]


def opens_what_is_wrong(page, path):
    """Are exactly the sections with something wrong open, or else only the first?"""
    sections = re.findall(r"<details( open)?><summary>(.*?)</summary>", page.source)
    opened, wrong = [bool(state) for state, _ in sections], ["✗" in words for _, words in sections]
    return len(sections) > 1 and opened == (wrong if any(wrong) else [True] + [False] * (len(sections) - 1)), str(sections)


def explains_colours(page, path, *words):
    """Does the legend have exactly these entries?"""
    found = re.search(r'<ul[^>]*id="ranks"[^>]*>(.*?)</ul>', pages.drawn(path), re.S)
    told = re.findall(r"</canvas>([^<]*)</li>", found.group(1)) if found else []
    return told == list(words), str(told)


def has_browser(*_):
    return pages.BROWSER is not None, "no browser"


def main(what, path, *more):
    good, found = globals()[what](pages.Page(path), path, *more)
    print(found)
    sys.exit(not good)


main(*sys.argv[1:])
