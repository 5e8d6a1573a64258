"""Counting a model's parameters, on the meta device, where it costs no memory.

The model is ResNet-18 as torchvision builds it, written out here.
"""
from collections import Counter

import matplotlib.pyplot as plt
import torch
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions and a way around them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x):
        way_around = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(x)) + way_around).relu()


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


class TinyLanguageModel(nn.Module):
    """An embedding whose weight also serves as the output layer."""

    def __init__(self, words=50_000, width=256):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.body = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight  # tied: one Parameter, two names

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens))[0])


def count(model):
    """Elements and bytes of a model, as a dictionary of ints.

    A tied weight is counted once.
    Raises ValueError for a lazy module that has not seen its first batch.
    """
    lazy = [name for name, p in model.named_parameters() if nn.parameter.is_lazy(p)]
    if lazy:
        raise ValueError(f"no shape yet, run a batch first: {', '.join(lazy)}")
    parameters, buffers = list(model.parameters()), list(model.buffers())
    return {
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "frozen": sum(p.numel() for p in parameters if not p.requires_grad),
        "buffers": sum(b.numel() for b in buffers),
        "bytes": sum(t.nbytes for t in parameters + buffers),
    }


def bytes_by_dtype(model):
    """Bytes of parameters and buffers for each dtype."""
    sizes = Counter()
    for tensor in [*model.parameters(), *model.buffers()]:
        sizes[tensor.dtype] += tensor.numel() * tensor.element_size()
    return dict(sizes)


with torch.device("meta"):  # shapes and dtypes without any data
    model = ResNet18()
    language_model = TinyLanguageModel()

total = count(model)
print(f"ResNet-18 on {model.fc.weight.device}")
print(f"  {total['trainable']:,} parameters, {total['buffers']:,} elements in buffers")
images = torch.empty(8, 3, 224, 224, device="meta")
print(f"  8 images give {tuple(model(images).shape)}")

print("\nmodule       parameters  share   buffers")
by_module = {name: count(module) for name, module in model.named_children()}
for name, part in by_module.items():
    share = part["trainable"] / total["trainable"]
    print(f"  {name:8} {part['trainable']:12,} {share:6.1%} {part['buffers']:9,}")

model.requires_grad_(False)
model.fc.requires_grad_(True)
frozen = count(model)
print("\nonly fc trains")
print(f"  {frozen['trainable']:,} trainable, {frozen['frozen']:,} frozen")

print("\nbytes by dtype")
for dtype in (torch.float32, torch.bfloat16):
    sizes = bytes_by_dtype(model.to(dtype))
    listed = ", ".join(f"{kind} {size:,}" for kind, size in sizes.items())
    print(f"  model.to({dtype}): {listed}")

names = [p for _, p in language_model.named_parameters(remove_duplicate=False)]
by_address = {p.data_ptr(): p.numel() for p in language_model.parameters()}
print("\ntied embedding and head")
print(f"  parameters()         {count(language_model)['trainable']:12,}")
print(f"  every name           {sum(p.numel() for p in names):12,}  one matrix twice")
print(f"  keyed by data_ptr()  {sum(by_address.values()):12,}  all at {set(by_address)}")

fig, ax = plt.subplots(figsize=(5.5, 2.6), layout="constrained")
shown = {name: part["trainable"] / 1e6 for name, part in by_module.items()}
shown = {name: millions for name, millions in shown.items() if millions}
ax.barh(list(shown), shown.values(), color="#2a7fba")
ax.invert_yaxis()
ax.set_xlabel("parameters (millions)")
plt.show()
