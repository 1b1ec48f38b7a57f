"""Models of `transformers` with random weights, built from a config, through from_torch: 5 steps here against
PyTorch's, then the next loss of the original class with the weights that came back, and of what to_torch made.

    pip install transformers
    python tests/pytorch/hugging_face.py [bert gpt2 vit t5 bart llama]
"""

import sys
import time
import warnings

import numpy as np
import torch
import transformers as tr

import onnxtrain as ot

warnings.filterwarnings("ignore")
IDS = torch.randint(3, 90, (2, 10), generator=torch.Generator().manual_seed(0))
SMALL = dict(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
)


def classes(out, target):
    return torch.nn.functional.cross_entropy(out.logits, target)


def own(out, _):
    return out.loss


def bert():
    mask = torch.ones_like(IDS)
    mask[0, 7:] = 0
    config = tr.BertConfig(**SMALL, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return (
        tr.BertForSequenceClassification(config),
        {"input_ids": IDS, "attention_mask": mask},
        torch.tensor([0, 2]),
        classes,
    )


def gpt2():
    config = tr.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return tr.GPT2LMHeadModel(config), {"input_ids": IDS, "labels": IDS}, None, own


def vit():
    config = tr.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=16,
        patch_size=4,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return (
        tr.ViTForImageClassification(config),
        {"pixel_values": torch.randn(2, 3, 16, 16)},
        torch.tensor([0, 2]),
        classes,
    )


def t5():
    config = tr.T5Config(
        vocab_size=99,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    return tr.T5ForConditionalGeneration(config), {"input_ids": IDS, "labels": IDS[:, :6].contiguous()}, None, own


def bart():
    config = tr.BartConfig(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=32,
        dropout=0.0,
    )
    return tr.BartForConditionalGeneration(config), {"input_ids": IDS, "labels": IDS[:, :6].contiguous()}, None, own


def llama():
    return (
        tr.LlamaForCausalLM(tr.LlamaConfig(**SMALL, num_key_value_heads=2)),
        {"input_ids": IDS, "labels": IDS},
        None,
        own,
    )


def run(name):
    torch.manual_seed(0)
    module, inputs, targets, loss = globals()[name]()
    module.train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    t = time.time()
    model = ot.from_torch(module, inputs, targets, loss, optimizer)
    seconds = time.time() - t
    wanted = set(model.inputs) | {i["name"] for i in model.info["training"][0]["inputs"]}
    feeds = {n: v.numpy() for n, v in {**inputs, "target": targets}.items() if n in wanted}
    trainer = ot.Trainer(model)
    ours, theirs = [trainer.step(feeds).loss for _ in range(5)], []
    for _ in range(5):
        optimizer.zero_grad()
        value = loss(module(**inputs), targets)
        value.backward()
        optimizer.step()
        theirs.append(float(value.detach()))
    # and back: the original class takes the weights, and the graph in PyTorch goes on
    torch.manual_seed(1)
    fresh = globals()[name]()[0].train()
    fresh.load_state_dict(ot.torch_state_dict(trainer), strict=True)
    with torch.no_grad():
        theirs += [float(loss(module(**inputs), targets))] * 2
        ours += [float(loss(fresh(**inputs), targets))]
    ours += [ot.to_torch(trainer).step(feeds)]
    return float(np.max(np.abs(np.array(ours) / theirs - 1))), seconds


if __name__ == "__main__":
    tr.logging.set_verbosity_error()
    bad = 0
    for name in sys.argv[1:] or ["bert", "gpt2", "vit", "t5", "bart", "llama"]:
        try:
            d, seconds = run(name)
            print(
                f"{name:8s} largest relative difference of a loss {d:.1e}   {seconds:.1f} s"
                f"{'' if d < 1e-5 else '  DIFFERS'}",
                flush=True,
            )
            bad += not d < 1e-5
        except ot.Error as e:
            print(f"{name:8s} {e}", flush=True)
            bad += 1
    sys.exit(bad > 0)
