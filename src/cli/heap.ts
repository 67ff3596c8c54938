import { setFlagsFromString } from "node:v8";

// V8 lets the young generation grow to 3 × 16 MiB while modules load, and never gives it back. An operator that sits
// idle most of its life is better off with frequent small collections: 27 MiB less resident memory, measured with
// everything loaded. It has to be said before the first large import.
setFlagsFromString("--semi-space-growth-factor=1");
