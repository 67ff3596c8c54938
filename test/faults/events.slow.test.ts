import { describeEvents } from "./events";

describeEvents({ rounds: 3 });
