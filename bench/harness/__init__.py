"""What the programs of bench/ share: graphs, processes, the machine, tables."""
