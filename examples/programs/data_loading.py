"""A dataset of one's own, transforms, samplers, collate functions and worker processes."""

import strata as torch
from strata.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)


class Shapes(Dataset):
    """Images of one bright row each, and which row it is."""

    def __init__(self, count, transform=None):
        self.count, self.transform = count, transform

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        image = torch.zeros(1, 4, 4)
        image[0, i % 4] = 1 + i / 10
        return {"image": self.transform(image) if self.transform else image, "label": i % 4, "name": f"shape {i}"}


class Count(IterableDataset):
    def __init__(self, end):
        self.end = end

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.end, step))


def words(batch):
    """Texts of different lengths, filled up."""
    longest = max(len(text) for text in batch)
    return torch.tensor([[ord(c) for c in text] + [0] * (longest - len(text)) for text in batch])


def main():
    data = Shapes(10, transform=lambda image: image.flip(-2))
    for workers in (0, 2):
        loader = DataLoader(data, batch_size=4, num_workers=workers)
        for batch in loader:
            print(workers, batch["image"].shape, batch["label"], batch["name"][0], f"{batch['image'].sum().item():.2f}")
    print(len(loader), next(iter(DataLoader(data, batch_size=3, shuffle=False, drop_last=True)))["label"])

    loader = DataLoader(Count(7), batch_size=2, num_workers=2)
    print(sorted(int(v) for batch in loader for v in batch))

    pairs = TensorDataset(torch.arange(6), torch.arange(6.0) ** 2)
    print(ConcatDataset([pairs, Subset(pairs, [1, 3])])[7], len(ConcatDataset([pairs, pairs])))
    first, second = random_split(pairs, [4, 2], generator=torch.Generator().manual_seed(0))
    print(len(first), len(second), sorted([int(x) for x, _ in first] + [int(x) for x, _ in second]))
    sampler = WeightedRandomSampler([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], num_samples=4, replacement=True)
    print(next(iter(DataLoader(pairs, batch_size=4, sampler=sampler))))
    print(next(iter(DataLoader(["a", "bcd", "ef"], batch_size=3, collate_fn=words))))
    shuffled = DataLoader(pairs, batch_size=6, shuffle=True, generator=torch.Generator().manual_seed(1))
    x, y = next(iter(shuffled))
    print(torch.equal(x.float() ** 2, y), sorted(x.tolist()))


if __name__ == "__main__":
    main()
