"""Hints of problem set 4, GPU performance."""

HINTS = {
    # launches that catch broken kernels
    "launches-rules": "1 to 8 dicts, sizes within the bounds of the task, a block of whole warps, one of the four kinds of values, and nothing in look_at but 'result' and 'races'.",
    "launches-accuse": "A right kernel has to pass every test. Launch it yourself and see what its report says before you set a bound.",
    "launches-enough-blocks": "In all of your tests each row has a block of its own. Launch fewer blocks than there are rows, and look at the result.",
    "launches-wide-row": "Let a row be longer than a block, with its largest value at its end, and look at the result.",
    "launches-odd-block": "Halving goes wrong only for some numbers of threads, and shows only if the largest value sits with a thread that is dropped. Blocks of 96 are allowed.",
    "launches-all-below-zero": "Where some value of a row is 0 or more, a search that starts from 0 is right.",
    "launches-ragged-end": "Let the width be no multiple of the block, and look at what such a kernel reads behind the end.",
    "launches-races-unseen": "The result is right here, and on a GPU only with luck. Look at something else than the result.",
    "launches-second-row": "Slots are used again only by a block that has a second row to do. And the result will be right.",
    "launches-narrow-row": "This barrier hangs only if some thread of the block has no column at all.",
    "launches-sectors-uncounted": "Result and races are as they should be; lanes of one request lie far apart. Count sectors, in rows that are much wider than a block.",
    "launches-generous-count": "Your bound leaves room for loads that a right kernel does not make, or your values give no cause for them: lanes load again where they find something larger.",
    # a histogram with six faults
    "histogram-lost-updates": "Elements are missing: two threads read the same count, each adds one, and one of the two is lost. Reading, adding and writing have to be one.",
    "histogram-one-round": "Only the first grid x block elements were counted. The grid may be smaller than the data.",
    "histogram-barrier-missed": "Some threads of a block do not come to this barrier: they have no element, or are done already. Guard the work, not the barrier.",
    "histogram-slots-unset": "A slot is read that no thread has set to 0. There may be more bins than the block has threads.",
    "histogram-no-such-slot": "An index outside of its array: a block may have more threads than there are slots, and data may hold numbers that are no bin.",
    "histogram-barrier-forgotten": "The counts are right because the simulator keeps warps in step. A barrier has to stand between setting to 0 and counting, and between counting and adding up.",
    "histogram-every-element-global": "Every element goes to the global counts. A block should count in shared memory and add up at the end.",
    "histogram-adds-zeros": "Bins in which the block found nothing are added too, or some bins more than once.",
    "histogram-scattered-loads": "Neighbouring lanes load elements that lie far apart, or load them more than once. In each round a warp should take neighbours.",
    # two kernels for many products
    "tiles-no-such-kernel": "This is no kernel that a library could ship: a size that is not among the choices, a thread's part that does not divide the block's, or too many threads or registers, or too few threads.",
    "tiles-too-large-for-the-sm": "The chip has no SM with so much shared memory, or so many registers, for one block.",
    "tiles-one-does-it-all": "One kernel does all the work. Thin products pay for rows that nobody asked for, wide ones for too little reuse: a second kernel is free.",
    "tiles-each-best-somewhere": "Each of your tiles is the best for one of the products. The others have to run too, and count by their calls.",
    "tiles-pair-not-best": "Some pair is better. The best single tile with the best helper need not be the best pair, nor need the best of a shorter list.",
    # who holds up the step
    "culprit-no-pair": "A fault is returned together with a rank, which is None but for a straggler.",
    "culprit-wait-behind-a-wait": "The host waits for its device in this trace, and then for a batch. Ask which of the two still sets the pace if the other one is gone: the loader never rests.",
    "culprit-host-waits-device-works": "The host waits for batches because it is far ahead; the device has all it needs. Look whether the device is idle.",
    "culprit-the-others-wait": "Collectives are exposed on all ranks but one. They begin early there, and wait for the one that computes longer.",
    "culprit-three-percent": "A rank that is 3 % slower gains 3 % when it is mended. That is less than 5 %.",
    "culprit-short-waits": "There are waits for the device in this trace, and they take next to no time. Look at what fills the host's time.",
    "culprit-blames-who-waits": "This rank spends most time in collectives because it is early. The slow one is the one on which they wait least.",
    # what goes into one kernel
    "fuse-registers": "A thread has fewer registers than this kernel needs. Another order in it may need fewer, or it has to be cut.",
    "fuse-product": "A product takes its operands from memory and comes first in its kernel; a tile of its result holds no whole row.",
    "fuse-order": "Each result is made once, after everything that it needs, and in a list of lists of names.",
    "fuse-nothing": "Every operation has a kernel of its own, and every array goes through memory.",
    "fuse-as-long-as-it-fits": "Each kernel takes operations until none fits. A shorter kernel now can leave a better cut for later.",
    "fuse-given-order": "These are cuts of the order in which the operations came. Other orders are allowed, and some need fewer registers or join what belongs together.",
    "fuse-not-least": "A plan with fewer bytes exists. What is best from here on depends only on what is made already, not on how.",
}
