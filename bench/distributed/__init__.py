"""Several ranks beside PyTorch's DistributedDataParallel: workloads with an open batch, the processes, the contest."""
