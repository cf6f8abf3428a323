# Alternatives and mistakes for lesson 3.1; see CONTRIBUTING.md for the form of the headers.

# %% issue-slots | right | the union of what the lanes pass
def issue_slots(body, active):
    def passes(body, lane, where):
        seen = set()
        for place, s in enumerate(body):
            seen.add((where, place))
            if s[0] == "if":
                seen |= passes(s[2] if s[1][lane] else s[3], lane, (where, place, bool(s[1][lane])))
            if s[0] == "loop":
                for r in range(s[1][lane]):
                    seen.add((where, place, r))
                    seen |= passes(s[2], lane, (where, place, "round", r))
        return seen

    return len(set().union(*(passes(body, lane, ()) for lane, on in enumerate(active) if on)))

# %% issue-slots | right | NumPy masks, rounds up to the longest active lane
def issue_slots(body, active):
    active = np.asarray(active, bool)
    slots = np.int64(0)
    for s in body if active.any() else []:
        if isinstance(s, str):
            slots += 1
            continue
        kind, lanes, *inside = s
        lanes = np.asarray(lanes)
        if kind == "if":
            slots += 1 + issue_slots(inside[0], active & lanes.astype(bool)) + issue_slots(inside[1], active & ~lanes.astype(bool))
        else:
            rounds = lanes[active].max()
            slots += rounds + 1 + sum(issue_slots(inside[0], active & (lanes > r)) for r in range(rounds))
    return slots

# %% issue-slots | right | bit masks, a loop until nobody goes on
def issue_slots(body, active):
    def bits(flags):
        return sum(1 << lane for lane, flag in enumerate(flags) if flag)

    def walk(body, mask):
        slots = 0.0
        for s in body if mask else []:
            slots += 1
            if s[0] == "if":
                slots += walk(s[2], mask & bits(s[1])) + walk(s[3], mask & ~bits(s[1]))
            elif s[0] == "loop":
                r = 0
                while now := mask & bits(n > r for n in s[1]):
                    slots += 1 + walk(s[2], now)
                    r += 1
        return slots

    return walk(body, bits(active))

# %% issue-slots | wrong | average-path-for-the-warp
def issue_slots(body, active):
    def length(body, lane):
        total = 0
        for s in body:
            total += 1
            if s[0] == "if":
                total += length(s[2] if s[1][lane] else s[3], lane)
            if s[0] == "loop":
                total += s[1][lane] * (1 + length(s[2], lane))
        return total

    lanes = [lane for lane, on in enumerate(active) if on]
    return sum(length(body, lane) for lane in lanes) / len(lanes)

# %% issue-slots | wrong | inactive-lanes-for-free
def issue_slots(body, active):
    def work(body, active):
        share, total = sum(active) / len(active), 0
        for s in body:
            total += share
            if s[0] == "if":
                total += work(s[2], [a and c for a, c in zip(active, s[1])]) + work(s[3], [a and not c for a, c in zip(active, s[1])])
            if s[0] == "loop":
                for r in range(max(s[1])):
                    now = [a and r < n for a, n in zip(active, s[1])]
                    total += sum(now) / len(now) + work(s[2], now)
        return total

    return work(body, active)

# %% issue-slots | wrong | longest-lane-for-the-warp | like average-path-for-the-warp
#-     lanes = [lane for lane, on in enumerate(active) if on]
#-     return sum(length(body, lane) for lane in lanes) / len(lanes)
#+     return max(length(body, lane) for lane, on in enumerate(active) if on)

# %% issue-slots | wrong | side-without-lanes-paid
def issue_slots(body, active):
    slots = 0
    for s in body:
        slots += 1
        if s[0] == "if":
            slots += issue_slots(s[2], [a and c for a, c in zip(active, s[1])]) + issue_slots(s[3], [a and not c for a, c in zip(active, s[1])])
        if s[0] == "loop":
            r = 0
            while any(a and r < n for a, n in zip(active, s[1])):
                slots += 1 + issue_slots(s[2], [a and r < n for a, n in zip(active, s[1])])
                r += 1
    return slots

# %% issue-slots | wrong | last-check-of-the-loop-forgotten | like side-without-lanes-paid
#- def issue_slots(body, active):
#+ def issue_slots(body, active):
#+     if not any(active):
#+         return 0
#-         slots += 1
#+         slots += s[0] != "loop"

# %% issue-slots | wrong | condition-for-free | like side-without-lanes-paid
#- def issue_slots(body, active):
#+ def issue_slots(body, active):
#+     if not any(active):
#+         return 0
#-         slots += 1
#+         slots += s[0] != "if"

# %% issue-slots | wrong | lanes-that-left-the-loop-active
def issue_slots(body, active):
    if not any(active):
        return 0
    slots = 0
    for s in body:
        slots += 1
        if s[0] == "if":
            slots += issue_slots(s[2], [a and c for a, c in zip(active, s[1])]) + issue_slots(s[3], [a and not c for a, c in zip(active, s[1])])
        if s[0] == "loop":
            slots += max(n for a, n in zip(active, s[1]) if a) * (1 + issue_slots(s[2], active))
    return slots

# %% issue-slots | wrong | outer-mask-forgotten
def issue_slots(body, active):
    if not any(active):
        return 0
    slots = 0
    for s in body:
        slots += 1
        if s[0] == "if":
            slots += issue_slots(s[2], s[1]) + issue_slots(s[3], [not c for c in s[1]])
        if s[0] == "loop":
            for r in range(max(s[1])):
                slots += 1 + issue_slots(s[2], [r < n for n in s[1]])
    return slots

# %% fill-memory | right | the warps are tried one after the other
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    for warps in range(1, max_warps + 1):
        rate = sms * warps * 32 * bytes_per_lane / latency_s
        if rate >= bandwidth:
            return [warps, 1.0]
    return [max_warps, rate / bandwidth]

# %% fill-memory | right | NumPy scalars
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = np.float64(bandwidth) * latency_s / (sms * np.int64(32) * bytes_per_lane)
    return np.minimum(np.ceil(needed), max_warps), np.minimum(max_warps / needed, 1)

# %% fill-memory | right | all numbers of warps at once, an array
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    warps = np.arange(1, max_warps + 1)
    share = np.minimum(1, warps * 32 * bytes_per_lane * sms / (bandwidth * latency_s))
    return np.array([1 + np.count_nonzero(share[:-1] < 1), share[-1]])

# %% fill-memory | wrong | one-warp-too-many
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth * latency_s / sms / (32 * bytes_per_lane)
    return min(int(needed) + 1, max_warps), min(1.0, max_warps / needed)

# %% fill-memory | wrong | bandwidth-over-latency
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth / latency_s / sms / (32 * bytes_per_lane)
    return min(int(needed) + 1, max_warps), min(1.0, max_warps / needed)

# %% fill-memory | wrong | whole-chip-on-one-sm
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth * latency_s / (32 * bytes_per_lane)
    return (max_warps, max_warps / needed) if needed > max_warps else (-int(-needed // 1), 1.0)

# %% fill-memory | wrong | one-lane-for-the-warp
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth * latency_s / sms / bytes_per_lane
    return (max_warps, max_warps / needed) if needed > max_warps else (-int(-needed // 1), 1.0)

# %% fill-memory | wrong | last-warp-cut-off
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth * latency_s / sms / (32 * bytes_per_lane)
    return min(int(needed), max_warps), min(1.0, max_warps / needed)

# %% fill-memory | wrong | more-warps-than-fit
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth * latency_s / sms / (32 * bytes_per_lane)
    return -int(-needed // 1), 1.0

# %% fill-memory | wrong | more-warps-always-faster
def fill_memory(bandwidth, latency_s, sms, bytes_per_lane, max_warps):
    needed = bandwidth * latency_s / sms / (32 * bytes_per_lane)
    return max_warps, max_warps / needed

# %% run-grid | right | a heap of the times at which slots get free
def run_grid(times, sms, blocks_per_sm):
    import heapq
    free = [0] * (sms * blocks_per_sm)
    for time in times:
        heapq.heappush(free, heapq.heappop(free) + time)
    return [max(free), sum(times) / max(free) / len(free)]

# %% run-grid | right | NumPy
def run_grid(times, sms, blocks_per_sm):
    free = np.zeros(sms * blocks_per_sm)
    for time in times:
        free[free.argmin()] += time
    return free.max(), np.sum(times) / (free.size * free.max())

# %% run-grid | right | from one end to the next
def run_grid(times, sms, blocks_per_sm):
    slots, waiting, running, now = sms * blocks_per_sm, list(times), [], 0
    while waiting or running:
        room = slots - len(running)
        running += [now + time for time in waiting[:room]]
        waiting = waiting[room:]
        now = min(running)
        running = [end for end in running if end > now]
    return np.float32(now), sum(times) / slots / now

# %% run-grid | wrong | waves-cut-off
def run_grid(times, sms, blocks_per_sm):
    slots = sms * blocks_per_sm
    end = max(len(times) // slots, 1) * max(times)
    return end, sum(times) / (end * slots)

# %% run-grid | wrong | work-spread-evenly
def run_grid(times, sms, blocks_per_sm):
    return sum(times) / (sms * blocks_per_sm), 1.0

# %% run-grid | wrong | waves-wait-for-their-slowest
def run_grid(times, sms, blocks_per_sm):
    slots = sms * blocks_per_sm
    end = sum(max(times[first : first + slots]) for first in range(0, len(times), slots))
    return end, sum(times) / (end * slots)

# %% run-grid | wrong | blocks-dealt-out-beforehand
def run_grid(times, sms, blocks_per_sm):
    slots = sms * blocks_per_sm
    end = max(sum(times[slot::slots]) for slot in range(slots))
    return end, sum(times) / (end * slots)

# %% run-grid | wrong | longest-blocks-first
def run_grid(times, sms, blocks_per_sm):
    free = [0] * (sms * blocks_per_sm)
    for time in sorted(times, reverse=True):
        free[free.index(min(free))] += time
    return max(free), sum(times) / (max(free) * len(free))

# %% run-grid | wrong | one-block-on-each-sm
def run_grid(times, sms, blocks_per_sm):
    free = [0] * sms
    for time in times:
        free[free.index(min(free))] += time
    return max(free), sum(times) / (max(free) * sms)

# %% issue-order | right | a queue of result times for each warp
def issue_order(latencies, ilp, cycles):
    from collections import deque
    queues = [deque([0] * ilp) for _ in latencies]
    order, turn = [], 0
    for cycle in range(cycles):
        ready = [w for w, queue in enumerate(queues) if queue[0] <= cycle]
        if not ready:
            order.append(None)
            continue
        w = min(ready, key=lambda w: (w - turn) % len(latencies))
        queues[w].popleft()
        queues[w].append(cycle + latencies[w])
        order.append(np.int64(w))
        turn = w + 1
    return tuple(order)

# %% issue-order | right | warps move to the end of a list
def issue_order(latencies, ilp, cycles):
    line, issued = list(range(len(latencies))), {w: [] for w in range(len(latencies))}
    order = [None] * cycles
    for cycle in range(cycles):
        for place, w in enumerate(line):
            if len(issued[w]) < ilp or issued[w][-ilp] + latencies[w] <= cycle:
                order[cycle] = w
                issued[w].append(cycle)
                line = line[place + 1 :] + line[: place + 1]
                break
    return order

# %% issue-order | wrong | always-from-warp-zero
def issue_order(latencies, ilp, cycles):
    issued, order = [[] for _ in latencies], []
    for cycle in range(cycles):
        ready = [w for w, times in enumerate(issued) if len(times) < ilp or times[-ilp] + latencies[w] <= cycle]
        order.append(ready[0] if ready else None)
        if ready:
            issued[ready[0]].append(cycle)
    return order

# %% issue-order | wrong | stays-with-the-last-warp
def issue_order(latencies, ilp, cycles):
    issued, order, last = [[] for _ in latencies], [], 0
    for cycle in range(cycles):
        line = [(last + k) % len(latencies) for k in range(len(latencies))]
        w = next((w for w in line if len(issued[w]) < ilp or issued[w][-ilp] + latencies[w] <= cycle), None)
        order.append(w)
        if w is not None:
            issued[w].append(cycle)
            last = w
    return order

# %% issue-order | wrong | turn-goes-on-with-the-clock
def issue_order(latencies, ilp, cycles):
    issued, order = [[] for _ in latencies], []
    for cycle in range(cycles):
        line = [(cycle + k) % len(latencies) for k in range(len(latencies))]
        w = next((w for w in line if len(issued[w]) < ilp or issued[w][-ilp] + latencies[w] <= cycle), None)
        order.append(w)
        if w is not None:
            issued[w].append(cycle)
    return order

# %% issue-order | wrong | waits-for-the-warp-in-turn
def issue_order(latencies, ilp, cycles):
    issued, order, w = [[] for _ in latencies], [], 0
    for cycle in range(cycles):
        if len(issued[w]) < ilp or issued[w][-ilp] + latencies[w] <= cycle:
            issued[w].append(cycle)
            order.append(w)
            w = (w + 1) % len(latencies)
        else:
            order.append(None)
    return order

# %% issue-order | wrong | result-one-cycle-late
def issue_order(latencies, ilp, cycles):
    issued, order, turn = [[] for _ in latencies], [], 0
    for cycle in range(cycles):
        line = [(turn + k) % len(latencies) for k in range(len(latencies))]
        w = next((w for w in line if len(issued[w]) < ilp or issued[w][-ilp] + latencies[w] < cycle), None)
        order.append(w)
        if w is not None:
            issued[w].append(cycle)
            turn = w + 1
    return order

# %% issue-order | wrong | independent-instructions-not-used
def issue_order(latencies, ilp, cycles):
    free, order, turn = [0] * len(latencies), [], 0
    for cycle in range(cycles):
        line = [(turn + k) % len(latencies) for k in range(len(latencies))]
        w = next((w for w in line if free[w] <= cycle), None)
        order.append(w)
        if w is not None:
            free[w], turn = cycle + latencies[w], w + 1
    return order

# %% issue-order | wrong | latency-divided-by-ilp | like independent-instructions-not-used
#-             free[w], turn = cycle + latencies[w], w + 1
#+             free[w], turn = cycle + latencies[w] / ilp, w + 1

# %% issue-order | wrong | waits-for-the-whole-group
def issue_order(latencies, ilp, cycles):
    free, count, order, turn = [0] * len(latencies), [0] * len(latencies), [], 0
    for cycle in range(cycles):
        line = [(turn + k) % len(latencies) for k in range(len(latencies))]
        w = next((w for w in line if free[w] <= cycle), None)
        order.append(w)
        if w is not None:
            count[w] += 1
            free[w] = cycle + latencies[w] if count[w] % ilp == 0 else cycle + 1
            turn = w + 1
    return order
