"""The nine workloads behind the speed table of docs/performance.md, one file each."""

from workloads import (
    w1_mlp,
    w2_tiny,
    w3_lenet,
    w4_resnet18,
    w5_mobilenetv2,
    w6_bert_mini,
    w7_gpt_nano,
    w8_lstm,
    w9_resnet50,
)

WORKLOADS = {m.WORKLOAD.id: m.WORKLOAD for m in (w1_mlp, w2_tiny, w3_lenet, w4_resnet18, w5_mobilenetv2, w6_bert_mini,
                                                 w7_gpt_nano, w8_lstm, w9_resnet50)}
