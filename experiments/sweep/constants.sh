# shellcheck shell=bash disable=SC2034
# constants.sh: numbers that several scripts load.

MODEL_BYTES=4799528 # the gradient of keras-cnn: 1,199,882 float32
# The models of bench --model-gradients that a sweep measures, and their bytes: tests/models/test_published.c.
PUBLISHED_BYTES='resnet50 102228128 vgg16 553430176 gpt2 497759232 bert-large 1344904432'
PAYLOAD_SHARE=0.9525 # TCP payload / nominal rate of a virtual cluster, by bench's probe: 190.5 of 200 Mbit/s
BUCKET_BYTES=32768   # burst of an idle link in a virtual cluster, up to 1 Gbit/s: cluster/hosts.sh
SIZE_S=45            # seconds that the default sweep has for one size of a configuration: sweep/plan.sh
HEADER_BYTES=64      # of every message between nodes: common/net/transport/message.h
CPU_LIMITED=0.85    # above this busy share CPUs may be the limit; CPU_SHARE_LIMITED in common/net/cpu_watch.h
