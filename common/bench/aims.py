"""The kit's performance targets."""

# The kit's tokens per second divided by PyTorch 1.13's. For newer versions, the target is 1 in
# every row.
RATIOS = {"2x128 serial": 2.2, "2x128 tp2": 3.7, "2x128 2x2": 4, "6x256 serial": 1.6, "6x256 tp2": 2.4, "6x256 dp2": 2,
          "base serial": 1.15, "base tp2": 1.45, "base dp2": 1.9, "base tp2 bf16": 1.5}
PER_CENT_OF_PEAK = {"base serial": 85}
MEGABYTES = {"base tp2": 1200}
SPEED_UP = {"base tp2": 1.85, "base dp2": 1.85}  # of two ranks over one
# On one H200, in bf16.
MFU = {"large-512 one rank bf16": 45}  # per cent
LABS_OVER_SERIAL = 1.02  # a step of the labs' stack on one rank, relative to the serial stack
IDLE = 5  # per cent of a step
VERDICT = {"lab 6": 0.6, "part 1, nothing edited": 12}  # seconds
ANY_VERDICT = 1
PIPELINE_SPEED, PIPELINE_MEMORY = 1.5, 0.5  # relative to PyTorch's
TOKENIZER = 1.5  # relative to Hugging Face's speed
LANGUAGE = 1.5  # tokens per second relative to PyTorch's, with less memory


def ratio(name, who):
    """The target of a step's row: how many times as fast as this PyTorch, or None."""
    return RATIOS.get(name) if who.startswith("PyTorch 1.") else 1


def judged(reached):
    return "" if reached else "missed"


def most(figure, aim):
    """The notes of a figure with an upper limit."""
    return {"target": aim, "": judged(figure <= aim)}


def least(figure, aim):
    """The notes of a figure with a lower limit, or without one: None."""
    return {"target": "", "": ""} if aim is None else {"target": aim, "": judged(figure >= aim)}
