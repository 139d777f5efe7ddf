# shellcheck shell=bash disable=SC2034
# constants.sh: numbers that several scripts need, and load.

MODEL_BYTES=4799528 # the gradient of keras-cnn: 1,199,882 float32
# What bench --model-gradients exchanges, and the bytes of it: tests/test_published.c.
PUBLISHED_BYTES='resnet50 102228128 vgg16 553430176 gpt2 497759232 bert-large 1344904432'
CPU_LIMITED=0.85    # with a larger share of busy CPUs they may be the limit; CPU_SHARE_LIMITED in cpu_share.h
