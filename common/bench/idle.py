"""Computes how long a GPU was idle, from Nsight Systems' (nsys) record of a run."""
import csv
import shutil
import subprocess

from rows import _, give_up, run_alone


def nsys():
    """The words of a recording command, to be followed by the file and the command to record. None
    without nsys."""
    program = shutil.which("nsys")
    return [program, "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "-o"] if program else None


def busy(spans, begin):
    """The time after `begin` that at least one of the spans (first, last) covers."""
    covered, reached = 0, begin
    for first, last in sorted(spans):
        covered += max(0, last - max(first, reached))
        reached = max(reached, last)
    return covered


def spans_in(text):
    """[(begin, end), ...] in ns of the kernels and copies in nsys's CSV, which may follow other
    output."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.replace('"', "").startswith("Start (ns)")), None)
    if head is None:
        return []
    return [(int(row["Start (ns)"]), int(row["Start (ns)"]) + int(row["Duration (ns)"])) for row in csv.DictReader(lines[head:])
            if row["Start (ns)"] and row["Duration (ns)"]]


def share(program, record, seconds):
    """The percentage of a run's last `seconds` in which neither a kernel nor a copy ran."""
    done = subprocess.run([program, "stats", "--report", "cuda_gpu_trace", "--format", "csv", "--force-export=true", "--output", "-", record],
                          capture_output=True, text=True, check=False)
    spans = spans_in(done.stdout)
    if done.returncode or not spans:
        give_up(_("nsys recorded no kernels: ") + done.stderr.strip()[-300:], run_alone((program, "stats", "--report", "cuda_gpu_trace", record)))
    end, window = max(last for _, last in spans), 1e9 * seconds
    return 100 * (1 - busy(spans, end - window) / window)
