"""PyTorch, eager mode, default optimizer and memory format."""

from peers.base import Peer


class TorchEager(Peer):
    title = "PyTorch eager"
    package = "torch"
    environment = "torch"
    fused, channels_last = False, False

    def prepare(self, workload):
        import torch

        from workloads.torch_layers import Network, cross_entropy, optimizer_of

        torch.set_num_threads(self.threads)
        torch.manual_seed(0)
        self.x, self.labels = (torch.from_numpy(a) for a in workload.data())
        self.network = Network(workload).train()
        if self.channels_last and self.x.dim() == 4:
            self.network.to(memory_format=torch.channels_last)
            self.network.bind()
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        more = {"fused": True} if self.fused else {}
        self.optimizer = optimizer_of(workload, list(self.network.parameters()), **more)
        self.loss = lambda x, labels: cross_entropy(self.network(x), labels)

    def step(self, n):
        optimizer, loss_of, x, labels = self.optimizer, self.loss, self.x, self.labels
        for _ in range(n):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(x, labels)
            loss.backward()
            optimizer.step()
        return loss.item()
