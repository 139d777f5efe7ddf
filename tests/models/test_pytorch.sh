#!/usr/bin/env bash
# test_pytorch.sh OPTIM_STEPS: the optimizers take the same steps as PyTorch's. Skipped if PyTorch is not installed.
set -euo pipefail

python3 -c 'import torch' 2>/dev/null || { echo "test_pytorch: skipped: python3 has no torch here"; exit 77; }
"$1" | python3 -c '
import sys, torch
cases = {
    "sgd": (torch.optim.SGD, dict(momentum=.9)),
    "sgd-decay": (torch.optim.SGD, dict(momentum=.5, weight_decay=.01)),
    "nesterov": (torch.optim.SGD, dict(momentum=.9, nesterov=True, weight_decay=.01)),
    "adagrad": (torch.optim.Adagrad, dict(weight_decay=.01)),
    "adadelta": (torch.optim.Adadelta, dict(rho=.95, eps=1e-7, weight_decay=.01)),
    "adam": (torch.optim.Adam, dict()),
    "adam-decay": (torch.optim.Adam, dict(betas=(.8, .9), weight_decay=.01)),
}
for line in sys.stdin:
    name, *found = line.split()
    kind, options = cases.pop(name)
    p = torch.tensor([(i + 1) / 4 for i in range(6)], requires_grad=True)
    optimizer = kind([p], lr=.125, **options)
    for step in range(20):
        p.grad = torch.tensor([((i * 7 + step * 5) % 11 - 4) / 8 for i in range(6)])
        optimizer.param_groups[0]["lr"] = .125 if step < 10 else .03125
        optimizer.step()
    worst = max(abs(float(a) - b) for a, b in zip(found, p.tolist()))
    print(f"{name}: {worst:.1e} from PyTorch {torch.__version__}")
    if not worst <= 2e-6:
        sys.exit(f"{name}: found {found}, expected {p.tolist()}")
if cases:
    sys.exit(f"no line of {list(cases)}")
'
