"""Trains the table of word pieces on requests and the tools that serve them. README.md says how to run it."""

import argparse
import json
import re
import struct
from pathlib import Path

import numpy as np
import torch

EPOCHS = 10
RATE = 3e-3
# Large against most gradients, so that rare pieces move less than frequent ones.
EPSILON = 1e-4
SHARPNESS = 15.0
# Other toolboxes whose tools a request is also compared with.
STRANGERS = 3
# As in `weights.rs`.
FIRST_SENTENCE, NAME, VALUE, NUMBER = 0.1, 0.1, 0.2, 0.7


class Table:
    """The vocabulary and the rows of a table in its binary form."""

    def __init__(self, path):
        data = path.read_bytes()
        rows, width = struct.unpack("<II", data[4:12])
        scales = np.frombuffer(data, "<f4", rows, 12)
        numbers = np.frombuffer(data, "i1", rows * width, 12 + 4 * rows).reshape(rows, width)
        self.rows = torch.tensor(scales[:, None] * numbers.astype(np.float32))
        pieces = path.with_suffix("").with_suffix(".vocab.txt").read_text("utf-8").split("\n")
        self.ids = {piece: at for at, piece in enumerate(pieces)}

    def split(self, word):
        """The longest pieces of a word, or none if some of it is in no piece."""
        ids, at = [], 0
        while at < len(word):
            mark = "##" if at else ""
            ends = range(len(word), at, -1)
            end = next((end for end in ends if mark + word[at:end] in self.ids), None)
            if end is None:
                return []
            ids.append(self.ids[mark + word[at:end]])
            at = end
        return ids

    def bag(self, text, weigh=lambda chunk: 1.0):
        """Pieces of a text with the weights of the chunks they stand in."""
        bag = []
        for chunk in text.split():
            for token in re.findall(r"[^\W_]+|[^\w\s]", chunk.lower()):
                bag += [(piece, weigh(chunk)) for piece in self.split(token)]
        return bag


def value(chunk):
    """The weight of a chunk of a request: values name the subject and not the action."""
    chunk = chunk.strip("\"'`,!?();:.")
    if re.search(r"://|^www\.|.@.+\.|^[./~]+/|/.*/|\w{2}\.[a-z]\w*$|^[A-Za-z]{1,8}[-_#]\d", chunk):
        return VALUE
    return NUMBER if re.match(r"[$€£#]?\d", chunk) else 1.0


def split_name(name):
    name = re.sub(r"[_\-./:]", " ", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)


class Bags:
    """The directions of many texts at once."""

    def __init__(self, bags):
        flat = [(piece, weight, at) for at, bag in enumerate(bags) for piece, weight in bag]
        self.count = len(bags)
        self.ids = torch.tensor([it[0] for it in flat])
        self.weights = torch.tensor([float(it[1]) for it in flat])
        self.of = torch.tensor([it[2] for it in flat])

    def directions(self, rows):
        sums = torch.zeros(self.count, rows.shape[1])
        return unit(sums.index_add(0, self.of, rows[self.ids] * self.weights[:, None]))


def unit(vectors):
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-9)


class Toolbox:
    """The tools of one toolbox, and the requests that one of them serves."""

    def __init__(self, table, tools, requests):
        names = [tool["id"] for tool in tools]
        spoken = [split_name(tool["name"]) for tool in tools]
        said = [tool["description"] for tool in tools]
        first = [re.split(r"(?<=[.!?\n])", text)[0] for text in said]
        whole = [f"{name}. {text}" for name, text in zip(spoken, said)]
        self.whole, self.first, self.name = (
            Bags([table.bag(text) for text in texts]) for texts in (whole, first, spoken)
        )
        requests = [it for it in requests if it["action"] == "tool"]
        self.requests = Bags([table.bag(it["query"], value) for it in requests])
        self.right = torch.tensor([[float(name in it["gold"]) for name in names] for it in requests])

    def bags(self):
        return self.whole, self.first, self.name, self.requests

    def tools(self, rows):
        first, name = self.first.directions(rows), self.name.directions(rows)
        return unit(self.whole.directions(rows) + FIRST_SENTENCE * first + NAME * name)


def loss(cosines, right):
    chances = torch.log_softmax(SHARPNESS * cosines, 1)[:, : right.shape[1]]
    return -torch.logsumexp(chances + torch.log(right + 1e-30), 1).mean()


def train(table, boxes):
    """Moves the rows of the pieces that occur. The others stay as they are."""
    random = np.random.default_rng(0)
    used = torch.unique(torch.cat([bags.ids for box in boxes for bags in box.bags()]))
    places = torch.full((len(table.rows),), -1)
    places[used] = torch.arange(len(used))
    for bags in (bags for box in boxes for bags in box.bags()):
        bags.ids = places[bags.ids]
    rows = table.rows[used]
    moved = torch.nn.Parameter(torch.zeros_like(rows))
    optimizer = torch.optim.Adam([moved], betas=(0.9, 0.99), eps=EPSILON)
    for step in range(EPOCHS * len(boxes)):
        if step % len(boxes) == 0:
            order = random.permutation(len(boxes))
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / (EPOCHS * len(boxes)))
        box = boxes[order[step % len(boxes)]]
        now = rows + moved
        requests = box.requests.directions(now)
        own = requests @ box.tools(now).T
        others = [boxes[at] for at in random.choice(len(boxes), STRANGERS, replace=False)]
        strange = [requests @ other.tools(now).T for other in others if other is not box]
        total = loss(own, box.right) + loss(torch.cat([own, *strange], 1), box.right)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    table.rows[used] = (rows + moved).detach()


def write(rows, path):
    rows = rows.numpy()
    scales = np.maximum(np.abs(rows).max(1), 1e-9) / 127
    numbers = np.rint(rows / scales[:, None]).clip(-127, 127).astype("i1")
    header = b"TSE1" + struct.pack("<II", *rows.shape)
    path.write_bytes(header + scales.astype("<f4").tobytes() + numbers.tobytes())


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("table", type=Path, help="the table to begin with, its .vocab.txt beside it")
    arguments.add_argument("data", type=Path, help="a folder with `train` and `toolsets`")
    arguments.add_argument("output", type=Path)
    arguments.add_argument("--without", default="^$", help="toolboxes to leave out (a regular expression)")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table = Table(options.table)
    lines = lambda path: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    sets = sorted((options.data / "train").glob("made-*.jsonl"))
    sets = [path for path in sets if not re.search(options.without, path.stem)]
    box = lambda path: Toolbox(table, lines(options.data / "toolsets" / path.name), lines(path))
    boxes = [box(path) for path in sets]
    train(table, boxes)
    write(table.rows, options.output)
    print(f"{len(boxes)} toolboxes, {sum(len(box.right) for box in boxes)} requests")


if __name__ == "__main__":
    main()
