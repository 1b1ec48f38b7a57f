"""What several networks share."""


def conv_norm(layers, x, name, inputs, outputs, kernel, stride, pad, groups=1):
    """A convolution without bias and its batch normalization."""
    y = layers.conv(x, name, inputs, outputs, kernel, stride, pad, groups=groups)
    return layers.batch_norm(y, name + "_bn", outputs)
