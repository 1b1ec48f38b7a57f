"""Files of both exporters of PyTorch: networks of our own and transformers' with random weights."""

import io

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Lambda(nn.Module):
    """A function of modules and inputs."""

    def __init__(self, f, **modules):
        super().__init__()
        self.m = nn.ModuleDict(modules)
        self.f = f

    def forward(self, *x):
        return self.f(self.m, *x)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = kind(8, 6, batch_first=True, **options)
        self.head = nn.LazyLinear(4)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


class Steps(nn.Module):
    """A loop and a branch that depend on data (for torch.jit.script)."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x):
        h = x
        for _ in range(int(x.size(0))):
            h = torch.tanh(self.cell(h))
        if h.sum() > 0:
            h = h * 2
        else:
            h = h - 1
        return h


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.GELU())
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = torch.cat([a, self.up(self.deep(a))], 1)
        return self.out(F.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False))


class First(nn.Module):
    def __init__(self, net, **fixed):
        super().__init__()
        self.net, self.fixed = net, fixed

    def forward(self, x):
        return self.net(x, return_dict=False, **self.fixed)[0]


def image(size=32):
    return (torch.randn(2, 3, size, size),)


def rows(*shape):
    return (torch.randn(*shape),)


def tokens(length=7):
    return (torch.randint(0, 20, (2, length)),)


def sampled(m, x):
    grid = F.affine_grid(torch.eye(2, 3).expand(2, 2, 3) * 0.7, [2, 4, 9, 9], align_corners=False)
    return F.grid_sample(m["c"](x), grid, align_corners=False)


def layers():
    """{name: (module, inputs)}"""
    linear = nn.Linear(6, 4)
    conv = nn.Conv2d(3, 4, 3, padding=1)
    return {
        "unet": (UNet(), image()), "lstm": (Recurrent(nn.LSTM, num_layers=2, bidirectional=True), tokens()),
        "gru": (Recurrent(nn.GRU), tokens()), "rnn": (Recurrent(nn.RNN, nonlinearity="relu"), tokens()),
        "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2,
                                          enable_nested_tensor=False), rows(2, 5, 8)),
        "decoder": (Lambda(lambda m, x: m["d"](x, x), d=nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)),
                    rows(2, 5, 8)),
        "attention": (Lambda(lambda m, x: m["a"](x, x, x)[0], a=nn.MultiheadAttention(8, 2, batch_first=True)),
                      rows(2, 5, 8)),
        "conv1d": (nn.Sequential(nn.Conv1d(3, 6, 5, dilation=2), nn.InstanceNorm1d(6, affine=True), nn.ELU(),
                                 nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(6, 2)), rows(2, 3, 40)),
        "conv3d": (nn.Sequential(nn.Conv3d(1, 4, 3), nn.BatchNorm3d(4), nn.MaxPool3d(2), nn.Flatten(),
                                 nn.LazyLinear(3)), rows(2, 1, 8, 8, 8)),
        "pixel_shuffle": (nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(3)), image(12)),
        "depthwise": (nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.Hardswish(), nn.Conv2d(6, 4, 1),
                                    nn.AdaptiveMaxPool2d(1), nn.Flatten()), image(16)),
        "pools": (nn.Sequential(conv, nn.AvgPool2d(3, 2, ceil_mode=True, count_include_pad=False, padding=1),
                                nn.MaxPool2d(2, ceil_mode=True), nn.LPPool2d(2, 2)), image(33)),
        "interpolate_cubic": (Lambda(lambda m, x: F.interpolate(m["c"](x), (20, 25), mode="bicubic"), c=conv), image()),
        "interpolate_nearest": (Lambda(lambda m, x: F.interpolate(m["c"](x), scale_factor=1.5), c=conv), image()),
        "einsum": (Lambda(lambda m, x: torch.einsum("bij,bkj->bik", m["l"](x), m["l"](x)), l=linear), rows(2, 5, 6)),
        "scatter": (Lambda(lambda m, x: torch.zeros(2, 9).scatter_add(1, torch.arange(4).expand(2, 4) * 2, m["l"](x)),
                           l=linear), rows(2, 6)),
        "gather_topk": (Lambda(lambda m, x: torch.topk(m["l"](x), 2)[0].cumsum(1), l=linear), rows(3, 6)),
        "index_put": (Lambda(lambda m, x: torch.index_put(m["l"](x), (torch.tensor([0, 2]),), torch.ones(4)),
                             l=linear), rows(3, 6)),
        "masked": (Lambda(lambda m, x: m["l"](x).masked_fill(x[:, :4] > 0, -1e4).softmax(-1), l=linear), rows(3, 6)),
        "where_norms": (Lambda(lambda m, x: F.normalize(m["l"](x), dim=1) + m["l"](x).std(1, keepdim=True) +
                               torch.logsumexp(m["l"](x), 1, keepdim=True), l=linear), rows(3, 6)),
        "cosine": (Lambda(lambda m, x: F.cosine_similarity(m["l"](x), m["l"](x.flip(0)), dim=1), l=linear), rows(3, 6)),
        "rms_norm": (nn.Sequential(linear, nn.RMSNorm(4), nn.Linear(4, 2)), rows(3, 6)),
        "glu_mish": (nn.Sequential(linear, nn.GLU(), nn.Mish(), nn.Linear(2, 2), nn.Softplus()), rows(3, 6)),
        "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)), rows(3, 6)),
        "spectral": (nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)).eval(), nn.Tanh()),
                     rows(3, 6)),
        "embedding_bag": (nn.Sequential(nn.EmbeddingBag(20, 6, mode="mean"), linear), tokens()),
        "bilinear": (Lambda(lambda m, x: m["b"](x, x), b=nn.Bilinear(6, 6, 3)), rows(3, 6)),
        "pad_modes": (Lambda(lambda m, x: F.pad(F.pad(m["c"](x), (1, 2, 3, 1), mode="reflect"), (2, 2, 1, 1),
                                                mode="replicate"), c=conv), image(12)),
        "unfold": (Lambda(lambda m, x: m["c"](x).unfold(2, 4, 2).mean(-1), c=conv), image(12)),
        "roll_flip": (Lambda(lambda m, x: torch.roll(m["c"](x), (1, -2), (2, 3)).flip(2), c=conv), image(12)),
        "grid_sample": (Lambda(sampled, c=conv), image(12)),
        "matmul_chain": (Lambda(lambda m, x: (m["l"](x) @ m["l"](x).transpose(1, 2)).tril().amax(-1), l=linear),
                         rows(2, 5, 6)),
        "two_outputs": (Lambda(lambda m, x: (m["l"](x), m["k"](x).sigmoid()), l=linear, k=nn.Linear(6, 2)), rows(3, 6)),
    }


def vision():
    import transformers as t

    four = {"hidden_sizes": [8, 16, 16, 32], "depths": [1] * 4}

    def net(model, config):
        return lambda: (First(model(config)).eval(), image(64))

    return {
        "resnet": net(t.ResNetForImageClassification, t.ResNetConfig(embedding_size=8, layer_type="basic", **four)),
        "mobilenet": net(t.MobileNetV2ForImageClassification, t.MobileNetV2Config(depth_multiplier=0.35)),
        "convnext": net(t.ConvNextForImageClassification, t.ConvNextConfig(**four)),
        "regnet": net(t.RegNetForImageClassification, t.RegNetConfig(embedding_size=8, groups_width=4, **four)),
        "efficientnet": net(t.EfficientNetForImageClassification, t.EfficientNetConfig(
            width_coefficient=0.25, depth_coefficient=0.25, hidden_dim=320)),
        "swin": net(t.SwinForImageClassification, t.SwinConfig(image_size=64, patch_size=4, embed_dim=8, depths=[1, 2],
                                                               num_heads=[1, 2], window_size=4)),
        "mobilevit": net(t.MobileViTForImageClassification, t.MobileViTConfig(
            hidden_sizes=[8, 16, 16], neck_hidden_sizes=[8, 8, 16, 16, 16, 16, 32], num_attention_heads=2,
            image_size=64)),
        "poolformer": net(t.PoolFormerForImageClassification, t.PoolFormerConfig(**four)),
        "dinov2": net(t.Dinov2ForImageClassification, t.Dinov2Config(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=64, patch_size=8)),
        "levit": net(t.LevitForImageClassification, t.LevitConfig(
            image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 2, 2], depths=[1, 1, 1],
            key_dim=[8, 8, 8])),
    }


def transformers():
    import transformers as t

    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
             "vocab_size": 50, "max_position_embeddings": 32}

    def text(model, config, **more):
        return lambda: (First(model(config), **more).eval(), tokens())

    def image_model(model, config):
        return lambda: (First(model(config)).eval(), image(32))

    llama = {**small, "num_key_value_heads": 1, "pad_token_id": 0}
    tiny_vit = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
                "image_size": 32, "patch_size": 8}
    return {
        "bert": text(t.BertForSequenceClassification, t.BertConfig(**small)),
        "roberta": text(t.RobertaForMaskedLM, t.RobertaConfig(**small)),
        "distilbert": text(t.DistilBertForTokenClassification, t.DistilBertConfig(
            vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=32)),
        "albert": text(t.AlbertModel, t.AlbertConfig(**small, embedding_size=8)),
        "gpt2": text(t.GPT2LMHeadModel, t.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32),
                     use_cache=False),
        "llama": text(t.LlamaForCausalLM, t.LlamaConfig(**llama), use_cache=False),
        "mistral": text(t.MistralForCausalLM, t.MistralConfig(**llama, sliding_window=8), use_cache=False),
        "qwen2": text(t.Qwen2ForCausalLM, t.Qwen2Config(**llama), use_cache=False),
        "t5_encoder": text(t.T5EncoderModel, t.T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2,
                                                        num_heads=2)),
        "electra": text(t.ElectraModel, t.ElectraConfig(**small, embedding_size=8)),
        "deberta": text(t.DebertaV2Model, t.DebertaV2Config(**small)),
        "vit": image_model(t.ViTForImageClassification, t.ViTConfig(**tiny_vit)),
        "deit": image_model(t.DeiTForImageClassification, t.DeiTConfig(**tiny_vit)),
        "segformer": image_model(t.SegformerForSemanticSegmentation, t.SegformerConfig(
            hidden_sizes=[8, 16, 16, 16], depths=[1] * 4, num_attention_heads=[1, 2, 2, 2], decoder_hidden_size=16)),
        "wav2vec2": lambda: (First(t.Wav2Vec2ForCTC(t.Wav2Vec2Config(
            **{**small, "hidden_size": 32}, conv_dim=[16] * 3, conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3],
            num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4))).eval(),
            rows(1, 2000)),
    }


def export(module, inputs, new, opset, **options):
    if isinstance(module, (nn.Module,)) and not isinstance(module, torch.jit.ScriptModule):
        module(*inputs)  # lazy layers
        module.eval()
    buffer = io.BytesIO()
    if new:
        return torch.onnx.export(module, inputs, dynamo=True, opset_version=opset, **options).model_proto
    torch.onnx.export(module, inputs, buffer, dynamo=False, opset_version=opset, input_names=["x"], **options)
    return buffer.getvalue()


def files():
    for name, (module, inputs) in layers().items():
        yield f"torch_old_{name}", lambda m=module, x=inputs: export(m, x, False, 17, dynamic_axes={"x": {0: "n"}})
        yield f"torch_new_{name}", lambda m=module, x=inputs: export(m, x, True, 20)
    few = ("unet", "conv1d", "pools", "masked", "gru")
    for opset in (9, 11, 13):
        for name in few:
            m, x = layers()[name]
            yield f"torch_old_{name}_opset_{opset}", lambda m=m, x=x, o=opset: export(m, x, False, o)
    for kind in (torch.float16, torch.bfloat16, torch.float64):
        for name in ("unet", "encoder", "where_norms", "rms_norm"):
            m, x = layers()[name]
            m(*x)
            yield f"torch_new_{name}_{str(kind)[6:]}", \
                lambda m=m, x=x, k=kind: export(m.to(k), tuple(v.to(k) for v in x), True, 20)
    yield "torch_script_loop", lambda: export(torch.jit.script(Steps()), rows(3, 4), False, 16)
    m, x = layers()["unet"]
    yield "torch_old_initializers_as_inputs", lambda: export(m, x, False, 11, keep_initializers_as_inputs=True)
    yield "torch_old_training_mode", \
        lambda: export(UNet(), image(), False, 15, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    for source in (vision, transformers):
        for name, make in source().items():
            yield f"torch_old_{name}", lambda f=make: export(*f(), False, 17)
            yield f"torch_new_{name}", lambda f=make: export(*f(), True, 18)
