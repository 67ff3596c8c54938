import { compareEngines, SEQUENCES } from "./contract";

compareEngines(Object.keys(SEQUENCES) as (keyof typeof SEQUENCES)[]);
