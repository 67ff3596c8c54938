import { describeEvents } from "./events";

describeEvents({ losses: ["are lost with their watches, which fall silent"], ways: ["in a list"], rounds: 1 });
