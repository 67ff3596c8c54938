import { compareEngines } from "./contract";

compareEngines(["agrees over a stack's life"]);
