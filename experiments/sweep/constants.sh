# shellcheck shell=bash disable=SC2034
# constants.sh: numbers that several scripts need, and load.

MODEL_BYTES=4799528 # the gradient of keras-cnn: 1,199,882 float32
CPU_LIMITED=0.85    # with a larger share of busy CPUs they may be the limit; CPU_SHARE_LIMITED in cpu_share.h
