"""formats.py FOLDER: reads the output of formats.sh with other projects' parsers and schemas. These
come from PyPI, into an environment below the build folder. The XML schema for JUnit is the one with
which pytest tests itself.

In all.*: lab 1 is right, 2 wrong, 3 crashes, 4 has a TODO, 5 is started but splits nothing, 6 does
not build (with text that is difficult for all formats), 8 hangs, the others are not started.
full.*: lab 1 alone. cut-SIGNAL.json: the grader was ended after lab 1.
"""

import glob
import json
import os
import subprocess
import sys
import tarfile

PACKAGES = ["tap.py==3.2.1", "PyYAML==6.0.3", "more-itertools==10.5.0", "junitparser==3.2.0", "lxml==5.3.0", "jsonschema==4.23.0"]
PYTEST = "pytest==8.3.4"
BUILD = os.environ["BUILD"]
TREE = sys.argv[1]
with open(f"{BUILD}/generated/labs.json", encoding="utf-8") as labs_of_the_kit:
    LABS = [lab["number"] for lab in json.load(labs_of_the_kit) if lab["part"] == 1]
BY_LAB = {1: "passed", 2: "wrong", 3: "crash", 4: "to do", 5: "held back", 6: "does not build", 8: "hang"}
SENTENCES = (
    "JSON: the verdict is what was graded, check by check",
    "Gradescope: results.json has the published fields, and its scores add up",
    "Autolab: the last line is the scores, the text before it for the student",
    "GitHub Classroom: the result is what its reporter adds up, with the line of a crash and of a compiler's error",
    "JUnit: the file conforms to the schema",
    "JUnit: a wrong check is a failure; a crash, a hang and a failed build are errors, with the compiler's messages once; not started is skipped",
    "TAP: each line is valid, each lab is a result, labs that are not started are skipped",
    "TAP: subtests and YAML blocks are valid",
    "each format says how the ranks were isolated, once they ran: in a sandbox, or without one and why",
    "each file is UTF-8 without control characters",
    "an interrupted grader leaves the graded labs, and the others as not run",
    "the project's own pipelines keep the documents; GitLab's reports JUnit, GitHub's may only read",
)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def enter_environment():
    """Continues in the environment's Python, or skips all tests if the environment cannot be
    made."""
    folder = os.path.join(BUILD, "venv-formats")
    python, done = os.path.join(folder, "bin", "python"), os.path.join(folder, "complete")
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--retries", "1")
    if not os.path.exists(done):
        for step in ((sys.executable, "-m", "venv", folder), (*pip, "install", *PACKAGES),
                     (*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", folder, PYTEST)):
            result = run(*step)
            if result.returncode:
                lines = (result.stderr + result.stdout).strip().splitlines() or ["no message"]
                for sentence in SENTENCES:
                    print(f"skip - {sentence}: {lines[-1]}")
                sys.exit(0)
        with open(done, "w", encoding="utf-8"):
            pass
    os.execv(python, [python, os.path.abspath(__file__), TREE, "inside"])


def path(name):
    return os.path.join(TREE, name)


def load(name):
    with open(path(name), encoding="utf-8") as stream:
        return json.load(stream)


def expect(what, condition, shown=None):
    if not condition:
        raise AssertionError(f"{what}: {shown!r}"[:600])


def lab_status(lab):
    return BY_LAB.get(lab, "not started")


def json_verdict():
    full, verdict = load("full.json"), load("all.json")
    expect("full marks", full["points"] == full["of"] == 9 and full["complete"], full)
    expect("points", verdict["points"] == sum(lab["points"] for lab in verdict["labs"]), verdict["points"])
    expect("of", verdict["of"] == 100 and [lab["number"] for lab in verdict["labs"]] == LABS, verdict["of"])
    for lab in verdict["labs"]:
        statuses = {check["status"] for check in lab["checks"]}
        expect(f"lab {lab['number']}", lab_status(lab["number"]) in statuses, statuses)
        expect("points of checks", lab["points"] == sum(c["points"] for c in lab["checks"]), lab)
    wrong = [check for check in verdict["labs"][1]["checks"] if check["status"] == "wrong"]
    expect("the reason", all(check["reason"] and "LAB=2 SEED=1" in check["again"] for check in wrong), wrong)


def gradescope():
    import jsonschema
    visibility = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
    text = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
    test = {"type": "object", "additionalProperties": False, "properties": {
        "score": {"type": "number"}, "max_score": {"type": "number"}, "status": {"enum": ["passed", "failed"]},
        "name": {"type": "string"}, "name_format": text, "number": {"type": "string"}, "output": {"type": "string"},
        "output_format": text, "tags": {"type": "array"}, "visibility": visibility, "extra_data": {"type": "object"}}}
    schema = {"type": "object", "additionalProperties": False, "properties": {
        "score": {"type": "number"}, "execution_time": {"type": "number"}, "output": {"type": "string"},
        "output_format": text, "test_output_format": text, "test_name_format": text, "visibility": visibility,
        "stdout_visibility": visibility, "extra_data": {"type": "object"}, "leaderboard": {"type": "array"},
        "tests": {"type": "array", "minItems": 1, "items": test}}}
    for name, score, of in (("full.gradescope", 9, 9), ("all.gradescope", load("all.json")["points"], 100)):
        results = load(name)
        jsonschema.validate(results, schema)
        expect("score", results["score"] == score == sum(t["score"] for t in results["tests"]), results["score"])
        expect("of", sum(t["max_score"] for t in results["tests"]) == of, name)
    expect("a failed one says why", all(t["output"] for t in results["tests"] if t["status"] == "failed"), results)


def autolab():
    with open(path("all.autolab"), encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    scores = json.loads(lines[-1])
    points = {f"lab{lab['number']}": lab["points"] for lab in load("all.json")["labs"]}
    expect("scores", scores == {"scores": points}, scores)
    expect("the text", any(line.startswith("Score: ") for line in lines[:-1]), lines[-3:])


def github():
    import jsonschema
    status = {"enum": ["pass", "fail", "error"]}
    test = {"type": "object", "required": ["name", "status", "score", "message", "filename", "line_no", "execution_time"],
            "properties": {"name": {"type": "string"}, "status": status, "score": {"type": "number"},
                           "message": {"type": ["string", "null"]}, "test_code": {"type": "string"},
                           "filename": {"type": "string"}, "line_no": {"type": "integer"}, "execution_time": {"type": "number"}}}
    schema = {"type": "object", "required": ["version", "status", "max_score", "tests"],
              "properties": {"version": {"const": 1}, "status": status, "max_score": {"type": "number"},
                             "tests": {"type": "array", "minItems": 1, "items": test}}}
    for name, overall, score, of in (("full.github", "pass", 9, 9), ("all.github", "fail", load("all.json")["points"], 100)):
        result = load(name)
        jsonschema.validate(result, schema)
        expect("status", result["status"] == overall, result["status"])
        expect("points", (sum(t["score"] for t in result["tests"]), result["max_score"]) == (score, of), name)
    named = {lab: next(t["line_no"] for t in result["tests"] if t["name"].startswith(f"Lab {lab} ")) for lab in (3, 6, 9)}
    expect("lines", named == {3: line_with(3, "*(volatile int *)8"), 6: line_with(6, "#error"), 9: 0}, named)


def line_with(lab, words):
    """The line of a student's lab that begins with these words."""
    file, = glob.glob(path(f"labs/{lab:02d}-*/*.c"))
    with open(file, encoding="utf-8", errors="replace") as stream:
        return next(number for number, line in enumerate(stream, 1) if line.lstrip().startswith(words))


def junit_schema():
    from lxml import etree
    archive, = glob.glob(os.path.join(BUILD, "venv-formats", "pytest-*.tar.gz"))
    with tarfile.open(archive) as tar:
        name, = (name for name in tar.getnames() if name.endswith("/junit-10.xsd"))
        schema = etree.XMLSchema(etree.parse(tar.extractfile(name)))
    for name in ("full.junit", "all.junit"):
        schema.assertValid(etree.parse(path(name)))


def junit_results():
    import junitparser
    kinds = {"passed": None, "held back": "Failure", "wrong": "Failure", "crash": "Error", "hang": "Error", "does not build": "Error", "refused": "Error",
             "not started": "Skipped", "to do": "Skipped"}
    labs = load("all.json")["labs"]
    suites = list(junitparser.JUnitXml.fromfile(path("all.junit")))
    expect("suites", len(suites) == len(labs), len(suites))
    for suite, lab in zip(suites, labs):
        got = [(case.name, type(case.result[0]).__name__ if case.result else None) for case in suite]
        want = [(check["name"], kinds[check["status"]]) for check in lab["checks"]]
        expect(f"lab {lab['number']}", got == want, got)
        count = {kind: sum(k == kind for _, k in want) for kind in ("Failure", "Error", "Skipped")}
        expect("counts", (suite.failures, suite.errors, suite.skipped, suite.tests)
               == (count["Failure"], count["Error"], count["Skipped"], len(want)), suite)
        expect("file and time", suite._elem.get("file") == lab["file"] and suite.time is not None, suite)
        expect("times of checks", abs(sum(case.time for case in suite) - suite.time) < 0.01, [case.time for case in suite])
        expect("isolation where ranks ran", [p.name for p in suite.properties()] == ["isolation"] * (lab["state"] == "graded"), lab["state"])
    messages = [case.result[0].text for case in suites[5]]
    expect("words of the compiler", "]]> <b> & \"quote\" # \\" in messages[0], messages[0])
    expect("once", set(messages[1:]) == {f"does not build: see the check '{suites[5].__iter__().__next__().name}'"}, messages[1:])


def tap_lines(name):
    from tap.parser import Parser
    return list(Parser().parse_file(path(name)))


def tap_results():
    labs = load("all.json")["labs"]
    lines = tap_lines("all.tap")
    expect("version", lines[0].category == "version" and lines[0].version == 14, lines[0])
    expect("plan", [line.expected_tests for line in lines if line.category == "plan"] == [len(LABS)], lines)
    results = [line for line in lines if line.category == "test"]
    expect("one a lab", [r.number for r in results] == list(range(1, len(LABS) + 1)), results)
    for result, lab in zip(results, labs):
        expect(f"lab {lab['number']}", (result.ok, result.skip)
               == (lab["state"] == "not started" or lab["points"] == lab["of"], lab["state"] == "not started"), str(result))
        expect("description", lab["title"] in result.description, result.description)
    expect("full marks", all(r.ok for r in tap_lines("full.tap") if r.category == "test"), "full.tap")


def tap_subtests():
    """A subtest is a TAP document indented by four blanks, which the same parser reads."""
    import yaml
    from tap.parser import Parser
    with open(path("all.tap"), encoding="utf-8") as stream:
        indented = [line[4:] for line in stream.read().split("\n") if line.startswith("    ")]
    checks = [check for lab in load("all.json")["labs"] if lab["state"] != "not started" for check in lab["checks"]]
    results = [line for line in Parser().parse_text("TAP version 13\n" + "\n".join(indented) + "\n") if line.category == "test"]
    expect("results", [r.ok for r in results] == [c["status"] == "passed" for c in checks], len(results))
    blocks = "\n".join(indented).split("  ---\n")[1:]
    documents = [yaml.safe_load(block.split("\n  ...")[0]) for block in blocks]
    failed = [c for c in checks if c["status"] != "passed"]
    expect("YAML", [(d["points"], d["of"]) for d in documents] == [(0, c["of"]) for c in failed], documents)
    expect("messages", all(c.get("reason", d["message"]) == d["message"] for c, d in zip(failed, documents)), documents)


def isolation():
    import junitparser
    report = load("full.json")["isolation"]
    expect("the verdict", report == "the ranks ran in a sandbox" or report.startswith("no sandbox here ("), report)
    bare = "no sandbox here (switched off): the ranks ran with resource limits only"
    for name, sentence in (("full", report), ("all", load("all.json")["isolation"]), ("bare", bare)):
        suites = junitparser.JUnitXml.fromfile(path(f"{name}.junit"))
        texts = {form: open(path(f"{name}.{form}"), encoding="utf-8").read().splitlines() for form in ("tap", "autolab")}
        said = {"json": load(f"{name}.json")["isolation"], "github": load(f"{name}.github")["isolation"],
                "gradescope": load(f"{name}.gradescope")["output"].splitlines()[-1],
                "junit": {p.value for suite in suites for p in suite.properties() if p.name == "isolation"}.pop(),
                "tap": texts["tap"][3].removeprefix("# "), "autolab": [line for line in texts["autolab"][:-1] if line == sentence][0]}
        expect(name, set(said.values()) == {sentence}, said)
    expect("before the first lab", load("cut-INT.json")["isolation"] in (report, "no ranks were run"), load("cut-INT.json")["isolation"])


def clean():
    for name in sorted(glob.glob(path("all.*"))):
        with open(name, "rb") as stream:
            text = stream.read().decode("utf-8")
        bad = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or c in "\ufffe\uffff"]
        expect(name, not bad, bad)
        expect("the student's words are there", "bad" in text, name)


def interrupted():
    for signal in ("INT", "TERM", "KILL"):
        verdict = load(f"cut-{signal}.json")
        states = [lab["state"] for lab in verdict["labs"]]
        expect(signal, not verdict["complete"] and states[0] == "graded" and states[-1] == "not run", states)
        expect("points", verdict["points"] == sum(lab["points"] for lab in verdict["labs"]) >= 9, verdict["points"])


def pipelines():
    import yaml
    root = os.environ["ROOT"]
    with open(f"{root}/.github/workflows/test.yml", encoding="utf-8") as stream:
        github_job = yaml.safe_load(stream)
    with open(f"{root}/.gitlab-ci.yml", encoding="utf-8") as stream:
        gitlab_job = yaml.safe_load(stream)["test"]
    expect("permissions", github_job["permissions"] == {"contents": "read"}, github_job)
    steps = github_job["jobs"]["test"]["steps"]
    kept = next(step["with"]["path"].split() for step in steps if step.get("uses", "").startswith("actions/upload-artifact@"))
    for paths, commands in ((kept, [step.get("run", "") for step in steps]), (gitlab_job["artifacts"]["paths"], gitlab_job["script"])):
        expect("documents", paths == ["build/docs", "build/slides/*.pdf"] and "make docs slides" in commands, paths)
    report = gitlab_job["artifacts"]["reports"]["junit"]
    expect("JUnit", f"make grade SOLUTION=1 FORMAT=junit OUT={report}" in gitlab_job["script"], report)


def main():
    if sys.argv[2:] != ["inside"]:
        enter_environment()
    tests = (json_verdict, gradescope, autolab, github, junit_schema, junit_results, tap_results, tap_subtests, isolation, clean, interrupted, pipelines)
    for sentence, test in zip(SENTENCES, tests):
        try:
            test()
            print(f"ok - {sentence}")
        except Exception as error:  # any error of a parser
            print(f"not ok - {sentence}\n    {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
