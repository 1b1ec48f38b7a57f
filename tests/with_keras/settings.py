"""Optimizers with their settings, schedules and what else a step can have: name -> function that makes one."""

import keras

K = keras.optimizers
S = keras.optimizers.schedules

OPTIMIZERS = {
    "sgd": lambda: K.SGD(0.05),
    "momentum": lambda: K.SGD(0.03, momentum=0.9),
    "nesterov": lambda: K.SGD(0.03, momentum=0.8, nesterov=True, weight_decay=0.02),
    "adam": lambda: K.Adam(0.01),
    "amsgrad": lambda: K.Adam(0.01, beta_1=0.8, beta_2=0.95, epsilon=1e-4, amsgrad=True),
    "adamw": lambda: K.AdamW(0.01, weight_decay=0.05),
    "rmsprop": lambda: K.RMSprop(0.005),
    "rmsprop_centered": lambda: K.RMSprop(0.005, rho=0.8, momentum=0.5, centered=True, epsilon=1e-3),
    "adagrad": lambda: K.Adagrad(0.05),
    "adadelta": lambda: K.Adadelta(0.5),
    "adamax": lambda: K.Adamax(0.01),
    "nadam": lambda: K.Nadam(0.01),
    "ftrl": lambda: K.Ftrl(0.05, l1_regularization_strength=0.01, l2_regularization_strength=0.02, beta=0.1,
                           l2_shrinkage_regularization_strength=0.01),
    "lion": lambda: K.Lion(0.003, weight_decay=0.1),
    "lamb": lambda: K.Lamb(0.01),
    "adafactor": lambda: K.Adafactor(0.02),
}
SCHEDULES = {
    "exponential": lambda: S.ExponentialDecay(0.05, 3, 0.7),
    "staircase": lambda: S.ExponentialDecay(0.05, 4, 0.5, staircase=True),
    "piecewise": lambda: S.PiecewiseConstantDecay([3, 7, 11], [0.05, 0.02, 0.01, 0.003]),
    "polynomial": lambda: S.PolynomialDecay(0.05, 9, 0.001, power=2.0),
    "polynomial_cycle": lambda: S.PolynomialDecay(0.05, 4, 0.001, cycle=True),
    "inverse_time": lambda: S.InverseTimeDecay(0.05, 3, 0.5),
    "cosine": lambda: S.CosineDecay(0.05, 12, alpha=0.1),
    "cosine_warmup": lambda: S.CosineDecay(0.001, 9, warmup_target=0.05, warmup_steps=4),
    "restarts": lambda: S.CosineDecayRestarts(0.05, 4, t_mul=1.5, m_mul=0.8),
}
EXTRAS = {
    "clipvalue": lambda: K.Adam(0.01, clipvalue=0.01),
    "clipnorm": lambda: K.RMSprop(0.01, clipnorm=0.05),
    "global_clipnorm": lambda: K.Adam(0.01, global_clipnorm=0.1),
    "ema": lambda: K.SGD(0.05, momentum=0.5, use_ema=True, ema_momentum=0.8),
    "ema_overwrite": lambda: K.Adam(0.01, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=4),
    "accumulation": lambda: K.Adam(0.01, gradient_accumulation_steps=3),
    "accumulation_clipped": lambda: K.SGD(0.05, momentum=0.9, gradient_accumulation_steps=2, global_clipnorm=0.2),
}


def setting(name):
    """An optimizer by name; a schedule drives momentum, where the rule shows."""
    if name in SCHEDULES:
        return K.SGD(SCHEDULES[name](), momentum=0.9)
    return {**OPTIMIZERS, **EXTRAS}[name]()
