"""Hints of the start page."""

HINTS = {
    "gpus-rounded-down": "A part of the model is left without a home: a fraction of an accelerator is a whole accelerator.",
    "gpus-always-one-more": "A model that fits exactly needs no further accelerator.",
    "gpus-bits-for-bytes": "bytes_per_param counts bytes already: bf16 is 2 of them.",
    "gpus-gib-for-gb": "An 80 GB accelerator holds 80e9 bytes here; 80 * 2**30 would be 80 GiB, 7 % more.",
}
