# Alternatives and mistakes for the start page; see CONTRIBUTING.md for the form of the headers.

# %% gpus-needed | right | integer ceiling
def gpus_needed(n_params, bytes_per_param, gpu_gb):
    return np.int64(-(-(n_params * bytes_per_param) // (gpu_gb * 10**9)))

# %% gpus-needed | right | filling one after another
def gpus_needed(n_params, bytes_per_param, gpu_gb):
    left, count = n_params * bytes_per_param, 0
    while left > 0:
        left, count = left - gpu_gb * 1e9, count + 1
    return count

# %% gpus-needed | wrong | gpus-rounded-down
def gpus_needed(n_params, bytes_per_param, gpu_gb):
    return int(n_params * bytes_per_param / (gpu_gb * 1e9))

# %% gpus-needed | wrong | gpus-always-one-more
def gpus_needed(n_params, bytes_per_param, gpu_gb):
    return int(n_params * bytes_per_param / (gpu_gb * 1e9)) + 1

# %% gpus-needed | wrong | gpus-bits-for-bytes
def gpus_needed(n_params, bytes_per_param, gpu_gb):
    return int(np.ceil(n_params * bytes_per_param * 8 / (gpu_gb * 1e9)))

# %% gpus-needed | wrong | gpus-gib-for-gb
def gpus_needed(n_params, bytes_per_param, gpu_gb):
    return int(np.ceil(n_params * bytes_per_param / (gpu_gb * 2**30)))
