"""Hints of lesson 4.1, the CUDA programming model."""

HINTS = {
    "pixel-y-runs-fastest": "You counted threads down the columns of the block. Threads are numbered with x running fastest, then y.",
    "pixel-warp-taken-for-a-row": "That holds only in blocks 32 threads wide. A warp is 32 threads in a row of their numbers, whatever the shape of the block.",
    "pixel-block-forgotten": "This is the thread's place within its block. The blocks before it, across and down, have pixels of their own.",
    "pixel-guard-forgotten": "This pixel does not exist. The grid is rounded up, so some threads lie outside, in their block or not.",
    "pixel-lane-without-thread": "The block has fewer threads than its warps have lanes: the last warp is not full, and its last lanes belong to no thread.",
    "kernel-without-guard": "More threads are launched than there are elements. Each thread has to ask whether its own element exists before it reads or writes.",
    "kernel-first-block-only": "Only the elements of block 0 come out right. What a thread works on depends on its block, not on its place in the block alone.",
    "kernel-x-down-a-column": "The picture is right, and each request is scattered: neighbouring lanes differ in x first, and in memory the next element is the next one of the row.",
    "blur-neighbours-outside": "Your own pixel is inside and one of its neighbours is not. At the edges some of the 3 x 3 do not exist.",
    "blur-edge-is-not-nine": "Inside all is right, at the edges not: fewer than nine pixels went into the sum there.",
    "reduce-without-barrier": "The result is right because the simulator keeps all warps in step; a GPU does not. Between a write to a slot and the read of another thread there has to be a barrier.",
    "reduce-several-write": "Several threads write one place. That they bring the same number does not put them in order: let one of them write.",
    "reduce-barrier-in-branch": "Some threads of the block never come to this barrier: they are in another branch, or have returned. Guard the work, not the barrier.",
    "reduce-slot-never-written": "A slot of shared memory is read that no thread has filled. Threads beyond the end, and warps that a small block does not have, fill none unless you see to it.",
    "reduce-shuffle-in-branch": "A shuffle asks a lane that does not take part. All lanes of the warp have to come to it; those without a value bring one that changes nothing.",
    "reduce-sign-kept": "A large negative number is large too: the absolute value is asked for.",
    "reduce-first-warp-only": "This is the largest value of the first warp. A shuffle does not leave its warp; the warps have to be brought together afterwards.",
    "reduce-one-thread-works": "A thread reads what others should. Each value is loaded by a thread of its own, and the number of candidates halves with every step.",
    "reduce-by-atomics": "Atomics on one address take turns, and the task is to do without them.",
    "reduce-tree-in-shared-memory": "Only one value for each warp has to go through shared memory, once. What happens within a warp needs neither slots nor a barrier.",
}
