"""PyTorch's images/s for the same step as psring's, on the same device: keras-cnn, one process,
float32, SGD with momentum, batches gathered from a data set in the device's memory. Prints a line per
mode, the median of five runs: "eager 41234" images/s and, on a GPU, "graph 81234" (a CUDA graph).

With --turns it prints "ready" and its version. Then it answers each line on standard input, such as
"eager FP32" or "graph TF32", with the images/s of one run, until "end".

usage: pytorch.py [--device cuda | cpu] [--batch N] [--steps N] [--threads N] [--turns]
"""
import argparse
import statistics
import sys
import time

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--threads", type=int, default=1, help="on the CPU")
parser.add_argument("--turns", action="store_true", help="answers what standard input asks for")
options = parser.parse_args()
BATCH, STEPS, DEVICE = options.batch, options.steps, options.device
IMAGES, RUNS = 60000, 5


def keras_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class Training:
    """One step reads its samples' numbers from `samples`, so that a graph can be replayed."""

    def __init__(self):
        self.model = keras_cnn().to(DEVICE).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, foreach=True)
        self.loss = nn.CrossEntropyLoss()
        self.images = torch.randn(IMAGES, 1, 28, 28, device=DEVICE)
        self.labels = torch.randint(10, (IMAGES,), device=DEVICE)
        self.samples = torch.zeros(BATCH, dtype=torch.long, device=DEVICE)
        self.order = torch.randperm(IMAGES, device=DEVICE)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.images[self.samples]), self.labels[self.samples]).backward()
        self.optimizer.step()

    def run(self, step):
        """Images/s of STEPS steps."""
        synchronize()
        start = time.perf_counter()
        for i in range(STEPS):
            at = i * BATCH % (IMAGES - BATCH)
            self.samples.copy_(self.order[at:at + BATCH])
            step()
        synchronize()
        return STEPS * BATCH / (time.perf_counter() - start)


def graph_of(training):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(11):
            training.step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step()
    return graph


def set_precision(precision):
    """FP32 everywhere, as psring without --tf32, or products in TF32."""
    torch.backends.cudnn.allow_tf32 = precision == "TF32"
    torch.backends.cuda.matmul.allow_tf32 = precision == "TF32"


def prepared(mode, precision):
    """A training and its step after a warm-up run. A graph keeps its precision of recording."""
    set_precision(precision)
    training = Training()
    step = training.step if mode == "eager" else graph_of(training).replay
    training.run(step)
    return training, step


def answer():
    ready = {}
    print("ready", torch.__version__, flush=True)
    for line in iter(sys.stdin.readline, ""):
        if line.strip() == "end":
            return
        mode, precision = line.split()
        if (mode, precision) not in ready:
            ready[mode, precision] = prepared(mode, precision)
        set_precision(precision)
        training, step = ready[mode, precision]
        print(round(training.run(step)), flush=True)


def main():
    if DEVICE == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.benchmark = True
    if options.turns:
        answer()
        return
    for mode in ("eager", "graph") if DEVICE == "cuda" else ("eager",):
        training, step = prepared(mode, "FP32")
        print(mode, round(statistics.median(training.run(step) for _ in range(RUNS))), flush=True)


if __name__ == "__main__":
    main()
